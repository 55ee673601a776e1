#pragma once

#include <string>
#include <vector>

#include "config/flag_value.h"
#include "config/origin.h"

namespace croton {

/// What a Config holds.
struct Config::Data {
  struct Entry {
    TypedValue value;
    Origin origin;
  };

  std::vector<Entry> entries;  // in the order of all_flags()
  std::string home;            // for `~` in values set later
};

}  // namespace croton
