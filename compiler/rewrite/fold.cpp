// Constant folding, as a rule for every op.
#include "compiler/rewrite/match.h"
#include "compiler/rewrite/rule.h"
#include "croton/error.h"
#include "ops/evaluate.h"

namespace croton {
namespace {

constexpr std::int64_t kLargestResult = 64 << 10;
constexpr std::int64_t kLargestOperands = 1 << 20;

std::int64_t elements_of(const Type& type) {
  return type.shape.is_static() ? type.shape.numel() : kLargestOperands;
}

/// op(constants) -> constant, where the result is small. What repeats or counts stays an index map,
/// which takes no memory.
Variable fold_constants(const Node& node, RewriteContext&) {
  std::int64_t operands = 0;
  for (const Variable& input : node.inputs) {
    if (!is_constant_node(input)) return {};
    operands += input.node()->value.size();
  }
  const Type& type = node.outputs[0];
  const std::int64_t elements = elements_of(type);
  if (node.op->form == OpForm::move || !can_evaluate(node)) return {};
  if (elements * static_cast<std::int64_t>(size_of(type.dtype)) > kLargestResult) return {};
  if (operands > kLargestOperands) return {};
  if (node.op->element != nullptr && elements > operands && elements > 1) return {};
  std::vector<Array> values;
  for (const Variable& input : node.inputs) values.push_back(input.node()->value);
  try {
    return make_constant(evaluate(node, values)[0], Loc::current());
  } catch (const UserError&) {
    return {};  // the call will say what is wrong
  }
}

constexpr Rule kRules[] = {
    {"fold_constants", "", "constants", Precision::rounding, fold_constants},
};

}  // namespace

RuleTable folding_rules() { return {"canonicalize", kRules}; }

}  // namespace croton
