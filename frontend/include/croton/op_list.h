#pragma once

#include <string>
#include <vector>

#include "croton/dtype.h"
#include "croton/export.h"

namespace croton {

/// One op that graphs are made of.
struct OpInfo {
  std::string name;
  /// leaf, scalar (elementwise), loops, library (a function of the backend's libraries) or move.
  std::string form;
  std::string doc;
  /// What operands may have; empty for ops whose operands say nothing about it.
  std::vector<DType> dtypes;
  bool differentiable = false;
};

/// Every op, by name; `croton ops` prints them.
CROTON_API std::vector<OpInfo> all_ops();

}  // namespace croton
