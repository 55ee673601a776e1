// Writing at integer indices: {set,inc,mul,max,min}_take along one axis with a vector of indices,
// {set,inc,mul,max,min}_along_axis with an index for each value, and the way there from several
// arrays of indices of any rank.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/build.h"
#include "ops/put_kernel.h"
#include "ops/reference.h"
#include "ops/registry.h"
#include "ops/sizes.h"
#include "ops/take.h"

namespace croton {

std::string_view op_name(WriteMode mode, bool along) {
  constexpr std::string_view kTake[] = {"set_take", "inc_take", "mul_take", "max_take", "min_take"};
  constexpr std::string_view kAlong[] = {"set_along_axis", "inc_along_axis", "mul_along_axis",
                                         "max_along_axis", "min_along_axis"};
  return (along ? kAlong : kTake)[static_cast<std::size_t>(mode)];
}

namespace {

void check_value(Infer& infer) {
  infer.expect_inputs(3);
  if (infer.dtype(0) != infer.dtype(1)) {
    infer.fail(fmt::format("a value of dtype {} expected, got {}", name_of(infer.dtype(0)),
                           name_of(infer.dtype(1))));
  }
  if (infer.ndim(0) != infer.ndim(1)) infer.fail("the value has another number of axes");
  if (!is_integer(infer.dtype(2))) infer.fail("indices must be integers");
  const int axis = normalize_axis(infer, infer.attrs().integer("axis"), infer.ndim(0));
  for (int k = 0; k < infer.ndim(0); ++k) {
    if (k == axis) continue;
    infer.equal(infer.shape(0)[k], infer.shape(1)[k],
                fmt::format("the value does not fit along axis {}", k));
  }
  infer.out(infer.dtype(0), infer.shape(0));
}

void infer_put(Infer& infer) {
  check_value(infer);
  if (infer.ndim(2) != 1) infer.fail("one vector of indices is expected");
  infer.equal(infer.shape(1)[infer.attrs().integer("axis")], infer.shape(2)[0],
              "one value an index is expected");
}

void infer_along(Infer& infer) {
  check_value(infer);
  if (infer.ndim(2) != infer.ndim(1)) infer.fail("one index a value is expected");
  for (int k = 0; k < infer.ndim(1); ++k) {
    infer.equal(infer.shape(1)[k], infer.shape(2)[k], "one index a value is expected");
  }
}

/// A node of an op of this file, its rules written once for both kinds of indices.
struct Put {
  const GradArgs& args;
  bool along;
  const Loc& loc;

  explicit Put(const GradArgs& a)
      : args(a), along(a.node.op->name.ends_with("_along_axis")), loc(a.node.loc) {}

  int axis() const { return static_cast<int>(args.node.attrs().integer("axis")); }
  const Variable& indices() const { return args.in(2); }

