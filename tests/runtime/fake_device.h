// A device for tests: kernels are C++ functions, memory can be withheld from the host, limited and
// made to fail.
#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "croton/error.h"
#include "runtime/context.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/jit.h"
#include "runtime/device.h"
#include "runtime/runtime.h"

namespace croton::test {

/// Kernels by name; the text of a module means nothing.
inline std::map<std::string, CpuKernel>& fake_kernels() {
  static std::map<std::string, CpuKernel> kernels;
  return kernels;
}

struct FakeState {
  std::atomic<int> compiled{0};
  /// Compilers wait for that many of them to be at work, or give up after seconds.
  int compilers = 0;
  std::atomic<int> compiling{0};
  std::atomic<std::int64_t> limit{std::int64_t{1} << 40};
  std::atomic<std::int64_t> used{0};
  std::atomic<int> copies{0};
  std::atomic<int> uploads{0};
  std::atomic<int> synchronised{0};
  std::atomic<int> drained{0};
  std::atomic<bool> lost{false};  ///< events cannot be recorded
  std::atomic<bool> dead{false};  ///< no memory is given, nor an answer
  std::atomic<int> replayed{0};
  std::atomic<bool> refuses_replays{false};
  bool captures = false;
  bool host_memory = true;
};

class FakeModule final : public Module {
 public:
  explicit FakeModule(std::string text) : text_(std::move(text)) {}
  KernelHandle kernel(const std::string& name) const override {
    // "streaming:" in front of a text selects the other form of its kernels.
    const auto found =
        fake_kernels().find(text_.starts_with("streaming:") ? "streaming_" + name : name);
    return found == fake_kernels().end() ? nullptr : reinterpret_cast<KernelHandle>(found->second);
  }

 private:
  const std::string text_;
};

class FakeQueue : public Queue {
 public:
  explicit FakeQueue(FakeState& state) : state_(state) {}
  void launch(const Launch& l) override {
    if (recording_ != nullptr) return recording_->add(l);
    auto kernel = reinterpret_cast<CpuKernel>(const_cast<void*>(l.kernel));
    // Two ranges, so that kernels that ignore theirs are found out.
    const std::int64_t middle = l.blocks / 2;
    if (middle > 0) kernel(l.buffers, l.sizes, 0, middle, l.error);
    kernel(l.buffers, l.sizes, middle, l.blocks, l.error);
  }
  void call(const PreparedCall& call, void* const* operands, void* workspace) override {
    call.run(operands, workspace, 1, nullptr);
  }
  void copy(void* target, const void* source, std::size_t bytes) override {
    ++state_.copies;
    std::memcpy(target, source, bytes);
  }
  void copy_to_host(void* target, const void* source, std::size_t bytes) override {
    ++state_.copies;
    std::memcpy(target, source, bytes);
  }
  void upload(void* target, const void* source, std::size_t bytes, std::uint64_t) override {
    ++state_.copies;
    ++state_.uploads;
    std::memcpy(target, source, bytes);
  }
  void zero(void* target, std::size_t bytes) override { std::memset(target, 0, bytes); }
  std::unique_ptr<Event> record() override {
    if (state_.lost) throw DeviceError("the queue was lost");
    return nullptr;
  }
  void synchronize() override { ++state_.synchronised; }
  void drain() noexcept override { ++state_.drained; }
  std::unique_ptr<Recording> capture(const std::function<void()>& steps) override {
    auto made = std::make_unique<FakeRecording>();
    recording_ = made.get();
    steps();
    recording_ = nullptr;
    return made;
  }
  bool captures() const override { return state_.captures; }
  bool replay(const Recording& recording) override {
    if (state_.refuses_replays) return false;
    ++state_.replayed;
    for (const Kept& kept : static_cast<const FakeRecording&>(recording).launches) {
      Launch l = kept.launch;
      l.buffers = kept.buffers.data();
      launch(l);
    }
    return true;
  }

 private:
  /// A launch with the addresses that it was recorded with: the frame's go on to change.
  struct Kept {
    Launch launch;
    std::vector<void*> buffers;
  };
  struct FakeRecording final : Recording {
    std::vector<Kept> launches;
    void add(const Launch& l) { launches.push_back({l, {l.buffers, l.buffers + l.buffer_count}}); }
  };

