// The devices of the process and the contexts that are bound to them.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "croton/config.h"
#include "croton/context_map.h"
#include "runtime/fork.h"
#include "runtime/target.h"

namespace croton {

class Context;
class Device;
class KernelCache;

/// One kind of device and how to open its members.
struct DeviceBackend {
  DeviceKind kind = DeviceKind::cpu;
  /// Opens device `index`; DeviceError that says what was tried when it cannot be used.
  std::function<std::shared_ptr<Device>(int index, const Config&)> open;
  /// Names of the devices that exist, such as "cpu0"; must not throw.
  std::function<std::vector<std::string>()> list;
  /// Lines about libraries and versions for `croton devices`; must not throw.
  std::function<std::string()> report;
  /// The index of the device at a PCI address; DeviceError when there is none.
  std::function<int(const std::string& pci_id)> index_at = {};
};

/// cpu, cuda and null.
std::vector<DeviceBackend> default_backends();

/// Devices and contexts, by the flags `contexts`, `device` and `on_missing_device`. Nothing is
/// opened before the first use of a context; then all bound ones are, or none.
class Runtime final : private ForkAware {
 public:
  explicit Runtime(const Config& config, std::vector<DeviceBackend> backends = default_backends());
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Config& config() const { return config_; }

  /// The context called `name`: one of the flag `contexts`, or a device ("cpu", "cpu0", "cuda",
  /// "cuda1", "null"). ConfigError when no such name is bound, DeviceError when a bound device
  /// cannot be used (the message lists every entry that fails, and the devices that exist). Stays
  /// valid as long as this Runtime.
  Context& context(std::string_view name);

  /// The canonical name of a context without opening anything: "cpu0" is "cpu", "cuda" is "cuda0",
  /// "/gpu:0" is the first context bound to cuda0, else that. ConfigError when no such name is
  /// bound; with the flag soft_placement it is "cpu" then, and one line of the log says so.
  std::string canonical_name(std::string_view name) const;

  /// The context for everything that names none: the flag `device`.
  std::string default_context();

  /// Returns when the work of all contexts is done; throws the DeviceError of one that failed.
  void wait();

  /// The bound names in the order of the flag `contexts`.
  std::vector<std::string> bound_names() const;

  /// What the compiler must know of the device of a context.
  const TargetInfo& target(std::string_view context);

  KernelCache& kernel_cache() { return *kernel_cache_; }

  /// Devices, libraries and contexts, for people. Throws nothing: what cannot be opened is told.
  std::string describe_devices();

 private:
  friend class Executable;
  struct Bound;

  void open_all();
  std::shared_ptr<Device> open_device(DeviceName name);
  std::optional<DeviceName> first_gpu() const;
  std::string failure_text(const std::string& errors) const;
  std::string list_devices() const;
  /// Whether the CPU takes the place of GPUs that cannot be used.
  bool falls_back() const;
  void tell_once(const std::string& line) const;
  void before_fork() noexcept override;
  void after_fork(bool child) noexcept override;

  const Config config_;
  std::vector<DeviceBackend> backends_;
  std::unique_ptr<KernelCache> kernel_cache_;
  mutable std::mutex mutex_;
  mutable std::vector<std::string> told_;
  bool opened_ = false;
  std::vector<Bound> bound_;
  std::string default_context_;
  std::vector<std::pair<DeviceName, std::shared_ptr<Device>>> devices_;
  std::mutex post_mutex_;  ///< held while a call queues work on several contexts
};

}  // namespace croton
