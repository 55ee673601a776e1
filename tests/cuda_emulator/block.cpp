#include "tests/cuda_emulator/block.h"

#include <algorithm>
#include <cstring>

#include "tests/cuda_emulator/report.h"
#include "tests/cuda_emulator/settings.h"
#include "tests/cuda_emulator/signals.h"

namespace emulator {
namespace {
constexpr std::size_t kSharedGap = 1024;
constexpr int kPoison = 0xff;
thread_local bool running_here = false;
}  // namespace

Machine* Machine::running = nullptr;

bool Machine::running_on_this_thread() { return running_here; }

Machine::Machine(Order& order, Memory& memory)
    : order_(order), memory_(memory), fibers_(&Machine::fiber_main) {
  shared_ = static_cast<char*>(reserve(kSharedSpan, true));
  memory.fill(checks_);
  checks_.places = order.places();
  checks_.shared = reinterpret_cast<std::uintptr_t>(shared_);
  checks_.shared_cells = static_cast<Cell*>(reserve(kSharedSpan / 4 * sizeof(Cell), true));
  tables_.access = &Machine::on_access;
  tables_.undefined = [](const char* what, const void* pc) {
    running->abandon(719, std::string("undefined: ") + what, pc);
  };
  tables_.barrier = [](BarrierOp op, std::uint32_t value, const void* pc) {
    return running->barrier(op, value, pc);
  };
  tables_.warp = [](WarpOp op, std::uint32_t mask, std::uint64_t value, std::uint32_t argument,
                    std::uint32_t width,
                    const void* pc) { return running->warp(op, mask, value, argument, width, pc); };
  running = this;
}

int Machine::run(const Launch& launch, std::uint32_t node, const Clock& clock) {
  launch_ = launch;
  clock_ = &clock;
  code_ = 0;
  checks_.node = node;
  checks_.clock = clock.ticks.data();
  checks_.clock_size = static_cast<std::uint32_t>(clock.ticks.size());
  checks_.device_bit = 1u << launch.device;
  checks_.static_shared_bytes = launch.static_shared;
  const std::uintptr_t dynamic = (launch.static_shared + kSharedGap + 255) / 256 * 256;
  checks_.dynamic_shared = checks_.shared + dynamic;
  checks_.dynamic_shared_bytes = launch.dynamic_shared;
  count_ = launch.block[0] * launch.block[1] * launch.block[2];
  const std::uint64_t blocks = std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  use_signal_stack();
  const Memory::Open open(memory_);
  for (std::uint64_t i = 0; i < blocks && code_ == 0; ++i) {
    start_block(static_cast<std::uint32_t>(settings().descending ? blocks - 1 - i : i));
    running_here = true;
    run_block();
    running_here = false;
  }
  if (code_ != 0) fibers_.reset();
  return code_;
}

void Machine::start_block(std::uint32_t index) {
  block_index_ = index;
  threads_.assign(count_, Thread{});
  warps_.assign((count_ + 31) / 32, {~0u, 0});
  if (count_ % 32) warps_.back().alive = (1u << count_ % 32) - 1;
  ready_.clear();
  started_ = done_ = waiting_ = barrier_epoch_ = 0;
  std::memset(shared_, kPoison, launch_.static_shared);
  std::memset(reinterpret_cast<void*>(checks_.dynamic_shared), kPoison, launch_.dynamic_shared);
}

// Ready threads go first; then a new one starts.
void Machine::run_block() {
  while (done_ < count_ && code_ == 0) {
    Fiber* fiber = nullptr;
    if (!ready_.empty()) {
      current_ = ready_.front();
      ready_.pop_front();
      threads_[current_].state = State::running;
      fiber = threads_[current_].fiber;
    } else if (started_ < count_) {
      fiber = fibers_.take();
      take_thread(*fiber);
    } else {
      return stuck();
    }
    emulator_switch(&scheduler_, fiber->stack);
  }
}

bool Machine::take_thread(Fiber& fiber) {
  if (started_ == count_) return false;
  const std::uint32_t linear = settings().descending ? count_ - 1 - started_ : started_;
  ++started_;
  current_ = linear;
  threads_[linear].state = State::running;
  threads_[linear].fiber = &fiber;
  ThreadContext& c = *fiber.context;
  const auto spread = [](std::uint32_t index, const std::uint32_t* sizes, std::uint32_t* into) {
    into[0] = index % sizes[0];
    into[1] = index / sizes[0] % sizes[1];
    into[2] = index / sizes[0] / sizes[1];
  };
  spread(linear, launch_.block, c.thread);
  spread(block_index_, launch_.grid, c.block);
  std::copy_n(launch_.block, 3, c.block_size);
  std::copy_n(launch_.grid, 3, c.grid_size);
  c.static_shared = shared_;
  c.dynamic_shared = reinterpret_cast<char*>(checks_.dynamic_shared);
  c.linear = linear;
  c.block_linear = block_index_;
  c.epoch = barrier_epoch_ << 16;
  c.fenced = 0;
  return true;
}

// One fiber runs threads as plain calls until one has to wait: a kernel without barriers costs one
// switch a block.
void Machine::fiber_main() {
  Machine& m = machine();
  for (;;) {
    Fiber* fiber = m.threads_[m.current_].fiber;
    do {
      m.launch_.kernel->call(m.launch_.arguments);
      m.finish_thread();
    } while (m.take_thread(*fiber));
    m.fibers_.give(fiber);
    emulator_switch(&fiber->stack, m.scheduler_);
  }
}

void Machine::finish_thread() {
  threads_[current_].state = State::done;
  threads_[current_].fiber = nullptr;
  ++done_;
  leave(current_ / 32, current_ % 32);
  check_barrier();
}

void Machine::suspend() {
  Fiber* fiber = threads_[current_].fiber;
  emulator_switch(&fiber->stack, scheduler_);
}

void Machine::make_ready(std::uint32_t first, std::uint32_t last, State from) {
  for (std::uint32_t i = first; i < last; ++i) {
    const std::uint32_t t = settings().descending ? first + last - 1 - i : i;
    if (threads_[t].state != from) continue;
    threads_[t].state = State::ready;
    ready_.push_back(t);
  }
}

// A barrier opens when all threads that still run have come.
void Machine::check_barrier() {
  if (waiting_ == 0 || started_ < count_ || waiting_ + done_ < count_) return;
  std::uint64_t sum = 0;
  for (const Thread& t : threads_) sum += t.state == State::barrier ? t.value : 0;
  std::uint64_t result = sum;
  if (barrier_op_ == BarrierOp::all) result = sum == waiting_;
  if (barrier_op_ == BarrierOp::any) result = sum != 0;
  ++barrier_epoch_;
  for (Thread& t : threads_) {
    if (t.state != State::barrier) continue;
    t.result = result;
    t.fiber->context->epoch = barrier_epoch_ << 16;
  }
  waiting_ = 0;
  make_ready(0, count_, State::barrier);
}

std::uint32_t Machine::barrier(BarrierOp op, std::uint32_t value, const void* pc) {
  Thread& me = threads_[current_];
  if (waiting_ == 0) {
    barrier_pc_ = pc;
    barrier_op_ = op;
  } else if (op != barrier_op_ ||
             (pc != barrier_pc_ && source_line(pc) != source_line(barrier_pc_))) {
    abandon(719,
            "barrier divergence: other threads of the block wait at " + source_line(barrier_pc_),
            pc);
  }
  me.state = State::barrier;
  me.pc = pc;
  me.value = value;
  ++waiting_;
  check_barrier();
  suspend();
  return static_cast<std::uint32_t>(threads_[current_].result);
}

void Machine::stuck() {
  std::map<std::string, int> places;
  for (const Thread& t : threads_) {
    if (t.state == State::barrier) ++places["at the barrier of " + source_line(t.pc)];
    if (t.state == State::warp) ++places["at the warp operation of " + source_line(t.pc)];
  }
  std::string text = format("barrier divergence: kernel %s, block %u: threads wait for one another",
                            launch_.name, block_index_);
  for (const auto& [place, threads] : places) text += format("; %d %s", threads, place.c_str());
  if (done_) text += format("; %u have returned", done_);
  report(text);
  code_ = 702;
}

Order& order() {
  static auto& all = *new Order;
  return all;
}

Memory& memory() {
  static auto& all = *new Memory(order());
  return all;
}

Machine& machine() {
  static auto& all = *new Machine(order(), memory());
  return all;
}

}  // namespace emulator