  /// The entries of v where the values were written.
  Variable read(const Variable& v) const {
    if (!along) return take_entries(v, {axis()}, {indices()}, 0, loc);
    return apply("take_along_axis", {v, indices()}, args.node.attrs(), loc);
  }
  Variable write(WriteMode mode, const Variable& x, const Variable& values) const {
    return apply(op_name(mode, along), {x, values, indices()}, args.node.attrs(), loc);
  }
  /// The position of each value along the axis, in their shape.
  Variable numbers() const { return iota_like(Operand(args.in(1), loc), axis()); }
};

/// Of values for one place only the last one is kept, and only that one has a gradient.
Variable is_kept(const Put& put) {
  const Loc& loc = put.loc;
  const int axis = put.axis();
  const Variable& x = put.args.in(0);
  if (put.along) {
    const Variable numbers = put.numbers();
    const Variable nobody = broadcast_like(make_scalar(DType::int64, 0, loc), x, loc);
    return eq(Operand(put.read(put.write(WriteMode::set, nobody, numbers)), loc), numbers);
  }
  const Variable number = iota_like(Operand(put.indices(), loc), 0);
  const Size length[] = {sizes_of(x, loc)[axis]};
  const Variable nobody = broadcast_sizes(make_scalar(DType::int64, 0, loc), length, loc);
  const Variable last = apply("set_take", {nobody, number, put.indices()}, {{"axis", 0}}, loc);
  std::vector<int> order(static_cast<std::size_t>(x.ndim()), -1);
  order[axis] = 0;
  return dimshuffle(eq(Operand(take_entries(last, {0}, {put.indices()}, 0, loc), loc), number),
                    order, loc);
}

std::vector<Variable> set_grad(const GradArgs& args) {
  const Put put(args);
  const Variable g = put.read(args.g());
  return {put.write(WriteMode::set, args.g(), zeros_like(args.in(1), put.loc)),
          where(Operand(is_kept(put), put.loc), g, scalar_like(g, 0, put.loc)),
          {}};
}

std::vector<Variable> inc_grad(const GradArgs& args) {
  return {args.g(), Put(args).read(args.g()), {}};
}

/// The product of all other factors of a place, for each factor: what is left of the product
/// without zeros, times the one other factor that is 0, so that second derivatives are right there;
/// with more of them it is 0.
std::vector<Variable> mul_grad(const GradArgs& args) {
  const Put put(args);
  const Loc& loc = put.loc;
  const Variable zero = scalar_like(args.in(0), 0, loc);
  const Variable one = scalar_like(args.in(0), 1, loc);
  const auto is_zero = [&](const Variable& v) { return eq(Operand(v, loc), zero); };
  const auto without_zeros = [&](const Variable& v) {
    return where(Operand(is_zero(v), loc), one, v);
  };
  const auto zeros_only = [&](const Variable& v) {
    return where(Operand(is_zero(v), loc), v, zero);
  };
  const Variable x = args.in(0), values = args.in(1);
  const Variable product = put.write(WriteMode::mul, without_zeros(x), without_zeros(values));
  const Variable zeros = put.write(WriteMode::add, zeros_only(x), zeros_only(values));
  const Variable count = put.write(WriteMode::add, cast_to(is_zero(x), DType::int64, loc),
                                   cast_to(is_zero(values), DType::int64, loc));
  const auto rest = [&](const Variable& factor, const auto& at) {
    const Variable left = true_divide(Operand(at(product), loc), without_zeros(factor));
    const Variable more = sub(Operand(at(count), loc), cast_to(is_zero(factor), DType::int64, loc));
    const Variable other = sub(Operand(at(zeros), loc), zeros_only(factor));
    const auto is = [&](int n) { return eq(Operand(more, loc), scalar_like(more, n, loc)); };
    const Variable with_one = where(Operand(is(1), loc), mul(Operand(other, loc), left), zero);
    return mul(Operand(at(args.g()), loc), where(Operand(is(0), loc), left, with_one));
  };
  return {rest(x, [](const Variable& v) { return v; }),
          rest(values, [&](const Variable& v) { return put.read(v); }),
          {}};
}

/// To every factor that is the result, as for `max` and `min`.
std::vector<Variable> extreme_grad(const GradArgs& args) {
  const Put put(args);
  const Loc& loc = put.loc;
  const auto chosen = [&](const Variable& v, const Variable& result, const Variable& g) {
    return where(Operand(eq(Operand(v, loc), result), loc), g, scalar_like(g, 0, loc));
  };
  const Variable result = args.out();
  return {chosen(args.in(0), result, args.g()),
          chosen(args.in(1), put.read(result), put.read(args.g())),
          {}};
}

template <class T>
T combined(WriteMode mode, T old, T value) {
  if (mode == WriteMode::set) return value;
  if (mode == WriteMode::add) return static_cast<T>(old + value);
  if (mode == WriteMode::mul) return static_cast<T>(old * value);
  // NaN wins.
  if (old != old) return old;
  return (mode == WriteMode::max ? value <= old : value >= old) ? old : value;
}

std::vector<Array> put_reference(const Node& node, std::span<const Array> inputs, WriteMode mode,
                                 bool along) {
  const auto axis = static_cast<std::size_t>(node.attrs().integer("axis"));
  const Shape& shape = inputs[0].shape();
  const Shape& places = inputs[1].shape();
  const std::vector<std::int64_t> indices = reference::values<std::int64_t>(inputs[2]);
  return {reference::with_class(inputs[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    std::vector<T> result = reference::values<T>(inputs[0]);
    reference::Odometer position(places);
    std::size_t number = 0;
    for (const T value : reference::values<T>(inputs[1])) {
      Shape to = position.at();
      const std::int64_t index = indices[along ? number : static_cast<std::size_t>(to[axis])];
      to[axis] = reference::checked_index(node.op->name, index, shape[axis]);
      auto&& target = result[static_cast<std::size_t>(reference::flat_index(shape, to))];
      target = combined<T>(mode, target, value);
      position.next();
      ++number;
    }
    Array out = Array::empty(shape, dtype_of<T>);
    std::copy(result.begin(), result.end(), out.mutable_data<T>());
    return out.astype(inputs[0].dtype());
  })};
}

Variable reshape_like(const Variable& x, const Variable& like, const Loc& loc) {
  return x.ndim() == like.ndim() ? x : reshape_sizes(x, sizes_of(like, loc), loc);
}

/// The arrays of indices as one.
Variable joined_index(const Node& take, const Variable& x, int first, const Loc& loc) {
  const std::size_t count = take.inputs.size() - 1;
  if (count == 1) return take.inputs[1];
  std::vector<Variable> inputs(take.inputs.begin() + 1, take.inputs.end());
  std::vector<Size> sizes = sizes_of(x, loc);
  const SizeList list =
      size_list("take", std::span(sizes).subspan(static_cast<std::size_t>(first), count), loc);
  inputs.insert(inputs.end(), list.symbols.begin(), list.symbols.end());
  return apply("flat_index", std::move(inputs), {{"sizes", list.numbers}}, loc);
}

template <WriteMode kMode>
OpDef put_op(std::string doc, std::vector<Variable> (*grad)(const GradArgs&)) {
  return {.name = std::string(op_name(kMode, false)),
          .doc = "The operand with entries along an axis " + doc,
          .form = OpForm::loops,
          .infer = infer_put,
          .kernel = [](KernelLowering& low) { put_kernel(low, kMode, false); },
          .grad = grad,
          .reference =
              [](const Node& node, std::span<const Array> inputs) {
                return put_reference(node, inputs, kMode, false);
              },
          .examples = {{{{5, 3}, {4, 3}, {4}}, {{-3, 3}, {-3, 3}, {0, 4}}, {{"axis", 0}}},
                       {{{2, 3}, {2, 4}, {4}}, {{-3, 3}, {-3, 3}, {0, 2}}, {{"axis", 1}}}}};
}

template <WriteMode kMode>
OpDef along_op(std::string doc, std::vector<Variable> (*grad)(const GradArgs&)) {
  return {
      .name = std::string(op_name(kMode, true)),
      .doc = "The operand with the entries along an axis that an index for each value names " + doc,
      .form = OpForm::loops,
      .infer = infer_along,
      .kernel = [](KernelLowering& low) { put_kernel(low, kMode, true); },
      .grad = grad,
      .reference =
          [](const Node& node, std::span<const Array> inputs) {
            return put_reference(node, inputs, kMode, true);
          },
      .examples = {{{{4, 3}, {2, 3}, {2, 3}}, {{-3, 3}, {-3, 3}, {0, 3}}, {{"axis", 0}}},
                   {{{4, 3}, {4, 5}, {4, 5}}, {{-3, 3}, {-3, 3}, {0, 2}}, {{"axis", 1}}}}};
}

template <WriteMode kMode>
void add_both(OpRegistry& registry, const std::string& doc,
              std::vector<Variable> (*grad)(const GradArgs&)) {
  registry.add(put_op<kMode>(doc, grad));
  registry.add(along_op<kMode>(doc, grad));
}

}  // namespace

Variable write_entries(const Node& take, const Variable& operand, const Variable& value,
                       WriteMode mode, const Loc& loc) {
  const std::vector<std::int64_t>& axes = take.attrs().integers("axes");
  const int count = static_cast<int>(axes.size());
  // Indexed axes that are apart go to the front, where the result has them, too.
  Variable x = operand;
  std::vector<int> back;
  int first = static_cast<int>(axes[0]);
  if (axes.back() - axes.front() + 1 != count) {
    std::vector<int> order(axes.begin(), axes.end());
    for (int k = 0; k < x.ndim(); ++k) {
      if (std::find(axes.begin(), axes.end(), k) == axes.end()) order.push_back(k);
    }
    back.resize(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) back[order[k]] = static_cast<int>(k);
    x = dimshuffle(x, order, loc);
    first = 0;
  }
  const Variable index = joined_index(take, x, first, loc);
  const Variable flat_operand = merge_axes(x, first, count, loc);
  const Variable flat_index = merge_axes(index, 0, index.ndim(), loc);
  const Variable flat_value = merge_axes(value, first, index.ndim(), loc);
  Variable result = apply(op_name(mode, false), {flat_operand, flat_value, flat_index},
                          {{"axis", std::int64_t{first}}}, loc);
  result = reshape_like(result, x, loc);
  return back.empty() ? result : dimshuffle(result, back, loc);
}

void register_put_ops(OpRegistry& registry) {
  add_both<WriteMode::set>(registry, "replaced by values; the last one wins.", set_grad);
  add_both<WriteMode::add>(registry, "increased by values.", inc_grad);
  add_both<WriteMode::mul>(registry, "multiplied by values.", mul_grad);
  add_both<WriteMode::max>(registry, "or a value, whichever is largest; NaN if either is.",
                           extreme_grad);
  add_both<WriteMode::min>(registry, "or a value, whichever is smallest; NaN if either is.",
                           extreme_grad);
  register_flat_index_ops(registry);
  register_masked_ops(registry);
}

}  // namespace croton
