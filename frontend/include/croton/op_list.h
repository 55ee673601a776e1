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
  /// How many operands it takes; of several numbers of them the least and the most that are tried.
  int least_operands = 0;
  int most_operands = 0;
  /// Names of its attributes.
  std::vector<std::string> attributes;
  /// The greatest error in units in the last place in float32 and in float64; 0: rounded once, or
  /// exact.
  double float32_ulp = 0;
  double float64_ulp = 0;
};

/// Every op, by name; `croton ops` prints them.
CROTON_API std::vector<OpInfo> all_ops();

}  // namespace croton
