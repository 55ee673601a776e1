// Stacks on which the threads of a block run, and the way from one to another.
#pragma once

#include <memory>
#include <vector>

#include "tests/cuda_emulator/abi.h"

namespace emulator {

extern "C" void emulator_switch(void** save, void* to);

struct Fiber {
  void* stack = nullptr;  // where it goes on
  char* slot = nullptr;
  ThreadContext* context = nullptr;
};

/// Fibers are made once and used again. `entry` never returns.
class FiberPool {
 public:
  explicit FiberPool(void (*entry)()) : entry_(entry) {}
  Fiber* take();
  void give(Fiber* fiber) { idle_.push_back(fiber); }
  /// Forgets what all fibers were doing.
  void reset();
  /// Whether `address` lies in the guard below some stack.
  bool in_guard(std::uintptr_t address) const;

 private:
  void prepare(Fiber& fiber) const;

  void (*entry_)();
  std::vector<std::unique_ptr<Fiber>> all_;
  std::vector<Fiber*> idle_;
};

}  // namespace emulator
