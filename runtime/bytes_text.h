#pragma once

#include <cstdint>
#include <string>

namespace croton {

/// "512 bytes", "1.5 GiB"; "an unknown number of bytes" where negative.
std::string bytes_text(std::int64_t bytes);

}  // namespace croton
