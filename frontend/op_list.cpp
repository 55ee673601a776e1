#include "croton/op_list.h"

#include <algorithm>

#include "compiler/graph/op.h"
#include "compiler/kernel/math.h"
#include "croton/error.h"

namespace croton {
namespace {

const char* form_text(OpForm form) {
  switch (form) {
    case OpForm::leaf:
      return "leaf";
    case OpForm::scalar:
      return "scalar";
    case OpForm::loops:
      return "loops";
    case OpForm::library:
      return "library";
    case OpForm::move:
      return "move";
  }
  return "";
}

/// Whether the op's rule takes operands of `dtype`, all of them or with a bool in front (a
/// condition) or int64 from `indices` on.
bool accepts(const OpDef& op, const Example& example, DType dtype, bool condition,
             std::size_t indices) {
  const Loc loc = Loc::current();
  std::vector<Variable> inputs;
  for (std::size_t k = 0; k < example.shapes.size(); ++k) {
    const DType own = k >= indices ? DType::int64 : k == 0 && condition ? DType::boolean : dtype;
    inputs.push_back(make_input({own, example.shapes[k]}, "", loc));
  }
  try {
    apply(op, std::move(inputs), example.attrs, loc);
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool accepts(const OpDef& op, DType dtype) {
  for (const Example& example : op.examples) {
    const std::size_t count = example.shapes.size();
    for (std::size_t indices = count; indices > 0; --indices) {
      if (accepts(op, example, dtype, false, indices)) return true;
      if (indices > 1 && accepts(op, example, dtype, true, indices)) return true;
    }
  }
  return false;
}

void describe_examples(const OpDef& op, OpInfo& info) {
  for (const Example& example : op.examples) {
    const auto count = static_cast<int>(example.shapes.size());
    const bool first = &example == &op.examples.front();
    info.least_operands = first ? count : std::min(info.least_operands, count);
    info.most_operands = std::max(info.most_operands, count);
    for (const Attrs::Entry& entry : example.attrs) {
      if (std::find(info.attributes.begin(), info.attributes.end(), entry.name) ==
          info.attributes.end()) {
        info.attributes.push_back(entry.name);
      }
    }
  }
}

}  // namespace

std::vector<OpInfo> all_ops() {
  std::vector<OpInfo> result;
  for (const OpDef* op : OpRegistry::instance().all()) {
    OpInfo& info = result.emplace_back();
    info.name = op->name;
    info.form = form_text(op->form);
    info.doc = op->doc;
    info.differentiable = op->grad != nullptr;
    describe_examples(*op, info);
    for (const kernel::MathBound& bound : kernel::math_bounds()) {
      if (bound.name != op->name) continue;
      info.float32_ulp = bound.float32_ulp;
      info.float64_ulp = bound.float64_ulp;
    }
    for (int i = 0; i < kDTypeCount; ++i) {
      if (accepts(*op, static_cast<DType>(i))) info.dtypes.push_back(static_cast<DType>(i));
    }
  }
  return result;
}

}  // namespace croton
