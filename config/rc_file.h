#pragma once

#include <string>
#include <vector>

#include "config/origin.h"

namespace croton {

/// Reads an rc file: `[global]` and one section per dotted prefix, `name = value` lines, comments
/// after `#` and `;` at line starts. Everything after the first `=` is the value. In written order.
/// A ConfigError names file and line. `must_exist` decides what a missing file is.
std::vector<Assignment> read_rc_file(const std::string& path, bool must_exist);

}  // namespace croton
