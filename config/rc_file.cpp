#include "config/rc_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "config/flag_string.h"
#include "config/flag_table.h"
#include "config/nearest_name.h"
#include "config/text.h"
#include "croton/error.h"

namespace croton {
namespace {

/// `global` and the dotted prefixes of the flags.
std::set<std::string> section_names() {
  std::set<std::string> sections{"global"};
  for (const FlagInfo& flag : all_flags()) {
    std::size_t dot = flag.name.rfind('.');
    if (dot != flag.name.npos) sections.emplace(flag.name.substr(0, dot));
  }
  return sections;
}

[[noreturn]] void fail(const Origin& place, const std::string& message) {
  throw ConfigError(fmt::format("[rc file] {}: {}", source_text(place), message));
}

std::string read_section(std::string_view line, const Origin& place) {
  if (!line.ends_with(']')) fail(place, fmt::format("read '{}', expected [section]", line));
  std::string name(trim(line.substr(1, line.size() - 2)));
  static const std::set<std::string> known = section_names();
  if (!known.contains(name)) {
    fail(place,
         fmt::format("there is no section [{}], expected [{}]", name, fmt::join(known, "], [")));
  }
  return name;
}

Assignment read_assignment(std::string_view line, const std::string& section, const Origin& place) {
  std::size_t equals = line.find('=');
  if (equals == line.npos || trim(line.substr(0, equals)).empty()) {
    fail(place, fmt::format("read '{}', expected name = value, [section], or a comment that begins "
                            "with # or ;",
                            line));
  }
  std::string name(trim(line.substr(0, equals)));
  if (section.empty()) {
    fail(place, fmt::format("'{}' stands before the first section; write [global] above it", name));
  }
  if (section != "global") name = section + "." + name;
  if (!find_flag(name)) throw_unknown_flag(name, source_text(place));
  std::string_view value = trim(line.substr(equals + 1));
  bool quoted = value.size() >= 2 && (value[0] == '"' || value[0] == '\'') &&
                value.find(value[0], 1) == value.size() - 1;
  if (quoted) value = value.substr(1, value.size() - 2);
  return {std::move(name), std::string(value), place};
}

}  // namespace

std::vector<Assignment> read_rc_file(const std::string& path, bool must_exist) {
  std::error_code error;
  auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::not_found && !must_exist) return {};
  std::ifstream file(path);
  if (kind == std::filesystem::file_type::directory) errno = EISDIR;
  if (!file || kind == std::filesystem::file_type::directory) {
    throw ConfigError(fmt::format("[rc file] cannot read '{}': {}{}", path, std::strerror(errno),
                                  must_exist ? "; a file that CROTONRC names must exist" : ""));
  }
  std::vector<Assignment> assignments;
  std::string section, text;
  Origin place{Origin::Kind::file, path, 0};
  while (std::getline(file, text)) {
    ++place.line;
    std::string_view line = text;
    if (place.line == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    line = trim(line);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      section = read_section(line, place);
    } else {
      assignments.push_back(read_assignment(line, section, place));
    }
  }
  return assignments;
}

}  // namespace croton
