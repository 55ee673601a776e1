#pragma once

#include <memory>
#include <string>

#include "runtime/device.h"

namespace croton {

/// A device that takes all work and does none: results are zeros. It looks like a device of kind
/// `target`, so that what is compiled for that kind can be tried on any machine.
std::shared_ptr<Device> make_null_device(const TargetInfo& target);

}  // namespace croton
