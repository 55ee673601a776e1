#include "ops/registry.h"

namespace croton {

void register_ops(OpRegistry& registry) { register_leaf_ops(registry); }

}  // namespace croton
