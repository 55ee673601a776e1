#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace croton {

inline constexpr std::string_view kBlanks = " \t\r\n\f\v";

/// `text` without blanks at both ends.
inline std::string_view trim(std::string_view text) {
  std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// The pieces of `text` between separators; one piece, possibly empty, more than separators.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  std::size_t begin = 0;
  while (true) {
    std::size_t end = text.find(separator, begin);
    pieces.push_back(text.substr(begin, end - begin));
    if (end == text.npos) return pieces;
    begin = end + 1;
  }
}

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// The place of byte `offset` of UTF-8 `text` as users count: characters, from 1.
inline int position_of(std::string_view text, std::size_t offset) {
  int position = 1;
  for (std::size_t i = 0; i < offset && i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) ++position;
  }
  return position;
}

}  // namespace croton
