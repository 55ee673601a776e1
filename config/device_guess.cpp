#include "config/device_guess.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "config/nearest_name.h"
#include "config/text.h"

namespace croton {
namespace {

// The most devices that a range such as `cuda{0..7}` is written out to.
constexpr int kMaxRange = 64;

/// One pair as far as it could be understood; an empty name is to be invented.
struct Guess {
  std::string name;
  std::string device;
};

std::optional<int> small_number(std::string_view digits) {
  if (digits.empty() || digits.size() > 9 || !std::ranges::all_of(digits, is_digit)) return {};
  return std::stoi(std::string(digits));
}

/// `0,1,2` and `0..2` and `0-2` -> 0, 1, 2.
std::vector<std::string> group_items(std::string_view group) {
  for (std::string_view dots : {"..", "-"}) {
    std::size_t found = group.find(dots);
    if (found == group.npos || group.find(',') != group.npos) continue;
    auto first = small_number(trim(group.substr(0, found)));
    auto last = small_number(trim(group.substr(found + dots.size())));
    if (!first || !last || *last < *first || *last - *first >= kMaxRange) continue;
    std::vector<std::string> items;
    for (int i = *first; i <= *last; ++i) items.push_back(fmt::format("{}", i));
    return items;
  }
  std::vector<std::string> items;
  for (std::string_view item : split(group, ',')) items.emplace_back(trim(item));
  return items;
}

/// `dev{0,1}->cuda{0,1}` -> `dev0->cuda0`, `dev1->cuda1`; a text without braces is itself. Groups
/// of unequal sizes give nothing.
std::vector<std::string> expand_groups(std::string_view text) {
  std::vector<std::vector<std::string>> parts;  // alternately plain text and a group
  std::size_t count = 1;
  while (true) {
    std::size_t open = text.find_first_of("{[(");
    std::size_t close = open == text.npos ? open : text.find_first_of("}])", open);
    parts.push_back({std::string(text.substr(0, close == text.npos ? close : open))});
    if (close == text.npos) break;
    parts.push_back(group_items(text.substr(open + 1, close - open - 1)));
    std::size_t size = parts.back().size();
    if (size != 1 && count != 1 && size != count) return {};
    count = std::max(count, size);
    text.remove_prefix(close + 1);
  }
  std::vector<std::string> expanded(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (const auto& part : parts) expanded[i] += part[part.size() == 1 ? 0 : i];
  }
  return expanded;
}

/// Words between blanks, if each of them is a pair or a device by itself; else the text.
std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  std::string_view rest = trim(text);
  while (!rest.empty()) {
    std::size_t end = std::min(rest.find_first_of(kBlanks), rest.size());
    words.emplace_back(rest.substr(0, end));
    rest = trim(rest.substr(end));
  }
  bool whole = std::ranges::all_of(words, [](const std::string& word) {
    std::size_t arrow = word.find("->");
    if (arrow == word.npos) return guess_device(word) && !small_number(word);
    return arrow > 0 && arrow + 2 < word.size();
  });
  return whole ? words : std::vector<std::string>{std::string(trim(text))};
}

/// The pieces of a list, whatever separates them, with braces written out.
std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> pieces;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    char c = i < text.size() ? text[i] : ';';
    if (c == '{' || c == '[' || c == '(') ++depth;
    if ((c == '}' || c == ']' || c == ')') && depth > 0) --depth;
    bool ends = c == ';' || c == '+' || c == '|' || c == '\n' || (c == ',' && depth == 0);
    if (!ends) continue;
    for (const std::string& expanded : expand_groups(text.substr(begin, i - begin))) {
      for (std::string& word : split_words(expanded)) {
        if (!word.empty()) pieces.push_back(std::move(word));
      }
    }
    begin = i + 1;
  }
  return pieces;
}

/// Splits a piece at whatever was written for the arrow.
std::pair<std::string_view, std::string_view> split_at_arrow(std::string_view piece) {
  for (std::string_view arrow :
       {"-->", "->", "=>", "\u2192", "~>", ">", ":=", "=", ":", " ", "\t", "-"}) {
    std::size_t found = piece.find(arrow);
    if (found == piece.npos) continue;
    std::string_view right = piece.substr(found + arrow.size());
    return {trim(piece.substr(0, found)), trim(right.substr(0, right.find("->")))};
  }
  return {piece, {}};
}

/// The user's own spelling where it is right, else what it most likely means, else nothing.
std::string mend_device(std::string_view text) {
  if (find_device_name(text)) return std::string(trim(text));
  auto meant = guess_device(text);
  return meant ? to_string(*meant) : "";
}

