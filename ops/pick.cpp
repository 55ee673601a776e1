// pick, and the cross-entropies that are made with it.
#include <fmt/format.h>

#include "croton/error.h"
#include "croton/math.h"
#include "croton/nn.h"
#include "ops/registry.h"
#include "ops/row.h"
#include "ops/scalar.h"
#include "ops/sizes.h"

namespace croton {

namespace {

constexpr const char* kLabelRange = "label {value} is out of range: expected 0 <= label < {bound}";

std::int64_t checked_reference_label(std::int64_t label, std::int64_t size) {
  if (label < 0 || label >= size) {
    throw CallError(
        fmt::format("[pick] label {} is out of range: expected 0 <= label < {}", label, size));
  }
  return label;
}

void infer_pick(Infer& infer) {
  infer.expect_inputs(2);
  if (!is_integer(infer.dtype(1))) infer.fail("labels must be integers: cast with astype");
  if (infer.ndim(0) != infer.ndim(1) + 1) {
    infer.fail(
        "labels must have the shape of the first operand without its last axis, so one axis less");
  }
  std::vector<Dim> shape;
  for (int axis = 0; axis < infer.ndim(1); ++axis) {
    shape.push_back(
        infer.equal(infer.shape(0)[axis], infer.shape(1)[axis],
                    fmt::format("sizes of values and labels differ along axis {}", axis)));
  }
  infer.out(infer.dtype(0), std::move(shape));
}

/// The label at a position, and whether it is in range, which is checked.
struct Label {
  kernel::Expr value;
  kernel::Expr ok;
};

Label checked_label(Lowering& lower, const std::vector<Position>& row, Dim size) {
  kernel::Builder& b = lower.b;
  const kernel::Expr label = b.cast(lower.read(1, row), DType::int64);
  const kernel::Expr bound = lower.value(size);
  const kernel::Expr ok = (label >= b.i64(0)) & (label < bound);
  b.check(ok, kLabelRange, label, bound, check_place(lower.node));
  return {label, ok};
}

kernel::Expr pick_element(Lowering& lower, std::span<const Position> at) {
  std::vector<Position> position(at.begin(), at.end());
  const Label label = checked_label(lower, position, lower.in[0].shape.back());
  position.push_back(lower.computed(label.value));
  return lower.read(0, std::move(position), label.ok);
}

std::vector<Variable> pick_gradient(const GradArgs& args) {
  const Variable& x = args.in(0);
  std::vector<Variable> result(2);
  if (!args.wants(0) || !is_float(x.dtype())) return result;
  const int axis = x.ndim() - 1;
  const std::int64_t size = x.static_shape()[axis];
  std::vector<Variable> inputs{args.g(), args.in(1)};
  if (size == kAnyDim) inputs.push_back(size_of_axis(x, axis, args.node.loc));
  const std::vector<std::int64_t> sizes{size == kAnyDim ? kSymbolSize : size};
  result[0] = apply("pick_grad", std::move(inputs), {{"sizes", sizes}}, args.node.loc);
  return result;
}

void infer_pick_grad(Infer& infer) {
  if (!is_integer(infer.dtype(1))) infer.fail("labels must be integers: cast with astype");
  std::vector<Dim> shape = infer.shape(0);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    shape[axis] = infer.equal(shape[axis], infer.shape(1)[axis], "sizes of gradient and labels");
  }
  shape.push_back(size_dims(infer, 2)[0]);
  infer.out(infer.dtype(0), std::move(shape));
}

kernel::Expr pick_grad_element(Lowering& lower, std::span<const Position> at) {
  const std::vector<Position> row(at.begin(), at.end() - 1);
  const Label label = checked_label(lower, row, lower.out[0].shape.back());
  const kernel::Expr g = lower.read(0, row);
  return lower.b.select(lower.value(at.back()) == label.value, g, lower.b.constant(g.dtype(), 0));
}

std::vector<Array> pick_grad_reference(const Node& node, std::span<const Array> inputs) {
  const Shape sizes = size_numbers(node.attrs(), inputs.subspan(2));
  const auto labels = inputs[1].astype(DType::int64).to_vector<std::int64_t>();
  const auto g = inputs[0].astype(DType::float64).to_vector<double>();
  Shape shape = inputs[0].shape();
  shape.push_back(sizes[0]);
  std::vector<double> values(static_cast<std::size_t>(shape.numel()), 0.0);
  for (std::size_t row = 0; row < labels.size(); ++row) {
    values[row * static_cast<std::size_t>(sizes[0]) +
           static_cast<std::size_t>(checked_reference_label(labels[row], sizes[0]))] = g[row];
  }
  return {Array::from<double>(values, shape).astype(inputs[0].dtype())};
}

std::vector<Array> pick_reference(const Node&, std::span<const Array> inputs) {
  const Array x = inputs[0].contiguous();
  const std::vector<std::int64_t> labels = inputs[1].astype(DType::int64).to_vector<std::int64_t>();
  const std::int64_t size = x.shape().back();
  std::vector<std::int64_t> index;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    index.push_back(static_cast<std::int64_t>(row) * size +
                    checked_reference_label(labels[row], size));
  }
  Array result = Array::empty(inputs[1].shape(), x.dtype());
  const std::size_t bytes = size_of(x.dtype());
  const auto* from = static_cast<const char*>(x.raw_data());
  auto* to = static_cast<char*>(const_cast<void*>(result.raw_data()));
  for (std::size_t row = 0; row < index.size(); ++row) {
    for (std::size_t k = 0; k < bytes; ++k) to[row * bytes + k] = from[index[row] * bytes + k];
  }
  return {result};
}

