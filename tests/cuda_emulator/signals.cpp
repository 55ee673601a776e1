// Signals of the processor: faults in kernels, and the host touching device memory.
#include "tests/cuda_emulator/signals.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstring>

#include "tests/cuda_emulator/block.h"
#include "tests/cuda_emulator/report.h"

namespace emulator {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
struct sigaction before[4];
std::uintptr_t fault_address = 0;
alignas(64) char rescue_stack[64 * 1024];

void rescue() { machine().give_up_on_signal(fault_address); }

void pass_on(int signal) {
  for (int i = 0; i < 4; ++i) {
    if (kSignals[i] == signal) sigaction(signal, &before[i], nullptr);
  }  // the instruction runs again and meets the handler that was there
}

// A fault in a kernel goes on in `rescue`, on a stack of its own, because the thread's may be used
// up.
void handle(int signal, siginfo_t* info, void* data) {
  fault_address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (Machine::running_on_this_thread()) {
    auto* context = static_cast<ucontext_t*>(data);
    const auto top = reinterpret_cast<std::uintptr_t>(rescue_stack) + sizeof rescue_stack - 64;
    context->uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>(top - 8);
    context->uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(&rescue);
    return;
  }
  if (signal == SIGSEGV && memory().is_device(fault_address)) {
    report("device pointer used on the host: " + memory().describe(fault_address));
  }
  pass_on(signal);
}

}  // namespace

void use_signal_stack() {
  thread_local bool done = false;
  if (done) return;
  done = true;
  stack_t now;
  if (sigaltstack(nullptr, &now) == 0 && !(now.ss_flags & SS_DISABLE)) return;
  stack_t own{};
  own.ss_size = 64 * 1024;
  own.ss_sp = reserve(own.ss_size, true);
  sigaltstack(&own, nullptr);
}

void catch_signals() {
  static bool installed = false;
  if (installed) return;
  installed = true;
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_sigaction = &handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (int i = 0; i < 4; ++i) sigaction(kSignals[i], &action, &before[i]);
}

}  // namespace emulator
