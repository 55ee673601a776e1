// Devices as TensorFlow writes them: /gpu:0, /device:CPU:0, /job:localhost/replica:0/task:0/gpu:1.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "croton/context_map.h"

namespace croton {

/// What such a text says; the rest is left to the scope around it.
struct DeviceSpec {
  std::optional<DeviceKind> kind;
  std::optional<int> index;
  bool operator==(const DeviceSpec&) const = default;
};

/// Whether a text is meant as one: it begins with a slash.
bool is_device_spec(std::string_view text);

/// Reads one. ConfigError for unknown fields, fields given twice, indices that are no numbers, and
/// jobs and tasks of other processes.
DeviceSpec parse_device_spec(std::string_view text);

/// What a device says of itself, in these words.
DeviceSpec spec_of(const DeviceName& device);

/// `inner` over `outer`, field by field; another kind drops the index.
DeviceSpec merge_specs(const DeviceSpec& outer, const DeviceSpec& inner);

/// The context for a spec that has a kind: the first one that `map` binds to the device, else the
/// device itself. The CPU 0 is the host. Without an index it is the first of the kind.
std::string context_of_spec(const DeviceSpec& spec, const ContextMap& map);

}  // namespace croton
