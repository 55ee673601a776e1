// Products of matrices take up what stands around them: transposes, factors, addends, bias, relu.
#include <algorithm>
#include <cmath>

#include "compiler/rewrite/match.h"
#include "compiler/rewrite/rule.h"
#include "ops/build.h"

namespace croton {
namespace {

using Context = RewriteContext;

/// epilogue(alpha * op(a) @ op(b) + beta * addend), as the op gemm has it.
struct Gemm {
  Variable a;
  Variable b;
  bool transpose_a = false;
  bool transpose_b = false;
  double alpha = 1;
  double beta = 0;
  Variable addend;
  Variable bias;
  bool relu = false;

  /// Nothing follows the product and its factor.
  bool is_bare() const { return beta == 0 && !bias.defined() && !relu; }
};

std::optional<Gemm> gemm_of(const Variable& v) {
  if (!is_op(v, "gemm")) return {};
  const Attrs& attrs = v.node()->attrs();
  Gemm gemm;
  gemm.a = in(v);
  gemm.b = in(v, 1);
  gemm.transpose_a = attrs.integer_or("transpose_a", 0) != 0;
  gemm.transpose_b = attrs.integer_or("transpose_b", 0) != 0;
  gemm.alpha = attrs.real_or("alpha", 1);
  gemm.beta = attrs.real_or("beta", 0);
  const std::string epilogue = attrs.text_or("epilogue", "");
  gemm.relu = epilogue.ends_with("relu");
  int next = 2;
  if (gemm.beta != 0) gemm.addend = in(v, next++);
  if (epilogue.starts_with("bias")) gemm.bias = in(v, next);
  return gemm;
}

Variable make_gemm(const Gemm& gemm) {
  std::vector<Variable> inputs{gemm.a, gemm.b};
  Attrs attrs{{"transpose_a", std::int64_t{gemm.transpose_a}},
              {"transpose_b", std::int64_t{gemm.transpose_b}}};
  if (gemm.alpha != 1) attrs.set("alpha", gemm.alpha);
  if (gemm.beta != 0) {
    attrs.set("beta", gemm.beta);
    inputs.push_back(gemm.addend);
  }
  if (gemm.bias.defined()) inputs.push_back(gemm.bias);
  const std::string epilogue =
      gemm.bias.defined() ? (gemm.relu ? "bias_relu" : "bias") : (gemm.relu ? "relu" : "");
  if (!epilogue.empty()) attrs.set("epilogue", epilogue);
  return make("gemm", std::move(inputs), std::move(attrs));
}

/// A product of floats that nobody else needs, so that it may become another one.
std::optional<Gemm> own_gemm(const Variable& v, Context& c) {
  std::optional<Gemm> gemm = gemm_of(v);
  return gemm && is_float(v.dtype()) && c.used_once(v) ? gemm : std::nullopt;
}

/// Whether the value has memory of its own whatever the rules do: then an op that takes it as an
/// operand keeps no kernel from computing it on the fly.
bool stands_in_memory(const Variable& v) {
  const OpDef& op = *v.node()->op;
  if (op.view) return stands_in_memory(in(v));
  return op.form == OpForm::leaf || op.form == OpForm::library || op.form == OpForm::move ||
         op.kernel != nullptr;
}

// Operands.

/// Whether the order swaps the last two axes and leaves the others.
bool swaps_last_two(const Variable& v) {
  if (!is_op(v, "dimshuffle")) return false;
  const std::vector<std::int64_t>& order = v.node()->attrs().integers("order");
  const std::size_t rank = order.size();
  if (rank < 2 || static_cast<int>(rank) != in(v).ndim()) return false;
  for (std::size_t k = 0; k < rank; ++k) {
    const std::size_t wanted = k + 2 < rank ? k : 2 * rank - 3 - k;
    if (order[k] != static_cast<std::int64_t>(wanted)) return false;
  }
  return true;
}

/// gemm(a.T, b) -> gemm(a, b, transpose_a); the same of b
Variable gemm_transposed(const Node& node, Context&) {
  std::optional<Gemm> gemm = gemm_of(node.out());
  if (swaps_last_two(gemm->a)) {
    gemm->a = in(gemm->a);
    gemm->transpose_a = !gemm->transpose_a;
  } else if (swaps_last_two(gemm->b)) {
    gemm->b = in(gemm->b);
    gemm->transpose_b = !gemm->transpose_b;
  } else {
    return {};
  }
  return make_gemm(*gemm);
}

/// gemm(dimshuffle(a) that only adds or drops axes of size 1, b) -> gemm(reshape(a), b), which is a
/// view; the same of the other operands
Variable gemm_reshaped(const Node& node, Context&) {
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    const Variable& x = node.inputs[k];
    if (!is_op(x, "dimshuffle")) continue;
    std::int64_t last = -1;
    bool ascending = true;
    std::vector<Size> sizes;
    for (const std::int64_t axis : x.node()->attrs().integers("order")) {
      if (axis < 0) {
        sizes.emplace_back(1);
        continue;
      }
      ascending = ascending && axis > last;
      last = axis;
      const Variable size = size_of_axis(in(x), static_cast<int>(axis), node.loc);
      const Array* known = constant_value(size);
      sizes.push_back(known != nullptr ? Size(known->item<std::int64_t>()) : Size(size));
    }
    if (!ascending) continue;
    std::vector<Variable> inputs = node.inputs;
    inputs[k] = reshape_sizes(in(x), sizes, node.loc);
    return make("gemm", std::move(inputs), node.attrs());
  }
  return {};
}

/// The factor of x in x * factor, x / divisor or -x.
struct Scaled {
  Variable x;
  double factor;
};

std::optional<Scaled> scaled(const Variable& v) {
  if (is_op(v, "neg")) return Scaled{in(v), -1};
  const bool divides = is_op(v, "true_divide");
  if (!divides && !is_op(v, "mul")) return {};
  for (int k : {1, 0}) {
    if (divides && k == 0) break;
    const std::optional<double> factor = splat(in(v, k));
    if (factor && std::isfinite(*factor) && *factor != 0 && in(v, k).ndim() == 0) {
      return Scaled{in(v, 1 - k), divides ? 1 / *factor : *factor};
    }
  }
  return {};
}

/// Whether factors that were multiplied into a product mean what they did one by one: in the type
/// in which the product is computed they are normal numbers.
bool factors_hold(const Gemm& gemm, DType dtype) {
  const auto holds = [&](double factor) {
    return dtype == DType::float64 ? std::isnormal(factor)
                                   : std::isnormal(static_cast<float>(factor));
  };
  return holds(gemm.alpha) && (!gemm.addend.defined() || holds(gemm.beta));
}

/// gemm(a * k, b) -> k * gemm(a, b), where that saves a kernel
Variable gemm_scaled_operand(const Node& node, Context& c) {
  std::optional<Gemm> gemm = gemm_of(node.out());
  if (!is_float(node.outputs[0].dtype)) return {};
  for (Variable* operand : {&gemm->a, &gemm->b}) {
    const std::optional<Scaled> s = scaled(*operand);
    if (!s || !c.used_once(*operand) || !stands_in_memory(s->x)) continue;
    *operand = s->x;
    gemm->alpha *= s->factor;
    if (!factors_hold(*gemm, node.outputs[0].dtype)) return {};
    return c.accept(make_gemm(*gemm), node);
  }
  return {};
}

// Results.

/// gemm(a, b).T -> gemm(b.T, a.T)
Variable transposed_gemm(const Node& node, Context& c) {
  const Variable& product = node.inputs[0];
  const std::optional<Gemm> gemm = gemm_of(product);
  if (!gemm || !gemm->is_bare() || !swaps_last_two(node.out()) || !c.used_once(product)) return {};
  Gemm swapped;
  swapped.a = gemm->b;
  swapped.b = gemm->a;
  swapped.transpose_a = !gemm->transpose_b;
  swapped.transpose_b = !gemm->transpose_a;
  swapped.alpha = gemm->alpha;
  return c.accept(make_gemm(swapped), node);
}

/// gemm(a, b) * k -> k * gemm(a, b), and -gemm(a, b)
Variable scaled_gemm(const Node& node, Context& c) {
  const std::optional<Scaled> s = scaled(node.out());
  if (!s) return {};
  std::optional<Gemm> gemm = own_gemm(s->x, c);
  if (!gemm || gemm->bias.defined() || gemm->relu) return {};
  gemm->alpha *= s->factor;
  gemm->beta *= s->factor;
  if (!factors_hold(*gemm, node.outputs[0].dtype)) return {};
  return c.accept(make_gemm(*gemm), node);
}

/// The sum of a product with `addend` * beta; undefined when that saves no kernel.
Variable gemm_plus(const Variable& product, double sign, const Variable& addend, double beta,
                   const Node& node, Context& c) {
  std::optional<Gemm> gemm = own_gemm(product, c);
  if (!gemm || !gemm->is_bare()) return {};
  gemm->alpha *= sign;
  gemm->beta = beta;
  gemm->addend = addend;
  if (const std::optional<Scaled> s = scaled(addend); s && c.used_once(addend)) {
    gemm->addend = s->x;
    gemm->beta *= s->factor;
  }
  if (!stands_in_memory(gemm->addend) || !factors_hold(*gemm, node.outputs[0].dtype)) return {};
  // Sizes that are not known have to agree in the call, where the product checks them, too.
  const Shape& shape = node.outputs[0].shape;
  if (product.static_shape() != shape || gemm->addend.static_shape() != shape) return {};
  return make_gemm(*gemm);
}

/// gemm(a, b) + addend -> gemm(a, b, addend)
Variable gemm_add(const Node& node, Context& c) {
  for (int k : {0, 1}) {
    const Variable sum = gemm_plus(node.inputs[k], 1, node.inputs[1 - k], 1, node, c);
    if (sum.defined()) return sum;
  }
  return {};
}

/// addend - gemm(a, b), gemm(a, b) - addend -> gemm(a, b, addend)
Variable gemm_sub(const Node& node, Context& c) {
  const Variable difference = gemm_plus(node.inputs[1], -1, node.inputs[0], 1, node, c);
  if (difference.defined()) return difference;
  return gemm_plus(node.inputs[0], 1, node.inputs[1], -1, node, c);
}

/// The vector that is added to each row; undefined when v is none.
Variable row_vector(const Variable& v, const Loc& loc) {
  if (v.ndim() == 1) return v;
  const Shape& shape = v.static_shape();
  if (shape.empty() || std::any_of(shape.begin(), shape.end() - 1, [](auto n) { return n != 1; })) {
    return {};
  }
  if (is_op(v, "dimshuffle") && in(v).ndim() == 1) return in(v);
  return shape.back() == kAnyDim ? Variable()
                                 : reshape_sizes(v, std::vector<Size>{shape.back()}, loc);
}

/// gemm(a, b) + vector -> gemm(a, b, bias)
Variable gemm_bias(const Node& node, Context& c) {
  for (int k : {0, 1}) {
    const Variable& product = node.inputs[k];
    std::optional<Gemm> gemm = gemm_of(product);
    if (!gemm || gemm->bias.defined() || gemm->relu || !own_gemm(product, c)) continue;
    const Variable& v = node.inputs[1 - k];
    if (v.ndim() > product.ndim() || v.ndim() == 0) continue;
    if (!stands_in_memory(is_op(v, "dimshuffle") ? in(v) : v)) continue;
    // A row of one element would be repeated, a bias is not.
    if (v.static_shape().back() != product.static_shape().back()) continue;
    gemm->bias = row_vector(v, node.loc);
    if (!gemm->bias.defined()) continue;
    return make_gemm(*gemm);
  }
  return {};
}

/// relu(gemm(a, b)) -> gemm(a, b, relu)
Variable gemm_relu(const Node& node, Context& c) {
  std::optional<Gemm> gemm = own_gemm(node.inputs[0], c);
  if (!gemm || gemm->relu) return {};
  gemm->relu = true;
  return make_gemm(*gemm);
}

// Vectors.

/// gemm(a, column) -> sum(a * column.T) along rows; gemm(row, b.T) -> sum(row * b) along rows,
/// which share kernels with what stands around them
Variable gemm_vector(const Node& node, Context& c) {
  const std::optional<Gemm> gemm = gemm_of(node.out());
  const Shape& shape = node.outputs[0].shape;
  if (!gemm->is_bare() || gemm->alpha != 1 || gemm->a.ndim() != 2 || gemm->b.ndim() != 2) return {};
  const Variable& a = gemm->a;
  const Variable& b = gemm->b;
  const auto row_sum = [&](const Variable& x, const Variable& y) {
    const DType dtype = x.dtype();
    const DType work = is_narrow(dtype) ? DType::float32 : dtype;
    const Variable products = make("mul", {cast_to(x, work, node.loc), cast_to(y, work, node.loc)});
    return cast_to(sum_axes(products, {1}, true, node.loc), dtype, node.loc);
  };
  if (shape[1] == 1 && !gemm->transpose_a) {
    const Variable row = gemm->transpose_b ? b : dimshuffle(b, {1, 0}, node.loc);
    if (row.static_shape()[1] != a.static_shape()[1]) return {};  // 1 would be repeated
    return c.accept(row_sum(a, row), node);
  }
  if (shape[0] == 1 && gemm->transpose_b) {
    const Variable row = gemm->transpose_a ? dimshuffle(a, {1, 0}, node.loc) : a;
    if (row.static_shape()[1] != b.static_shape()[1]) return {};
    return c.accept(dimshuffle(row_sum(b, row), {1, 0}, node.loc), node);
  }
  return {};
}

constexpr Precision kRounding = Precision::rounding;

constexpr Rule kRules[] = {
    {"gemm_transposed", "gemm", "gemm", kRounding, gemm_transposed},
    {"gemm_reshaped", "gemm", "gemm", kRounding, gemm_reshaped},
    {"gemm_scaled_operand", "gemm", "gemm", kRounding, gemm_scaled_operand},
    {"gemm_vector", "gemm", "gemm", kRounding, gemm_vector},
    {"transposed_gemm", "dimshuffle", "gemm", kRounding, transposed_gemm},
    {"scaled_gemm", "mul neg true_divide", "gemm", kRounding, scaled_gemm},
    {"gemm_add", "add", "gemm", kRounding, gemm_add},
    {"gemm_sub", "sub", "gemm", kRounding, gemm_sub},
    {"gemm_bias", "add", "gemm epilogue", kRounding, gemm_bias},
    {"gemm_relu", "relu", "gemm epilogue", kRounding, gemm_relu},
};

}  // namespace

RuleTable specialize_rules() { return {"specialize", kRules}; }

}  // namespace croton
