// Messages about the program under test.
#pragma once

#include <string>

namespace emulator {

/// Prints lines, to stderr and to the report file if there is one. The first line says what is
/// wrong.
void report(const std::string& text);

/// Says once that this is no GPU.
void announce(const char* library);

/// "file:line" of a place in a host library of kernels, or "?".
std::string source_line(const void* pc);

std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

}  // namespace emulator
