#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "croton/context_map.h"

namespace croton {

/// What is wrong in a text and where.
struct Fault {
  std::size_t at = 0;  // byte
  std::string read;
  std::string expected;
};

/// `at position 5 read '=>', expected '->'` for a fault in `text`.
std::string describe(const Fault& fault, std::string_view text);

/// The first fault of a text that is no device name.
Fault find_device_fault(std::string_view text);

/// The device that was most likely meant: `gpu0`, `CUDA:0`, `cdua0` and `0` all mean `cuda0`.
std::optional<DeviceName> guess_device(std::string_view text);

/// The context map that was most likely meant by a malformed one, or by a list of devices; it reads
/// without fault. Empty where nothing can be guessed.
std::string guess_context_map(std::string_view text);

/// What is wrong with `text` as the value of the flag `device`, and what to write instead.
std::string explain_device_flag(std::string_view text);

/// Whether `name` may name a context as far as its letters go.
bool is_context_name(std::string_view name);

/// Reads a context map into `map`; the first fault, if there is one.
std::optional<Fault> read_context_map(std::string_view text, ContextMap& map);

}  // namespace croton
