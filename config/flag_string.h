#pragma once

#include <string_view>
#include <vector>

#include "config/origin.h"

namespace croton {

/// Takes CROTON_FLAGS apart: `name=value` items separated by commas; blanks around names and values
/// are dropped, quotes protect commas and blanks, nothing is an escape or a comment. Names are
/// known flags; values are not looked at, but those of `contexts` and `device` reach their readers
/// whole where a comma stands in them, so that these can say what was meant. In written order.
std::vector<Assignment> parse_flag_string(std::string_view text);

/// `value` without the quotes in it; `at` gets the place of one that is never closed, else npos.
std::string remove_quotes(std::string_view value, std::size_t& at);

}  // namespace croton
