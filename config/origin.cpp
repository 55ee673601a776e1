#include "config/origin.h"

#include <fmt/format.h>

namespace croton {

std::string source_text(const Origin& origin) {
  switch (origin.kind) {
    case Origin::Kind::built_in:
      return "default";
    case Origin::Kind::environment:
      return "environment";
    case Origin::Kind::file:
      return fmt::format("{}:{}", origin.file, origin.line);
    case Origin::Kind::code:
      return fmt::format("code ({}:{})", origin.file, origin.line);
  }
  return {};
}

std::string place_text(const Origin& origin) {
  return origin.kind == Origin::Kind::environment ? "CROTON_FLAGS" : source_text(origin);
}

}  // namespace croton
