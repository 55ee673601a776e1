#include "tests/cuda_emulator/fiber.h"

#include <sys/mman.h>

#include "tests/cuda_emulator/order.h"

// Ends in a jump: a `ret` would miss the return predictor, which costs three times as much.
asm(R"(
.text
.globl emulator_switch
.hidden emulator_switch
.type emulator_switch, @function
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmpq *%rcx
.size emulator_switch, .-emulator_switch
)");

namespace emulator {
namespace {
constexpr std::uintptr_t kGuardBytes = 4096;
constexpr std::size_t kSlotsAtOnce = 64;
}  // namespace

void FiberPool::prepare(Fiber& fiber) const {
  auto* top = reinterpret_cast<void**>(fiber.slot + kSlotBytes - kContextBytes - 64);
  *--top = nullptr;  // as if `entry` had been called: the stack is 8 bytes off 16
  *--top = reinterpret_cast<void*>(entry_);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  fiber.stack = top;
}

Fiber* FiberPool::take() {
  if (idle_.empty()) {
    const auto raw =
        reinterpret_cast<std::uintptr_t>(reserve((kSlotsAtOnce + 1) * kSlotBytes, true));
    auto slot = reinterpret_cast<char*>((raw + kSlotBytes - 1) / kSlotBytes * kSlotBytes);
    for (std::size_t i = 0; i < kSlotsAtOnce; ++i, slot += kSlotBytes) {
      mprotect(slot, kGuardBytes, PROT_NONE);
      auto& fiber = all_.emplace_back(std::make_unique<Fiber>());
      fiber->slot = slot;
      fiber->context = reinterpret_cast<ThreadContext*>(slot + kSlotBytes - kContextBytes);
      prepare(*fiber);
      idle_.push_back(fiber.get());
    }
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void FiberPool::reset() {
  idle_.clear();
  for (const auto& fiber : all_) {
    prepare(*fiber);
    idle_.push_back(fiber.get());
  }
}

bool FiberPool::in_guard(std::uintptr_t address) const {
  for (const auto& fiber : all_) {
    if (address - reinterpret_cast<std::uintptr_t>(fiber->slot) < kGuardBytes) return true;
  }
  return false;
}

}  // namespace emulator
