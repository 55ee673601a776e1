// Runs the threads of a grid: blocks one after the other, the threads of a block as fibers.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "tests/cuda_emulator/abi.h"
#include "tests/cuda_emulator/checks.h"
#include "tests/cuda_emulator/fiber.h"
#include "tests/cuda_emulator/memory.h"
#include "tests/cuda_emulator/order.h"

namespace emulator {

/// Addresses of shared memory.
constexpr std::size_t kSharedSpan = 512 * 1024;

struct Launch {
  const Kernel* kernel = nullptr;
  const char* name = "";
  void** arguments = nullptr;
  std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  std::uint32_t static_shared = 0;  // of the whole module
  std::uint32_t dynamic_shared = 0;
  int device = 0;
};

class Machine {
 public:
  Machine(Order& order, Memory& memory);
  /// The tables that libraries of kernels are attached to.
  const Tables& tables() const { return tables_; }

  /// Runs a launch as node `node`, which comes after `clock`. Faults are reported, and the driver's
  /// error is returned; 0 for none.
  int run(const Launch& launch, std::uint32_t node, const Clock& clock);

  /// Checks and records that `node` reads or writes a range of device memory by other means than a
  /// kernel. False when that is unordered with other work, which is reported.
  bool access(std::uintptr_t address, std::uint64_t bytes, bool write, std::uint32_t node,
              const Clock& clock);
  /// Records that `node` uses an allocation. False (and a report) when it may not yet exist.
  bool touch(std::uint32_t allocation, std::uint32_t node, const Clock& clock);

 private:
  enum class State : std::uint8_t { unstarted, running, ready, barrier, warp, done };
  struct Thread {
    State state = State::unstarted;
    Fiber* fiber = nullptr;
    const void* pc = nullptr;
    WarpOp op = WarpOp::sync;
    std::uint32_t mask = 0, argument = 0, width = 32;
    std::uint64_t value = 0, result = 0;
  };
  struct Warp {
    std::uint32_t alive = 0, waiting = 0;  // lanes
  };

  static void fiber_main();
  void run_block();
  void start_block(std::uint32_t index);
  bool take_thread(Fiber& fiber);
  void finish_thread();
  void suspend();
  void make_ready(std::uint32_t first, std::uint32_t last, State from);
  void check_barrier();
  std::uint32_t barrier(BarrierOp op, std::uint32_t value, const void* pc);
  std::uint64_t warp(WarpOp op, std::uint32_t mask, std::uint64_t value, std::uint32_t argument,
                     std::uint32_t width, const void* pc);
  void meet(std::uint32_t warp, std::uint32_t mask, std::uint32_t running);
  void leave(std::uint32_t warp, std::uint32_t lane);
  void compute(std::uint32_t warp, std::uint32_t lanes);
  std::uint64_t shuffled(std::uint32_t warp, std::uint32_t lane, std::uint32_t lanes);
  std::uint64_t reduced(std::uint32_t warp, std::uint32_t lanes) const;
  void stuck();

  [[noreturn]] void abandon(int code, const std::string& what, const void* pc);
  std::string where() const;
  std::string argument_of(std::uintptr_t address) const;
  static void on_access(std::uintptr_t, std::uint32_t bytes, std::uint32_t alignment, AccessKind,
                        const void* pc);
  void touch_in_kernel(std::uint32_t allocation, const void* pc);
  bool elsewhere(std::uintptr_t address, std::uint32_t bytes) const;
  void explain_fault(Fault fault, std::uintptr_t address, std::uint32_t bytes, const char* access,
                     const void* pc);

 public:
  /// For the signal handler: gives up the running block. Must be called on the machine's thread.
  [[noreturn]] void give_up_on_signal(std::uintptr_t address);
  static bool running_on_this_thread();

  // For the checks of accesses.
  static Machine* running;
  bool ordered(std::uint32_t node) const { return order_.after(*clock_, node); }
  std::uint32_t join(std::uint32_t readers, std::uint32_t node) {
    return order_.both(readers, node);
  }
  void explain_race(std::uintptr_t address, std::uint32_t bytes, const char* access,
                    const Access& other, const char* earlier, const void* pc);

 private:
  Order& order_;
  Memory& memory_;
  Tables tables_;
  Checks checks_;
  FiberPool fibers_;
  char* shared_ = nullptr;
  const Clock* clock_ = nullptr;
  Launch launch_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::deque<std::uint32_t> ready_;
  void* scheduler_ = nullptr;
  std::uint32_t block_index_ = 0, count_ = 0, started_ = 0, done_ = 0, waiting_ = 0;
  std::uint32_t current_ = 0, barrier_epoch_ = 0;
  BarrierOp barrier_op_ = BarrierOp::plain;
  const void* barrier_pc_ = nullptr;
  int code_ = 0;
};

/// Those of the process.
Order& order();
Memory& memory();
Machine& machine();

}  // namespace emulator
