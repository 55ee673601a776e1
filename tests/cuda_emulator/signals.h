#pragma once

namespace emulator {

/// Installs the handlers; those that stood before get what is not the emulator's.
void catch_signals();

/// Gives the calling thread a stack for signal handlers.
void use_signal_stack();

}  // namespace emulator
