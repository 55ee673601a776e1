#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "croton/export.h"

namespace croton {

enum class DeviceKind { cpu, cuda, null };

/// The name of a physical device: `cpu` (= `cpu0`), `cuda` (= `cuda0`), `cudaN`, `cuda@PCI` (a GPU
/// by its PCI address, such as `cuda@0000:3b:00.0`) or `null`, each with an optional `rankN/`
/// before it. Whether the device exists is not known here.
struct CROTON_API DeviceName {
  static constexpr int kNoRank = -1;
  static constexpr std::int64_t kNoPci = -1;

  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  int rank = kNoRank;
  /// The PCI address: domain << 16 | bus << 8 | device << 3 | function; then `index` means nothing.
  std::int64_t pci = kNoPci;

  bool operator==(const DeviceName&) const = default;
};

/// The canonical text: `cpu0`, `cuda1`, `cuda@0000:3b:00.0`, `null`, `rank2/cuda0`.
CROTON_API std::string to_string(const DeviceName& device);

/// "0000:3b:00.0"
CROTON_API std::string pci_text(std::int64_t pci);

/// Reads a device name; blanks around it are dropped. Nothing when `text` is not one.
CROTON_API std::optional<DeviceName> find_device_name(std::string_view text);

/// Reads a device name. A ConfigError says what is wrong and what was probably meant.
CROTON_API DeviceName parse_device_name(std::string_view text);

/// One `name->device` of a context map.
struct CROTON_API ContextBinding {
  std::string name;
  DeviceName device;

  bool operator==(const ContextBinding&) const = default;
};

/// The bound contexts in the order in which they were written. Names are unique; several may share
/// a device.
using ContextMap = std::vector<ContextBinding>;

/// Reads `name->device;name->device`; blanks and a last `;` are dropped, an empty text is an empty
/// map. A ConfigError gives the position, what was read, what is expected and the line to write
/// instead. `origin` says in the message where the text came from.
CROTON_API ContextMap parse_context_map(std::string_view text, std::string_view origin = {});

/// The canonical text of `map`, which reads back as `map`.
CROTON_API std::string to_string(const ContextMap& map);

/// Whether `name` is kept for devices (`cpu`, `cpuN`, `cuda*`, `null`) and so cannot name a
/// context.
CROTON_API bool is_reserved_context_name(std::string_view name);

}  // namespace croton