  FakeState& state_;
  FakeRecording* recording_ = nullptr;
};

/// A library function that throws when it runs.
class FailingCall final : public PreparedCall {
 public:
  void run(void* const*, void*, int, void*) const override {
    throw DeviceError("the library failed");
  }
};
inline const LibraryFunction kFailing{
    "failing", [](const Attrs&, std::span<const OperandType>) { return std::string(); },
    [](Device&, const Attrs&, std::span<const OperandType>) -> std::unique_ptr<PreparedCall> {
      return std::make_unique<FailingCall>();
    }};

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(std::shared_ptr<FakeState> state, std::string name = "cpu0")
      : state_(std::move(state)), name_(std::move(name)) {
    target_.l3_bytes = 1 << 20;
    failed_ = &failed_here_;
  }
  /// As after a fault that a device does not get over.
  void fail() { failed_here_ = true; }
  std::string failure() const override { return name_ + " failed"; }
  std::string name() const override { return name_; }
  std::string description() const override { return "a device for tests"; }
  const TargetInfo& target() const override { return target_; }
  bool host_memory() const override { return state_->host_memory; }
  bool immediate() const override { return state_->host_memory; }
  void* allocate(std::size_t bytes) override {
    if (state_->dead) throw DeviceError("the device was lost");
    if (state_->used.fetch_add(static_cast<std::int64_t>(bytes)) +
            static_cast<std::int64_t>(bytes) >
        state_->limit) {
      state_->used -= static_cast<std::int64_t>(bytes);
      return nullptr;
    }
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    state_->used -= static_cast<std::int64_t>(bytes);
    std::free(memory);
  }
  std::int64_t free_bytes() const override { return state_->limit - state_->used; }
  std::unique_ptr<Queue> new_queue() override { return std::make_unique<FakeQueue>(*state_); }
  std::string compiler_identity() const override { return "fake compiler 1"; }
  std::string compile(const std::string& text) override {
    ++state_->compiled;
    ++state_->compiling;
    for (int i = 0; i < 5000 && state_->compiling < state_->compilers; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return "object of " + text;
  }
  std::shared_ptr<Module> load(std::string_view object, const std::vector<std::string>&) override {
    return std::make_shared<FakeModule>(std::string(object.substr(10)));
  }
  const LibraryFunction* library(std::string_view name) const override {
    return name == "failing" ? &kFailing : find_function(cpu_library(), name);
  }

 private:
  const std::shared_ptr<FakeState> state_;
  const std::string name_;
  TargetInfo target_;
  std::atomic<bool> failed_here_{false};
};

/// cpu0 and cuda0, cuda1 as fakes; the latter with memory of their own.
struct FakeMachine {
  std::shared_ptr<FakeState> cpu = std::make_shared<FakeState>();
  std::shared_ptr<FakeState> gpu = std::make_shared<FakeState>();
  std::shared_ptr<Runtime> runtime;

  void fail(const std::string& device) const {
    for (const char* name : {"dev0", "dev1", "dev2"}) {
      Device& bound = runtime->context(name).device();
      if (bound.name() == device) static_cast<FakeDevice&>(bound).fail();
    }
  }

  explicit FakeMachine(const Config& config) {
    gpu->host_memory = false;
    auto cpu_state = cpu;
    auto gpu_state = gpu;
    std::vector<DeviceBackend> backends;
    backends.push_back({DeviceKind::cpu,
                        [cpu_state](int index, const Config&) -> std::shared_ptr<Device> {
                          if (index > 0) throw DeviceError("there is no such CPU");
                          return std::make_shared<FakeDevice>(cpu_state);
                        },
                        [] { return std::vector<std::string>{"cpu0"}; },
                        [] { return std::string("  fake library 1.0\n"); }});
    backends.push_back({DeviceKind::cuda,
                        [gpu_state](int index, const Config&) -> std::shared_ptr<Device> {
                          if (index > 1) throw DeviceError("there are two fake GPUs");
                          return std::make_shared<FakeDevice>(gpu_state,
                                                              "cuda" + std::to_string(index));
                        },
                        [] {
                          return std::vector<std::string>{"cuda0", "cuda1"};
                        },
                        [] { return std::string(); }});
    runtime = std::make_shared<Runtime>(config, std::move(backends));
  }
};

inline Config no_cache(std::string_view flags = "") {
  return Config::from_text(flags).with("cache", false);
}

}  // namespace croton::test
