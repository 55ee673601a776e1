#include "tests/cuda_emulator/test/scenario.h"
namespace scenario {
Table driver_scenarios() { return {}; }
}  // namespace scenario
