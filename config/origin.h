#pragma once

#include <string>

namespace croton {

/// Where the value of a flag was written.
struct Origin {
  enum class Kind { built_in, environment, file, code };

  Kind kind = Kind::built_in;
  std::string file = {};
  int line = 0;
};

/// For listings: `default`, `environment`, `FILE:LINE`, `code (FILE:LINE)`.
std::string source_text(const Origin& origin);

/// For messages: the same, but the environment as the variable that the user set.
std::string place_text(const Origin& origin);

/// One `name = value` that somebody wrote.
struct Assignment {
  std::string name;
  std::string value;
  Origin origin;
};

}  // namespace croton
