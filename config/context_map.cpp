#include "croton/context_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/device_guess.h"
#include "config/text.h"
#include "croton/error.h"

namespace croton {
namespace {

constexpr std::string_view kArrow = "->";

/// A part of the map's text and where it begins.
struct Piece {
  std::string_view text;
  std::size_t at;
};

Piece trim_piece(Piece piece) {
  std::size_t blanks = piece.text.find_first_not_of(kBlanks);
  if (blanks == piece.text.npos) return {{}, piece.at + piece.text.size()};
  return {trim(piece.text), piece.at + blanks};
}

/// A piece without an arrow: what stands where the arrow should be.
Fault find_arrow_fault(const Piece& piece) {
  constexpr std::string_view kMisreadings[] = {"=>", "\u2192", "~>", ":=", ">", "=", ":"};
  for (std::string_view wrong : kMisreadings) {
    std::size_t found = piece.text.find(wrong);
    if (found != piece.text.npos) return {piece.at + found, std::string(wrong), "'->'"};
  }
  if (piece.text.ends_with('-')) {
    return {piece.at + piece.text.size() - 1, "-",
            "'->' (a shell takes '>' and ';' for itself unless the text stands in quotes)"};
  }
  if (find_device_name(piece.text)) {
    return {piece.at, std::string(piece.text), "a name and '->' before the device"};
  }
  return {piece.at, std::string(piece.text), "'->' and a device after the name"};
}

std::optional<Fault> find_name_fault(const Piece& name, const ContextMap& map) {
  if (name.text.empty()) return Fault{name.at, "->", "a name before the arrow"};
  if (is_reserved_context_name(name.text)) {
    return Fault{name.at, std::string(name.text),
                 "a name of your own: cpu, cuda* and null are kept for devices"};
  }
  if (!is_context_name(name.text)) {
    return Fault{name.at, std::string(name.text),
                 "a name of letters, digits, '_' and '.' that begins with a letter or '_'"};
  }
  auto same = std::ranges::find(map, name.text, &ContextBinding::name);
  if (same == map.end()) return std::nullopt;
  return Fault{
      name.at, std::string(name.text),
      fmt::format("another name: this one is already bound to {}", to_string(same->device))};
}

std::optional<Fault> read_binding(const Piece& piece, ContextMap& map) {
  if (std::size_t comma = piece.text.find(','); comma != piece.text.npos) {
    return Fault{piece.at + comma, ",", "name->device pairs separated by ';'"};
  }
  std::size_t arrow = piece.text.find(kArrow);
  if (arrow == piece.text.npos) return find_arrow_fault(piece);
  std::size_t second = piece.text.find(kArrow, arrow + 2);
  if (second != piece.text.npos) {
    return Fault{piece.at + second, "->", "';' between two pairs: each holds one arrow"};
  }
  Piece name = trim_piece({piece.text.substr(0, arrow), piece.at});
  Piece device = trim_piece({piece.text.substr(arrow + 2), piece.at + arrow + 2});
  // An empty name is reported where the arrow stands.
  if (name.text.empty()) name.at = piece.at;
  if (auto fault = find_name_fault(name, map)) return fault;
  if (device.text.empty()) return Fault{device.at, "", "a device after the arrow"};
  auto parsed = find_device_name(device.text);
  if (!parsed) {
    Fault fault = find_device_fault(device.text);
    fault.at += device.at;
    return fault;
  }
  map.push_back({std::string(name.text), *parsed});
  return std::nullopt;
}

}  // namespace

std::optional<Fault> read_context_map(std::string_view text, ContextMap& map) {
  if (trim(text).empty()) return std::nullopt;
  std::size_t brace = text.find_first_of("{}[]()");
  if (brace != text.npos) {
    return Fault{brace, std::string(1, text[brace]), "each name->device pair written out"};
  }
  std::size_t at = 0;
  auto pieces = split(text, ';');
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Piece piece = trim_piece({pieces[i], at});
    at += pieces[i].size() + 1;
    if (piece.text.empty() && i > 0 && i + 1 == pieces.size()) break;
    if (piece.text.empty()) return Fault{piece.at, ";", "name->device before it"};
    if (auto fault = read_binding(piece, map)) return fault;
  }
  return std::nullopt;
}

ContextMap parse_context_map(std::string_view text, std::string_view origin) {
  ContextMap map;
  auto fault = read_context_map(text, map);
  if (!fault) return map;
  std::string meant = guess_context_map(text);
  if (meant.empty()) meant = "dev0->cuda0;dev1->cuda1";
  throw ConfigError(fmt::format("[contexts] got '{}'{}{}: {}; write contexts={}", text,
                                origin.empty() ? "" : " from ", origin, describe(*fault, text),
                                meant));
}

std::string to_string(const ContextMap& map) {
  std::string text;
  for (const ContextBinding& binding : map) {
    if (!text.empty()) text += ';';
    text += binding.name + "->" + to_string(binding.device);
  }
  return text;
}

bool is_reserved_context_name(std::string_view name) {
  if (name == "null" || name.starts_with("cuda")) return true;
  return name.starts_with("cpu") && std::ranges::all_of(name.substr(3), is_digit);
}

bool is_context_name(std::string_view name) {
  auto is_inner = [](char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '.'; };
  return !name.empty() && (is_letter(name[0]) || name[0] == '_') &&
         std::ranges::all_of(name, is_inner);
}

}  // namespace croton
