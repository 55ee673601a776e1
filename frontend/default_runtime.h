#pragma once

#include <memory>

#include "croton/config.h"

namespace croton {

class Runtime;

/// The process's configuration, read at first use and never again once that succeeded.
const Config& process_config();

/// The process's runtime, made at first use and never destroyed: shared variables in static storage
/// may outlive main.
std::shared_ptr<Runtime> default_runtime();

}  // namespace croton
