// cast, and the identities that change gradients: disconnected_grad, zero_grad, grad_clip,
// grad_scale.
#include <cmath>

#include "croton/math.h"
#include "ops/registry.h"
#include "ops/scalar.h"

namespace croton {

using namespace scalar;

namespace {

DType cast_dtype(const Attrs& attrs) { return static_cast<DType>(attrs.integer("dtype")); }

Example cast_example(DType dtype, double low, double high) {
  return {{Shape{3, 5}}, {{low, high}}, {{"dtype", static_cast<std::int64_t>(dtype)}}};
}

OpDef cast_op() {
  return {
      .name = "cast",
      .doc = "x in another dtype.",
      .infer =
          [](Infer& infer) {
            infer.expect_inputs(1);
            infer.out(cast_dtype(infer.attrs()), infer.shape(0));
          },
      .scalar = [](Builder& b, Args x,
                   const Node& node) { return b.cast(x[0], cast_dtype(node.attrs())); },
      .grad =
          [](const GradArgs& args) {
            return gradients(args, [&](const Variable& g) {
              return is_float(args.out().dtype()) ? cast_to(g, args.in(0).dtype(), args.node.loc)
                                                  : zeros_like(args.in(0), args.node.loc);
            });
          },
      .scalar_reference = {.real = [](const double* x) { return x[0]; },
                           .integer = [](const std::int64_t* x) { return x[0]; },
                           .natural = [](const std::uint64_t* x) { return x[0]; },
                           .boolean = [](const bool* x) { return x[0]; }},
      .examples = {cast_example(DType::float32, -5, 5), cast_example(DType::float64, -5, 5),
                   cast_example(DType::float16, -5, 5), cast_example(DType::bfloat16, -5, 5),
                   cast_example(DType::int32, -5, 5), cast_example(DType::int64, -5, 5),
                   cast_example(DType::uint8, 0, 300), cast_example(DType::boolean, -1, 2)},
  };
}

/// An op that gives its operand back.
OpDef identity(const char* name, const char* doc) {
  return {
      .name = name,
      .doc = doc,
      .cost = 0,
      .infer = rule<1, Accept::any>,
      .scalar = [](Builder&, Args x, const Node&) { return x[0]; },
      .scalar_reference = {.real = [](const double* x) { return x[0]; },
                           .integer = [](const std::int64_t* x) { return x[0]; },
                           .natural = [](const std::uint64_t* x) { return x[0]; },
                           .boolean = [](const bool* x) { return x[0]; }},
      .examples = {example(1, -5, 5)},
  };
}

// Not linear: what is masked to 0 may come out as a bound.
std::vector<Variable> clipped_gradient(const GradArgs& args) {
  if (!args.wants(0) || !is_float(args.in(0).dtype())) return {Variable()};
  const Attrs& attrs = args.node.attrs();
  return {clip(args.g(), attrs.real("low"), attrs.real("high"))};
}

std::vector<Variable> scaled_gradient(const GradArgs& args) {
  return gradients(args, [&](const Variable& g) { return g * args.node.attrs().real("factor"); });
}

}  // namespace

void register_scalar_cast_ops(OpRegistry& registry) {
  registry.add(cast_op());
  registry.add(identity("disconnected_grad",
                        "x; no gradient flows. With a reason \"why\" its gradient is undefined."));

  OpDef zero = identity("zero_grad", "x; its gradient is zero.");
  zero.grad = zero_gradients;
  registry.add(std::move(zero));

  OpDef clipping = identity("grad_clip", "x; its gradient is clipped to [low, high].");
  clipping.grad = clipped_gradient;
  clipping.examples[0].attrs = {{"low", -0.5}, {"high", 0.5}};
  registry.add(std::move(clipping));

  OpDef scaling = identity("grad_scale", "x; its gradient is multiplied by `factor`.");
  scaling.grad = scaled_gradient;
  scaling.examples[0].attrs = {{"factor", 2.0}};
  registry.add(std::move(scaling));
}

Variable cast(const Operand& x, DType dtype) {
  if (x.is_literal()) return make_scalar(dtype, x.literal(), x.loc());
  return cast_to(x.variable(), dtype, x.loc());
}

Variable Variable::astype(DType dtype, Loc loc) const { return cast(Operand(*this, loc), dtype); }

Variable disconnected_grad(const Operand& x) {
  return make("disconnected_grad", Promotion::common, x);
}
Variable zero_grad(const Operand& x) { return make("zero_grad", Promotion::common, x); }
Variable consider_constant(const Operand& x) { return zero_grad(x); }

Variable grad_clip(const Operand& x, double low, double high) {
  if (!(low <= high)) {
    graph_error("grad_clip", "the lower bound must not exceed the upper one", x.loc());
  }
  return apply("grad_clip", {x.variable()}, {{"low", low}, {"high", high}}, x.loc());
}

Variable grad_scale(const Operand& x, double factor) {
  return apply("grad_scale", {x.variable()}, {{"factor", factor}}, x.loc());
}

}  // namespace croton
