#include "config/flag_string.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "config/device_guess.h"
#include "config/flag_table.h"
#include "config/text.h"
#include "croton/error.h"

namespace croton {
namespace {

constexpr std::size_t npos = std::string_view::npos;

/// Where one item stands in the text.
struct Item {
  std::size_t begin;
  std::size_t end;
  bool bare_comma = false;  // a comma outside quotes belongs to it
};

/// The first of `stops` outside quotes at or after `from`; the end of the text inside an open
/// quote.
std::size_t find_bare(std::string_view text, std::string_view stops, std::size_t from = 0) {
  char quote = 0;
  for (std::size_t i = from; i < text.size(); ++i) {
    if (quote) {
      if (text[i] == quote) quote = 0;
    } else if (stops.find(text[i]) != npos) {
      return i;
    } else if (text[i] == '\'' || text[i] == '"') {
      quote = text[i];
    }
  }
  return npos;
}

/// Splits at commas that stand neither in quotes nor in braces.
std::vector<Item> split_items(std::string_view text) {
  std::vector<Item> items;
  std::size_t begin = 0, at = 0;
  bool bare_comma = false;
  while (true) {
    std::size_t stop = find_bare(text, ",{", at);
    if (stop != npos && text[stop] == '{') {
      // A brace that is never closed protects nothing.
      std::size_t close = find_bare(text, "}", stop);
      bare_comma |= close != npos && find_bare(text.substr(0, close), ",", stop) != npos;
      at = close == npos ? stop + 1 : close;
      continue;
    }
    items.push_back({begin, std::min(stop, text.size()), bare_comma});
    if (stop == npos) return items;
    begin = at = stop + 1;
    bare_comma = false;
  }
}

/// The `=` that ends the name of an item; the first of `=>` is none.
std::size_t find_assignment(std::string_view item) {
  std::size_t found = find_bare(item, "=");
  if (found != npos && item.substr(found).starts_with("=>")) return npos;
  return found;
}

/// Whether an item after a `contexts` is one more pair of it, with `=` for the arrow.
bool is_misread_pair(std::string_view item, std::size_t equals) {
  return !find_flag(trim(item.substr(0, equals))) && guess_device(item.substr(equals + 1));
}

[[noreturn]] void throw_no_assignment(std::string_view text, const Item& item) {
  std::string_view read = trim(text.substr(item.begin, item.end - item.begin));
  std::string hint = "separate flags with commas";
  if (const FlagInfo* flag = find_flag(read)) {
    bool on = flag->type == FlagType::boolean;
    hint = fmt::format("write {}={}", read, on ? "on" : flag->allowed);
  } else if (read.find("->") != npos || read.find("=>") != npos) {
    std::string meant = guess_context_map(read);
    hint = fmt::format("write contexts={}", meant.empty() ? "dev0->cuda0" : meant);
  } else if (auto device = guess_device(read)) {
    hint = fmt::format("write device={}", to_string(*device));
  } else if (read.starts_with('"') || read.starts_with('\'')) {
    hint = "leave out the quotes around the whole";
  }
  std::size_t at = text.find_first_not_of(kBlanks, item.begin);
  throw ConfigError(
      fmt::format("[CROTON_FLAGS] at position {} read '{}', expected name=value with an '='; {}",
                  position_of(text, at), read, hint));
}

/// Drops empty items and gives an item without a name of its own back to the one before.
std::vector<Item> join_items(std::string_view text) {
  std::vector<Item> joined;
  bool in_contexts = false;
  for (const Item& item : split_items(text)) {
    std::string_view content = text.substr(item.begin, item.end - item.begin);
    if (trim(content).empty()) continue;
    std::size_t equals = find_assignment(content);
    bool starts = equals != npos && !(in_contexts && is_misread_pair(content, equals));
    if (starts) {
      in_contexts = trim(content.substr(0, equals)) == "contexts";
      joined.push_back(item);
    } else if (joined.empty() || find_flag(trim(content))) {
      throw_no_assignment(text, item);
    } else {
      joined.back().end = item.end;
      joined.back().bare_comma = true;
    }
  }
  return joined;
}

/// Finds `floatX=float64 device=cpu`: another flag's assignment inside a value.
void check_separators(std::string_view text, std::size_t begin, std::size_t end) {
  for (const FlagInfo& flag : all_flags()) {
    for (std::size_t at = begin; (at = text.find(flag.name, at)) < end; ++at) {
      std::size_t after = text.find_first_not_of(kBlanks, at + flag.name.size());
      bool assigns = after < end && text[after] == '=' && !text.substr(after).starts_with("=>");
      bool apart = at > begin && (kBlanks.find(text[at - 1]) != npos || text[at - 1] == ';');
      std::size_t open = npos;
      remove_quotes(text.substr(begin, at - begin), open);
      if (!assigns || !apart || open != npos) continue;
      throw ConfigError(fmt::format(
          "[CROTON_FLAGS] at position {} read '{}=', expected ',' before it: flags are separated "
          "by commas",
          position_of(text, at), flag.name));
    }
  }
}

[[noreturn]] void throw_bare_comma(const FlagInfo& flag, std::string_view value) {
  std::string mended(value);
  std::string rule = "quotes protect a comma";
  if (flag.type == FlagType::names) {
    std::ranges::replace(mended, ',', ':');
    rule = "names are separated by ':'";
  } else {
    mended = "'" + mended + "'";
  }
  throw ConfigError(
      fmt::format("[{}] got '{}' from CROTON_FLAGS: a comma ends the value, and "
                  "behind it stands no name=value; {}: write {}={}",
                  flag.name, value, rule, flag.name, mended));
}

}  // namespace

std::string remove_quotes(std::string_view value, std::size_t& at) {
  std::string plain;
  std::size_t open = npos;
  for (std::size_t i = 0; i < value.size(); ++i) {
    char c = value[i];
    if (open == npos && (c == '\'' || c == '"')) {
      open = i;
    } else if (open != npos && c == value[open]) {
      open = npos;
    } else {
      plain += c;
    }
  }
  at = open;
  return plain;
}

std::vector<Assignment> parse_flag_string(std::string_view text) {
  std::size_t open = npos;
  remove_quotes(text, open);
  if (open != npos) {
    throw ConfigError(
        fmt::format("[CROTON_FLAGS] at position {} read {}, expected a second {} that "
                    "closes it",
                    position_of(text, open), text[open], text[open]));
  }
  std::vector<Assignment> assignments;
  for (const Item& item : join_items(text)) {
    std::string_view content = text.substr(item.begin, item.end - item.begin);
    std::size_t equals = find_assignment(content);
    std::string_view name = trim(content.substr(0, equals));
    if (name.empty()) {
      throw ConfigError(
          fmt::format("[CROTON_FLAGS] at position {} read '=', expected the name of a "
                      "flag before it",
                      position_of(text, item.begin + equals)));
    }
    const FlagInfo* flag = find_flag(name);
    if (!flag) throw_unknown_flag(name, "CROTON_FLAGS");
    check_separators(text, item.begin + equals + 1, item.end);
    std::string value = remove_quotes(trim(content.substr(equals + 1)), open);
    bool reads_commas = flag->type == FlagType::contexts || flag->type == FlagType::device;
    if (item.bare_comma && !reads_commas) throw_bare_comma(*flag, value);
    assignments.push_back({std::string(name), value, {Origin::Kind::environment}});
  }
  return assignments;
}

}  // namespace croton
