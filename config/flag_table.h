#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "croton/config.h"

namespace croton {

/// The places of the flags in all_flags() and in Config::Data.
enum class FlagId : int {
#define CROTON_FLAG(type, identifier, ...) identifier,
#define CROTON_CHOICE(Enum, values, identifier, ...) identifier,
#include "croton/flags.def"
#undef CROTON_CHOICE
#undef CROTON_FLAG
};

/// The flag called `name`, or null.
const FlagInfo* find_flag(std::string_view name);

/// The place of a flag of the table in it.
int flag_index(const FlagInfo& flag);

/// The values in the `a|b|c` of a flag's allowed text.
std::vector<std::string> allowed_values(std::string_view allowed);

/// `[name] ... : there is no flag 'name'; did you mean ...` for a flag written at `place`.
[[noreturn]] void throw_unknown_flag(std::string_view name, std::string_view place);

}  // namespace croton
