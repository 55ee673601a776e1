// Losses and metrics by name.
#pragma once

#include <string>
#include <vector>

#include "croton/losses.h"

namespace croton {

/// A loss or metric that has a name of the library.
struct RowFormula {
  std::string name;
  RowFunction function;
  int axes_less = 0;  ///< of the target
  bool loss = true;   ///< else it is a metric only
};

/// Null where there is none.
const RowFormula* row_formula(const std::string& name);

/// The names, for messages.
std::vector<std::string> row_formula_names(bool losses_alone);

}  // namespace croton
