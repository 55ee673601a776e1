#include "runtime/runtime.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>

#include "config/device_guess.h"
#include "config/device_spec.h"
#include "config/nearest_name.h"
#include "croton/error.h"
#include "runtime/context.h"
#include "runtime/kernel_cache.h"
#include "runtime/log.h"

namespace croton {
namespace {

constexpr DeviceName kCpu{DeviceKind::cpu, 0, DeviceName::kNoRank};

/// What a device is called as a context: "cpu" is the host.
std::string context_name(const DeviceName& device) {
  return device == kCpu ? "cpu" : to_string(device);
}

/// The bound names with every GPU replaced by the CPU: the flag that makes the program run.
std::string on_cpu(const ContextMap& map) {
  ContextMap changed = map;
  for (ContextBinding& binding : changed) {
    if (binding.device.kind == DeviceKind::cuda) binding.device = kCpu;
  }
  std::string text = to_string(changed);
  for (std::size_t p; (p = text.find("cpu0")) != std::string::npos;) text.erase(p + 3, 1);
  return text;
}

/// The flag that puts the CPU in the place of a GPU.
std::string_view reason(const Config& config) {
  return config.on_missing_device() == OnMissingDevice::cpu ? "on_missing_device=cpu"
                                                            : "soft_placement=on";
}

}  // namespace

struct Runtime::Bound {
  std::string name;
  std::unique_ptr<Context> context;
};

Runtime::Runtime(const Config& config, std::vector<DeviceBackend> backends)
    : ForkAware(ForkLevel::runtime),
      config_(config),
      backends_(std::move(backends)),
      kernel_cache_(std::make_unique<KernelCache>(config)) {
  set_log_level(static_cast<int>(config.log_level()));
}

Runtime::~Runtime() = default;

void Runtime::before_fork() noexcept {
  mutex_.lock();
  post_mutex_.lock();
}

void Runtime::after_fork(bool) noexcept {
  post_mutex_.unlock();
  mutex_.unlock();
}

std::string Runtime::canonical_name(std::string_view name) const {
  for (const ContextBinding& binding : config_.contexts()) {
    if (binding.name == name) return binding.name;
  }
  if (is_device_spec(name)) return context_of_spec(parse_device_spec(name), config_.contexts());
  if (const auto device = find_device_name(name)) return context_name(*device);
  if (config_.soft_placement()) {
    tell_once(fmt::format(
        "what asks for context '{}' goes to the CPU instead (soft_placement=on): no flag binds it",
        name));
    return "cpu";
  }
  const std::vector<std::string> bound = bound_names();
  ContextMap wider = config_.contexts();
  wider.push_back({std::string(name), kCpu});
  const auto device = guess_device(name);
  const std::string hint = device ? fmt::format("; did you mean '{}'?", context_name(*device))
                                  : did_you_mean(name, bound);
  throw ConfigError(
      fmt::format("[contexts] no context is called \"{}\"{}: {}; bind it, such as "
                  "CROTON_FLAGS=\"contexts={}\", or use the name of a device (cpu, cuda0)",
                  name, hint,
                  bound.empty() ? std::string("the flag contexts binds no name")
                                : fmt::format("bound are {}", fmt::join(bound, ", ")),
                  to_string(wider)));
}

bool Runtime::falls_back() const {
  return config_.on_missing_device() == OnMissingDevice::cpu || config_.soft_placement();
}

void Runtime::tell_once(const std::string& line) const {
  const std::lock_guard hold(mutex_);
  if (std::ranges::find(told_, line) != told_.end()) return;
  told_.push_back(line);
  log_warning(line);
}

std::vector<std::string> Runtime::bound_names() const {
  std::vector<std::string> names;
  for (const ContextBinding& binding : config_.contexts()) names.push_back(binding.name);
  return names;
}

std::string Runtime::list_devices() const {
  std::vector<std::string> names;
  for (const DeviceBackend& backend : backends_) {
    for (std::string& name : backend.list()) names.push_back(std::move(name));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void Runtime::wait() {
  std::vector<Context*> contexts;
  {
    const std::lock_guard hold(mutex_);
    for (const Bound& b : bound_) contexts.push_back(b.context.get());
  }
  std::exception_ptr failure;
  for (Context* context : contexts) {
    try {
      context->wait();
    } catch (const DeviceError&) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

std::shared_ptr<Device> Runtime::open_device(DeviceName name) {
  if (name.pci != DeviceName::kNoPci && name.rank == DeviceName::kNoRank) {
    for (const DeviceBackend& backend : backends_) {
      if (backend.kind != name.kind || !backend.index_at) continue;
      name.index = backend.index_at(pci_text(name.pci));
      name.pci = DeviceName::kNoPci;
    }
  }
  for (const auto& [known, device] : devices_) {
    if (known == name) return device;
  }
  if (name.rank != DeviceName::kNoRank) {
    throw DeviceError(fmt::format(
        "{} belongs to another process, and this one was not started by a launcher of several; "
        "name a device of this process, such as {}",
        to_string(name), to_string(DeviceName{name.kind, name.index, DeviceName::kNoRank})));
  }
  for (const DeviceBackend& backend : backends_) {
    if (backend.kind != name.kind) continue;
    std::shared_ptr<Device> device = backend.open(name.index, config_);
    device->set_kernel_cache(kernel_cache_.get());
    devices_.emplace_back(name, device);
    return device;
  }
  throw DeviceError(fmt::format("{} is a kind of device that this build of Croton does not have",
                                to_string(name)));
}

void Runtime::open_all() {
  struct Wanted {
    std::string name;
    DeviceName device;
    bool bound;
  };
  std::vector<Wanted> wanted;
  for (const ContextBinding& b : config_.contexts()) wanted.push_back({b.name, b.device, true});
  DeviceName standard = kCpu;
  if (const auto& device = config_.device()) {
    standard = *device;
  } else {
    standard = first_gpu().value_or(kCpu);
  }
  wanted.push_back({context_name(standard), standard, false});
  if (!(standard == kCpu)) wanted.push_back({"cpu", kCpu, false});

  std::vector<Bound> opened;
  std::string errors;
  for (Wanted& w : wanted) {
    std::shared_ptr<Device> device;
    try {
      device = open_device(w.device);
    } catch (const DeviceError& e) {
      const std::string entry =
          w.bound ? w.name + "->" + to_string(w.device) : "device=" + to_string(w.device);
      if (!falls_back() || w.device.kind != DeviceKind::cuda) {
        errors += fmt::format("\n  {}: {}", entry, e.what());
        continue;
      }
      log_warning(
          fmt::format("{} runs on the CPU instead ({}): {}", entry, reason(config_), e.what()));
      device = open_device(kCpu);
    }
    const bool host = w.name == "cpu";
    opened.push_back({w.name, std::make_unique<Context>(w.name, std::move(device),
                                                        config_.pool_limit_bytes(), host)});
  }
  if (!errors.empty()) {
    devices_.clear();
    throw DeviceError(failure_text(errors));
  }
  bound_ = std::move(opened);
  default_context_ = context_name(standard);
  opened_ = true;
}

std::optional<DeviceName> Runtime::first_gpu() const {
  for (const DeviceBackend& backend : backends_) {
    if (backend.kind == DeviceKind::cuda && !backend.list().empty()) {
      return DeviceName{DeviceKind::cuda, 0, DeviceName::kNoRank};
    }
  }
  return {};
}

std::string Runtime::failure_text(const std::string& errors) const {
  const bool gpus =
      std::any_of(config_.contexts().begin(), config_.contexts().end(),
                  [](const ContextBinding& b) { return b.device.kind == DeviceKind::cuda; });
  const std::string mend =
      gpus ? fmt::format("contexts={}", on_cpu(config_.contexts())) : std::string("device=cpu");
  return fmt::format(
      "[contexts] not every device can be used, so none was opened:{}\n  devices that exist: {}\n  "
      "to run without: CROTON_FLAGS=\"{}\", or on_missing_device=cpu to put the CPU in the place "
      "of "
      "every missing GPU",
      errors, list_devices(), mend);
}

Context& Runtime::context(std::string_view name) {
  {
    const std::lock_guard hold(mutex_);
    if (opened_) {
      for (const Bound& b : bound_) {
        if (b.name == name) return *b.context;
      }
    }
  }
  const std::string canonical = canonical_name(name);
  const NoFork no_fork;
  const std::lock_guard hold(mutex_);
  if (!opened_) open_all();
  for (const Bound& b : bound_) {
    if (b.name == canonical) return *b.context;
  }
  const DeviceName device = parse_device_name(canonical);
  std::shared_ptr<Device> opened;
  try {
    opened = open_device(device);
  } catch (const DeviceError& e) {
    if (!falls_back() || device.kind != DeviceKind::cuda) {
      throw DeviceError(
          fmt::format("[contexts] the device \"{}\" cannot be used: {}\n  devices that "
                      "exist: {}; on_missing_device=cpu puts the CPU in the place of "
                      "a missing GPU",
                      name, e.what(), list_devices()));
    }
    log_warning(
        fmt::format("{} runs on the CPU instead ({}): {}", canonical, reason(config_), e.what()));
    opened = open_device(kCpu);
  }
  bound_.push_back({canonical, std::make_unique<Context>(canonical, std::move(opened),
                                                         config_.pool_limit_bytes(), false)});
  return *bound_.back().context;
}

std::string Runtime::default_context() {
  if (const auto& device = config_.device()) return context_name(*device);
  context("cpu");  // opens what there is
  return default_context_;
}

const TargetInfo& Runtime::target(std::string_view name) { return context(name).device().target(); }

std::string Runtime::describe_devices() {
  std::string text = "devices\n";
  for (const DeviceBackend& backend : backends_) {
    for (const std::string& name : backend.list()) {
      text += fmt::format("  {:<8}", name);
      try {
        const NoFork no_fork;
        const std::lock_guard hold(mutex_);
        text += open_device(parse_device_name(name))->description() + "\n";
      } catch (const Error& e) {
        text += fmt::format("cannot be used: {}\n", e.what());
      }
    }
  }
  text += "libraries\n";
  for (const DeviceBackend& backend : backends_) text += backend.report();
  text += "contexts\n";
  if (config_.contexts().empty()) text += "  none are bound (flag contexts)\n";
  for (const ContextBinding& b : config_.contexts()) {
    text += fmt::format("  {:<8}{}", b.name, to_string(b.device));
    try {
      const NoFork no_fork;
      const std::lock_guard hold(mutex_);
      open_device(b.device);
      text += "\n";
    } catch (const Error& e) {
      text += fmt::format("  cannot be used: {}\n", e.what());
    }
  }
  try {
    text += fmt::format("  {:<8}for everything that names no context (flag device)\n",
                        default_context());
  } catch (const Error&) {
    text += "  the default context (flag device) cannot be opened\n";
  }
  return text;
}

}  // namespace croton
