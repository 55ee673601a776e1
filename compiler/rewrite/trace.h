// What mode DEBUG remembers of a compilation, to be checked with the real arguments of the first
// call.
#pragma once

#include <string>
#include <vector>

#include "compiler/rewrite/rule.h"

namespace croton {

/// Distance between 1 and the next number of a float dtype; of others, that of float64.
double spacing(DType dtype);

/// What passes and rules did, in order.
struct RewriteTrace {
  struct Application {
    std::string_view rule;
    std::string pass;
    Precision precision;
    Variable before;
    Variable after;
  };
  struct PassRun {
    std::string pass;
    Precision precision;
    Graph before;
    Graph after;
  };
  std::vector<Application> applications;
  std::vector<PassRun> passes;
};

/// Evaluates both sides of everything in the trace by the references of the ops; `known` holds the
/// values of inputs and shared variables. InternalError naming the rule, else the pass, that
/// changed a value by more than its tag allows. Gives the values of the outputs of the last graph.
std::vector<Array> check_trace(const RewriteTrace& trace, const VariableMap<Array>& known);

/// What is wrong with `value`, compared with `expected` under a tag: empty when nothing is.
std::string difference(const Array& value, const Array& expected, Precision precision);

/// The same for what compiled code gave for `v`, compared with the references of its ops. The
/// coarsest of the floats on the way to `v` decides how close it has to come.
std::string compiled_difference(const Array& value, const Array& expected, const Variable& v);

/// "add(mul(x, 2), y)", down to a depth.
std::string expression_text(const Variable& v, int depth = 64);

}  // namespace croton