/// The operand of a softmax along the last axis, else an empty Variable.
Variable logits_of(const Variable& probabilities) {
  if (!is_op(probabilities, "softmax")) return {};
  const Node& node = *probabilities.node();
  return row::axis_of(node) == probabilities.ndim() - 1 ? node.inputs[0] : Variable();
}

Variable to_float(const Operand& x) {
  const Variable variable = x.variable();
  return cast_to(variable, scalar::float_result(variable.dtype()), x.loc());
}

}  // namespace

void register_pick_ops(OpRegistry& registry) {
  registry.add({
      .name = "pick",
      .doc = "The element of each row, along the last axis, that an integer label names.",
      .form = OpForm::loops,
      .infer = infer_pick,
      .element = pick_element,
      .grad = pick_gradient,
      .reference = pick_reference,
      .examples = {{{Shape{4, 6}, Shape{4}}, {{-5, 5}, {0, 5}}, {}},
                   {{Shape{6}, Shape{}}, {{-5, 5}, {0, 5}}, {}}},
  });
  registry.add({
      .name = "pick_grad",
      .doc = "A value a row, at the place along a new last axis that its label names; else 0.",
      .form = OpForm::loops,
      .infer = infer_pick_grad,
      .element = pick_grad_element,
      .grad =
          [](const GradArgs& args) {
            std::vector<Variable> result(args.node.inputs.size());
            if (args.wants(0)) result[0] = pick(args.g(), args.in(1));
            return result;
          },
      .reference = pick_grad_reference,
      .examples = {{{Shape{4}, Shape{4}},
                    {{-5, 5}, {0, 5}},
                    {{"sizes", std::vector<std::int64_t>{6}}}}},
  });
}

Variable pick(const Operand& x, const Operand& labels) {
  return apply("pick", {x.variable(), labels.variable()}, {}, x.loc().named("pick"));
}

Variable cross_entropy_from_logits(const Operand& logits, const Operand& labels) {
  const Loc loc = logits.loc().named("cross_entropy_from_logits");
  const Variable z = to_float(logits);
  if (z.ndim() == 0) {
    graph_error("cross_entropy_from_logits",
                "logits must have at least one axis, along which the classes lie: got a scalar",
                loc);
  }
  const Variable picked = pick({z, loc}, {labels.variable(), loc});
  return sub({logsumexp({z, loc}, -1), loc}, {picked, loc});
}

Variable categorical_crossentropy(const Operand& coding_dist, const Operand& true_dist) {
  const Loc loc = coding_dist.loc().named("categorical_crossentropy");
  const Variable p = to_float(coding_dist);
  const Variable t = true_dist.variable();
  const Variable logits = logits_of(p);
  const int rank = p.ndim();
  if (rank == 0 || (t.ndim() != rank && t.ndim() != rank - 1)) {
    graph_error("categorical_crossentropy",
                fmt::format("coding_dist has {} axes and true_dist {}: expected as many "
                            "(probabilities), or one less (integer labels)",
                            rank, t.ndim()),
                loc);
  }
  if (t.ndim() == rank) {
    const Variable logs = logits.defined() ? log_softmax({logits, loc}, -1) : log({p, loc});
    const Variable products = mul({t, loc}, {logs, loc});
    return neg({sum_axes(products, {rank - 1}, false, loc), loc});
  }
  if (!is_integer(t.dtype())) {
    graph_error("categorical_crossentropy",
                fmt::format("true_dist has one axis less than coding_dist, so it must hold integer "
                            "labels: got {}",
                            name_of(t.dtype())),
                loc);
  }
  if (logits.defined()) return cross_entropy_from_logits({logits, loc}, {t, loc});
  return neg({log({pick({p, loc}, {t, loc}), loc}), loc});
}

Variable binary_crossentropy(const Operand& output, const Operand& target) {
  const Loc loc = output.loc().named("binary_crossentropy");
  const Variable p = to_float(output);
  if (is_op(p, "sigmoid")) {
    return binary_cross_entropy_from_logits({p.node()->inputs[0], loc}, target);
  }
  const Operand t = target.named(loc.op);
  const Variable hit = mul(t, {log({p, loc}), loc});
  const Variable miss = mul({sub({1, loc}, t), loc}, {log({sub({1, loc}, {p, loc}), loc}), loc});
  return neg({add({hit, loc}, {miss, loc}), loc});
}

}  // namespace croton
