#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "croton/config.h"
#include "croton/export.h"
#include "croton/variable.h"

namespace croton {

/// While it lives, ops and shared variables made on this thread live on the context `name`, unless
/// they are given another one. Scopes nest; the innermost one counts.
///
/// `name` is a context of the flag `contexts`, a device (`cpu`, `cuda1`), or a device as TensorFlow
/// writes it: `/gpu:0`, `/cpu:0`, `/device:GPU:0`. That is the first context bound to the device,
/// else the device itself; `/cpu:0` is the host. Such a text overrides the scope around it field by
/// field: `/gpu` inside of `/gpu:1` is `/gpu:1`; another kind of device drops the index, and one
/// that nothing gives is 0. `/job:localhost/replica:0/task:0` is this process. "" and none drop the
/// scopes around.
///
/// ConfigError for a name that is not bound, a text with unknown, repeated or contradicting fields,
/// and jobs and tasks of other processes. With the flag soft_placement, a name that is not bound
/// is the CPU.
class CROTON_API ContextScope {
 public:
  [[nodiscard]] explicit ContextScope(std::string_view name);
  [[nodiscard]] explicit ContextScope(None);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
};

/// While it lives, graphs built and functions made on this thread see `config`. Only flags that
/// concern building (floatX, cast_policy) and compiling may differ from the process's; another
/// flag is a ConfigError.
class CROTON_API ConfigScope {
 public:
  [[nodiscard]] explicit ConfigScope(const Config& config);
  ~ConfigScope();
  ConfigScope(const ConfigScope&) = delete;
  ConfigScope& operator=(const ConfigScope&) = delete;
};

/// The configuration in force on this thread: of the innermost ConfigScope, else the process's,
/// read from CROTON_FLAGS and the rc files at first use (ConfigError when they cannot be read).
CROTON_API Config current_config();

/// Returns when all work of the process is done, on every context: calls whose results stay on a
/// GPU return before. DeviceError for what failed there.
CROTON_API void sync();

/// Devices, libraries and their versions, and the bound contexts, as `croton devices` prints them.
CROTON_API std::string describe_devices();

}  // namespace croton
