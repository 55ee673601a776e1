// Entries where a mask is true. How many there are is not known before a call, so no plan can hold
// them: the op stands for what set_subtensor and its kin write to, and for constants.
#include <algorithm>

#include "compiler/graph/op.h"
#include "ops/build.h"
#include "ops/put_kernel.h"
#include "ops/reference.h"

namespace croton {
namespace {

void infer_masked(Infer& infer) {
  infer.expect_inputs(2);
  if (!is_bool(infer.dtype(1))) infer.fail("the mask must be a bool");
  if (infer.ndim(1) == 0 || infer.ndim(1) > infer.ndim(0)) {
    infer.fail("the mask must have an axis, and not more than the operand");
  }
  std::vector<Dim> shape{Dim()};
  for (int k = 0; k < infer.ndim(0); ++k) {
    if (k >= infer.ndim(1)) {
      shape.push_back(infer.shape(0)[k]);
    } else {
      infer.equal(infer.shape(0)[k], infer.shape(1)[k], "the mask does not fit");
    }
  }
  infer.out(infer.dtype(0), std::move(shape));
}

std::vector<Variable> masked_grad(const GradArgs& args) {
  graph_error("index",
              "a selection by a mask that is not a constant has no gradient: multiply by the mask, "
              "or use where(mask, a, b)",
              args.node.loc);
}

std::vector<Array> masked_reference(const Node&, std::span<const Array> inputs) {
  const Shape& shape = inputs[0].shape();
  std::vector<std::int64_t> rows;
  const std::vector<bool> mask = reference::values<bool>(inputs[1]);
  for (std::size_t k = 0; k < mask.size(); ++k) {
    if (mask[k]) rows.push_back(static_cast<std::int64_t>(k));
  }
  std::vector<std::int64_t> sizes{static_cast<std::int64_t>(rows.size())};
  Shape rest;
  for (std::size_t k = inputs[1].ndim(); k < shape.size(); ++k) {
    sizes.push_back(shape[k]);
    rest.push_back(shape[k]);
  }
  return {reference::rearrange(inputs[0], Shape(sizes), [&](const Shape& at) {
    Shape inner;
    for (std::size_t k = 1; k < at.size(); ++k) inner.push_back(at[k]);
    return rows[static_cast<std::size_t>(at[0])] * rest.numel() +
           reference::flat_index(rest, inner);
  })};
}

}  // namespace

void register_masked_ops(OpRegistry& registry) {
  registry.add({.name = "masked",
                .doc = "Entries of the operand where a mask over its first axes is true; known in "
                       "the call only, so it can be written to but not computed.",
                .form = OpForm::loops,
                .infer = infer_masked,
                .grad = masked_grad,
                .reference = masked_reference});
}

}  // namespace croton
