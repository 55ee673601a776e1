#include "config/flag_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/nearest_name.h"
#include "config/text.h"
#include "croton/error.h"

namespace croton {
namespace {

namespace type_of {
constexpr FlagType Bool = FlagType::boolean;
constexpr FlagType Int = FlagType::integer;
constexpr FlagType Bytes = FlagType::bytes;
constexpr FlagType Text = FlagType::text;
constexpr FlagType Path = FlagType::path;
constexpr FlagType Names = FlagType::names;
constexpr FlagType Contexts = FlagType::contexts;
constexpr FlagType Device = FlagType::device;
}  // namespace type_of

constexpr FlagInfo kFlags[] = {
#define CROTON_FLAG(type, identifier, name, text, allowed, scope, code, doc) \
  {name, type_of::type, text, allowed, FlagScope::scope, code, doc},
#define CROTON_CHOICE(Enum, values, identifier, name, text, allowed, scope, code, doc) \
  {name, FlagType::choice, text, allowed, FlagScope::scope, code, doc},
#include "croton/flags.def"
#undef CROTON_CHOICE
#undef CROTON_FLAG
};

/// Whether the enumerators `(fast_run, debug)` are the values `FAST_RUN|DEBUG`, in that order.
constexpr bool names_values(std::string_view enumerators, std::string_view allowed) {
  std::size_t at = 0;
  for (char c : enumerators) {
    if (c == '(' || c == ')' || c == ' ') continue;
    if (at == allowed.size()) return false;
    char expected = allowed[at++];
    if (expected >= 'A' && expected <= 'Z') expected = static_cast<char>(expected - 'A' + 'a');
    if (c != (expected == '|' ? ',' : expected)) return false;
  }
  return at == allowed.size();
}

#define CROTON_FLAG(...)
#define CROTON_CHOICE(Enum, values, identifier, name, text, allowed, ...) \
  static_assert(names_values(#values, allowed), name ": enumerators and allowed values differ");
#include "croton/flags.def"
#undef CROTON_CHOICE
#undef CROTON_FLAG

}  // namespace

std::span<const FlagInfo> all_flags() { return kFlags; }

const FlagInfo* find_flag(std::string_view name) {
  auto* found = std::ranges::find(kFlags, name, &FlagInfo::name);
  return found == std::end(kFlags) ? nullptr : found;
}

int flag_index(const FlagInfo& flag) { return static_cast<int>(&flag - kFlags); }

const FlagInfo& flag_info(std::string_view name) {
  const FlagInfo* flag = find_flag(name);
  if (!flag) throw_unknown_flag(name, "code");
  return *flag;
}

FlagScope flag_scope(std::string_view name) { return flag_info(name).scope; }

std::vector<std::string> allowed_values(std::string_view allowed) {
  auto values = split(allowed, '|');
  return {values.begin(), values.end()};
}

void throw_unknown_flag(std::string_view name, std::string_view place) {
  std::vector<std::string_view> names;
  for (const FlagInfo& flag : kFlags) names.push_back(flag.name);
  std::string near = did_you_mean(name, names);
  if (near.empty()) near = "; `croton flags` lists all";
  throw ConfigError(fmt::format("[{}] from {}: there is no flag '{}'{}", name, place, name, near));
}

}  // namespace croton
