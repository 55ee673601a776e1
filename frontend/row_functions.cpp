#include "frontend/row_functions.h"

#include "croton/math.h"
#include "croton/nn.h"
#include "croton/reduce.h"

namespace croton {
namespace {

using V = const Variable&;

Variable squared_error(V t, V o) { return square(t - o); }
Variable absolute_error(V t, V o) { return abs(t - o); }
Variable binary_accuracy(V t, V o) { return eq(gt(t, 0.5), gt(o, 0.5)); }

const std::vector<RowFormula>& formulas() {
  static const auto* const list = new std::vector<RowFormula>{
      {"mse", squared_error},
      {"mean_squared_error", squared_error},
      {"mae", absolute_error},
      {"mean_absolute_error", absolute_error},
      {"binary_crossentropy", [](V t, V o) { return binary_crossentropy(o, t); }},
      {"categorical_crossentropy", [](V t, V o) { return categorical_crossentropy(o, t); }},
      {"sparse_categorical_crossentropy", [](V t, V o) { return categorical_crossentropy(o, t); },
       1},
      {"binary_accuracy", binary_accuracy, 0, false},
      {"categorical_accuracy", [](V t, V o) { return eq(argmax(t, -1), argmax(o, -1)); }, 0, false},
      {"sparse_categorical_accuracy", [](V t, V o) { return eq(t, argmax(o, -1)); }, 1, false},
  };
  return *list;
}

}  // namespace

const RowFormula* row_formula(const std::string& name) {
  for (const RowFormula& f : formulas()) {
    if (f.name == name) return &f;
  }
  return nullptr;
}

std::vector<std::string> row_formula_names(bool losses_alone) {
  std::vector<std::string> names;
  for (const RowFormula& f : formulas()) {
    if (f.loss || !losses_alone) names.push_back(f.name);
  }
  if (!losses_alone) names.push_back("accuracy");
  return names;
}

}  // namespace croton
