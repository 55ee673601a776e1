#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "croton/config.h"

namespace croton {

/// A flag's value: bool; number, bytes or the place of a choice; text or path; names; contexts;
/// device (none: `auto`).
using TypedValue = std::variant<bool, std::int64_t, std::string, std::vector<std::string>,
                                ContextMap, std::optional<DeviceName>>;

/// Reads `text` as a value of `flag`. `place` says in the ConfigError where it was written, `home`
/// takes the place of `~`.
TypedValue parse_value(const FlagInfo& flag, std::string_view text, std::string_view place,
                       const std::string& home);

/// The canonical text, which parse_value reads back.
std::string print_value(const FlagInfo& flag, const TypedValue& value);

}  // namespace croton