/// A name of the right letters, or nothing.
std::string mend_name(std::string_view text) {
  if (is_reserved_context_name(text)) return {};
  std::string name(text);
  std::ranges::replace_if(
      name, [](char c) { return !is_letter(c) && !is_digit(c) && c != '_' && c != '.'; }, '_');
  if (small_number(name)) name = "dev" + name;
  return is_context_name(name) ? name : "";
}

/// The one or two pairs that a piece stands for.
std::vector<Guess> guess_pairs(std::string_view piece) {
  if (auto device = mend_device(piece); !device.empty()) return {{"", device}};
  auto [left, right] = split_at_arrow(piece);
  std::string device = mend_device(right);
  bool arrow = piece.find("->") != piece.npos;
  if (!arrow && !device.empty() && find_device_name(left))
    return {{"", std::string(left)}, {"", device}};
  if (device.empty() && !mend_device(left).empty()) return {{mend_name(right), mend_device(left)}};
  if (device.empty()) {
    std::size_t digits = left.find_last_not_of("0123456789") + 1;
    auto index = small_number(left.substr(std::min(digits, left.size())));
    device = fmt::format("cuda{}", index.value_or(0));
  }
  return {{mend_name(left), device}};
}

}  // namespace

std::optional<DeviceName> guess_device(std::string_view text) {
  if (auto device = find_device_name(text)) return device;
  // One word and one number, whatever signs stand between them.
  std::string word, digits;
  bool word_ended = false;
  for (char c : trim(text)) {
    if (is_digit(c)) {
      digits += c;
    } else if (is_letter(c) && digits.empty() && !word_ended) {
      word += static_cast<char>(c | 0x20);
    } else if (std::string_view(" :_-#.@").find(c) != std::string_view::npos) {
      word_ended = !word.empty();
    } else {
      return std::nullopt;
    }
  }
  constexpr std::string_view kWords[] = {"cuda", "gpu", "nvidia", "opencl", "cpu", "host"};
  if (word.empty() && digits.empty()) return std::nullopt;
  std::string known = word.empty() ? "cuda" : word.size() < 3 ? "" : nearest_name(word, kWords);
  if (known.empty()) return std::nullopt;
  if (known == "cpu" || known == "host") return DeviceName{};
  return DeviceName{.kind = DeviceKind::cuda, .index = small_number(digits).value_or(0)};
}

std::string guess_context_map(std::string_view text) {
  std::vector<Guess> guesses;
  for (const std::string& piece : split_list(text)) {
    for (Guess& guess : guess_pairs(piece)) guesses.push_back(std::move(guess));
  }
  std::set<std::string> taken;
  for (Guess& guess : guesses) {
    if (!guess.name.empty() && !taken.insert(guess.name).second) guess.name.clear();
  }
  std::string line;
  int next = 0;
  for (Guess& guess : guesses) {
    while (guess.name.empty()) {
      std::string name = fmt::format("dev{}", next++);
      if (taken.insert(name).second) guess.name = name;
    }
    line += fmt::format("{}{}->{}", line.empty() ? "" : ";", guess.name, guess.device);
  }
  ContextMap map;
  return read_context_map(line, map) ? "" : line;
}

std::string explain_device_flag(std::string_view text) {
  constexpr std::string_view kExpected = "one device: cpu, cuda, cudaN, auto or null";
  std::string meant = guess_context_map(text);
  auto with_example = [&] { return meant.empty() ? "dev0->cuda0;dev1->cuda1" : meant; };
  if (std::size_t arrow = text.find('>'); arrow != text.npos) {
    std::size_t at =
        arrow > 0 && (text[arrow - 1] == '-' || text[arrow - 1] == '=') ? arrow - 1 : arrow;
    Fault fault{at, std::string(text.substr(at, arrow - at + 1)), std::string(kExpected)};
    return fmt::format("{}; names are bound to devices by another flag: write contexts={}",
                       describe(fault, text), with_example());
  }
  bool several = meant.find(';') != meant.npos;
  std::size_t mark = text.find_first_of("{[(,;+|");
  if (mark == text.npos && several) mark = text.find_first_of(" \t:");
  if (mark != text.npos) {
    Fault fault{mark, std::string(1, text[mark]), std::string(kExpected)};
    return fmt::format("{}; several devices are used through names: write contexts={}",
                       describe(fault, text), with_example());
  }
  Fault fault = find_device_fault(text);
  if (fault.at == 0) fault.expected = kExpected;
  auto device = guess_device(text);
  std::string_view spelled[] = {"auto", "null", "cpu", "cuda"};
  if (!device) return describe(fault, text) + did_you_mean(text, spelled);
  return fmt::format("{}; write device={}, or contexts=dev0->{} to give it a name",
                     describe(fault, text), to_string(*device), to_string(*device));
}

}  // namespace croton
