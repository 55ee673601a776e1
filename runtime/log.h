#pragma once

#include <string_view>

namespace croton {

/// Prints "croton: warning: ..." on stderr, unless the flag `log_level` is above `warn`.
void log_warning(std::string_view text);

/// Prints "croton: ..." on stderr when the flag `log_level` is `info` or lower.
void log_info(std::string_view text);

/// Prints "croton: ..." on stderr when the flag `log_level` is `debug` or lower.
void log_debug(std::string_view text);

/// Sets the least serious lines that are printed: 0 trace, 1 debug, 2 info, 3 warn, 4 error, 5 off.
void set_log_level(int level);

}  // namespace croton
