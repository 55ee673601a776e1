// Entries where a mask is true: what set_subtensor and its kin write to, and a read at the places
// that the mask has.
#include <algorithm>

#include "compiler/graph/op.h"
#include "ops/build.h"
#include "ops/nonzero.h"
#include "ops/put_kernel.h"
#include "ops/reference.h"
#include "ops/sizes.h"

namespace croton {
namespace {

void infer_masked(Infer& infer) {
  infer.expect_inputs(3);
  if (!is_bool(infer.dtype(1))) infer.fail("the mask must be a bool");
  if (infer.ndim(1) == 0 || infer.ndim(1) > infer.ndim(0)) {
    infer.fail("the mask must have an axis, and not more than the operand");
  }
  std::vector<Dim> shape{infer.value(2)};
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
  const Loc loc = place_of(args.node);
  const Variable& x = args.in(0);
  const Variable taken = taken_masked(args.node);
  const Variable nothing = zeros_like(taken.node()->inputs[0], loc);
  const Variable written = write_entries(*taken.node(), nothing, args.g(), WriteMode::add, loc);
  return {reshape_sizes(written, sizes_of(x, loc), loc), {}, {}};
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
  registry.add(
      {.name = "masked",
       .doc = "Entries of the operand where a mask over its first axes is true, and how "
              "many places of it are.",
       .form = OpForm::loops,
       .infer = infer_masked,
       .expand = [](const Node& node) { return std::vector<Variable>{taken_masked(node)}; },
       .grad = masked_grad,
       .reference = masked_reference});
}

}  // namespace croton
