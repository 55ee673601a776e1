#include "config/flag_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "config/device_guess.h"
#include "config/environment.h"
#include "config/flag_table.h"
#include "config/nearest_name.h"
#include "config/text.h"
#include "croton/error.h"

namespace croton {
namespace {

struct Written {
  const FlagInfo& flag;
  std::string_view text;
  std::string_view place;
};

[[noreturn]] void reject(const Written& written, const std::string& expected) {
  throw ConfigError(fmt::format("[{}] got '{}' from {}: {}", written.flag.name, written.text,
                                written.place, expected));
}

bool parse_bool(const Written& written) {
  for (std::string_view yes : {"on", "true", "True", "1"}) {
    if (written.text == yes) return true;
  }
  for (std::string_view no : {"off", "false", "False", "0"}) {
    if (written.text == no) return false;
  }
  reject(written, "expected on or off (true, false, 1 and 0 mean the same)");
}

std::int64_t parse_choice(const Written& written) {
  std::vector<std::string> values = allowed_values(written.flag.allowed);
  auto found = std::ranges::find(values, written.text);
  if (found != values.end()) return found - values.begin();
  reject(written, fmt::format("expected one of {}{}", fmt::join(values, ", "),
                              did_you_mean(written.text, values)));
}

/// `0..` -> "at least 0", `0..8` -> "from 0 to 8", `0|8` -> "one of 0, 8".
std::string describe_range(std::string_view allowed) {
  std::size_t dots = allowed.find("..");
  if (dots == allowed.npos) return fmt::format("one of {}", fmt::join(split(allowed, '|'), ", "));
  std::string_view least = allowed.substr(0, dots), most = allowed.substr(dots + 2);
  if (most.empty()) return fmt::format("at least {}", least);
  return fmt::format("from {} to {}", least, most);
}

std::optional<std::int64_t> to_number(std::string_view text) {
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool in_range(std::int64_t number, std::string_view allowed) {
  std::size_t dots = allowed.find("..");
  if (dots == allowed.npos) {
    return std::ranges::any_of(split(allowed, '|'), [&](auto v) { return to_number(v) == number; });
  }
  auto most = to_number(allowed.substr(dots + 2));
  return number >= to_number(allowed.substr(0, dots)) && (!most || number <= *most);
}

std::int64_t parse_number(const Written& written, std::string_view digits, std::int64_t unit,
                          std::string_view kind) {
  auto number = to_number(digits);
  bool fits = number && in_range(*number, written.flag.allowed) &&
              *number <= std::numeric_limits<std::int64_t>::max() / unit;
  if (!fits) {
    reject(written, fmt::format("expected {}, {}", kind, describe_range(written.flag.allowed)));
  }
  return *number * unit;
}

std::int64_t parse_bytes(const Written& written) {
  constexpr std::string_view kUnits = "KMGT";
  std::string_view digits = written.text;
  std::int64_t unit = 1;
  if (std::size_t power = digits.empty() ? kUnits.npos : kUnits.find(digits.back());
      power != kUnits.npos) {
    unit = std::int64_t{1} << (10 * (power + 1));
    digits.remove_suffix(1);
  }
  return parse_number(written, digits, unit,
                      "a whole number of bytes, perhaps with K, M, G or T behind it");
}

std::vector<std::string> parse_names(const Written& written) {
  std::vector<std::string> names;
  if (written.text.empty()) return names;
  for (std::string_view name : split(written.text, ':')) {
    name = trim(name);
    if (name.empty()) continue;
    std::size_t bad = name.find_first_of(",; \t=");
    if (bad != name.npos) {
      std::string mended(written.text);
      std::ranges::replace_if(
          mended, [](char c) { return c == ',' || c == ';' || c == ' '; }, ':');
      reject(written,
             fmt::format("read '{}' in a name, expected names separated by ':'; write {}={}",
                         name[bad], written.flag.name, mended));
    }
    names.emplace_back(name);
  }
  return names;
}

std::string parse_path(const Written& written, const std::string& home) {
  if (written.text.empty()) reject(written, "expected a path");
  try {
    return expand_home(written.text, home);
  } catch (const ConfigError& error) {
    reject(written, error.what());
  }
}

std::optional<DeviceName> parse_device(const Written& written) {
  if (written.text == "auto") return std::nullopt;
  if (auto device = find_device_name(written.text)) return device;
  reject(written, explain_device_flag(written.text));
}

std::string print_bytes(std::int64_t bytes) {
  constexpr std::string_view kUnits = "TGMK";
  for (std::size_t i = 0; i < kUnits.size() && bytes != 0; ++i) {
    std::int64_t unit = std::int64_t{1} << (10 * (kUnits.size() - i));
    if (bytes % unit == 0) return fmt::format("{}{}", bytes / unit, kUnits[i]);
  }
  return fmt::format("{}", bytes);
}

}  // namespace

TypedValue parse_value(const FlagInfo& flag, std::string_view text, std::string_view place,
                       const std::string& home) {
  Written written{flag, trim(text), place};
  switch (flag.type) {
    case FlagType::boolean:
      return parse_bool(written);
    case FlagType::integer:
      return parse_number(written, written.text, 1, "a whole number");
    case FlagType::bytes:
      return parse_bytes(written);
    case FlagType::choice:
      return parse_choice(written);
    case FlagType::text:
      return std::string(text);
    case FlagType::path:
      written.text = text;
      return parse_path(written, home);
    case FlagType::names:
      return parse_names(written);
    case FlagType::contexts:
      return parse_context_map(text, place);
    case FlagType::device:
      return parse_device(written);
  }
  return {};
}

std::string print_value(const FlagInfo& flag, const TypedValue& value) {
  switch (flag.type) {
    case FlagType::boolean:
      return std::get<bool>(value) ? "on" : "off";
    case FlagType::integer:
      return fmt::format("{}", std::get<std::int64_t>(value));
    case FlagType::bytes:
      return print_bytes(std::get<std::int64_t>(value));
    case FlagType::choice:
      return allowed_values(flag.allowed)[std::get<std::int64_t>(value)];
    case FlagType::text:
    case FlagType::path:
      return std::get<std::string>(value);
    case FlagType::names:
      return fmt::format("{}", fmt::join(std::get<std::vector<std::string>>(value), ":"));
    case FlagType::contexts:
      return to_string(std::get<ContextMap>(value));
    case FlagType::device: {
      const auto& device = std::get<std::optional<DeviceName>>(value);
      return device ? to_string(*device) : "auto";
    }
  }
  return {};
}

}  // namespace croton
