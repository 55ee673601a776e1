#include "ops/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "croton/math.h"
#include "ops/build.h"
#include "ops/size_arithmetic.h"
#include "ops/sizes.h"
#include "ops/slice.h"
#include "ops/take.h"

namespace croton {

BatchArgs::BatchArgs(const Node& node, std::vector<Lane> in)
    : node(node), in(std::move(in)), loc(place_of(node)) {}

Size BatchArgs::size() const {
  const Variable* best = nullptr;
  for (const Lane& lane : in) {
    if (!lane.batched) continue;
    if (best == nullptr || lane.value.static_shape()[0] != kAnyDim) best = &lane.value;
  }
  const std::int64_t known = best->static_shape()[0];
  return known != kAnyDim ? Size(known) : Size(size_of_axis(*best, 0, loc));
}

Variable BatchArgs::full(int k) const {
  const Variable& v = in[k].value;
  if (in[k].batched) return v;
  std::vector<Size> sizes = sizes_of(v, loc);
  sizes.insert(sizes.begin(), size());
  return broadcast_sizes(v, sizes, loc);
}

Variable BatchArgs::aligned(int k, int rank) const {
  const Variable& v = in[k].value;
  if (!in[k].batched) return v;
  std::vector<int> fresh;
  for (int axis = this->rank(k); axis < rank; ++axis) {
    fresh.push_back(static_cast<int>(fresh.size()) + 1);
  }
  return insert_axes(v, fresh, loc);
}

std::vector<Variable> BatchArgs::constant_from(int first, std::string_view what) const {
  std::vector<Variable> list;
  for (int k = first; k < count(); ++k) {
    if (in[k].batched) {
      graph_error(node.op->name,
                  fmt::format("{} would differ between the elements of the batch; it must be "
                              "the same for all of them",
                              what),
                  loc);
    }
    list.push_back(in[k].value);
  }
  return list;
}

Lane BatchArgs::again(std::vector<Variable> inputs, Attrs attrs) const {
  const Variable v = apply(*node.op, std::move(inputs), std::move(attrs), loc);
  // The node was made just now and nobody else holds it.
  const_cast<Node*>(v.node())->context = node.context;
  return {v};
}

namespace {

using Numbers = std::vector<std::int64_t>;

std::vector<Lane> elementwise(const BatchArgs& args) {
  const int rank = static_cast<int>(args.node.outputs[0].shape.size());
  std::vector<Variable> inputs;
  for (int k = 0; k < args.count(); ++k) inputs.push_back(args.aligned(k, rank));
  return {args.again(std::move(inputs), args.node.attrs())};
}

/// The attributes with axes that stand one further behind.
Attrs moved_axes(const Attrs& attrs) {
  Attrs result = attrs;
  if (attrs.has("axis")) result.set("axis", attrs.integer("axis") + 1);
  if (attrs.has("axes")) {
    Numbers axes = attrs.integers("axes");
    for (std::int64_t& axis : axes) ++axis;
    result.set("axes", std::move(axes));
  }
  return result;
}

/// Ops along axes ("axis", "axes") of operands that all have the batch's axis.
std::vector<Lane> along_axes(const BatchArgs& args) {
  std::vector<Variable> inputs;
  for (int k = 0; k < args.count(); ++k) inputs.push_back(args.full(k));
  return {args.again(std::move(inputs), moved_axes(args.node.attrs()))};
}

/// Ops along the last axes of the first `kValues` operands, with sizes in the others.
template <int kValues>
std::vector<Lane> in_front(const BatchArgs& args) {
  std::vector<Variable> inputs;
  for (int k = 0; k < kValues; ++k) inputs.push_back(args.full(k));
  for (const Variable& v : args.constant_from(kValues, "a size")) inputs.push_back(v);
  return {args.again(std::move(inputs), args.node.attrs())};
}

std::vector<Lane> dimshuffle_batch(const BatchArgs& args) {
  Numbers order{0};
  for (const std::int64_t axis : args.node.attrs().integers("order")) {
    order.push_back(axis < 0 ? -1 : axis + 1);
  }
  return {args.again({args.in[0].value}, {{"order", std::move(order)}})};
}

/// An op with the attribute "sizes" of its result: `x`, and the batch's size in front of the
/// others.
std::vector<Lane> resized(const BatchArgs& args, const Variable& x) {
  Numbers numbers = args.node.attrs().integers("sizes");
  std::vector<Variable> inputs{x};
  const Size size = args.size();
  const std::int64_t* known = size.number();
  numbers.insert(numbers.begin(), known != nullptr ? *known : kSymbolSize);
  if (known == nullptr) inputs.push_back(*size.variable());
  for (const Variable& v : args.constant_from(1, "a size")) inputs.push_back(v);
  return {args.again(std::move(inputs), {{"sizes", std::move(numbers)}})};
}

std::vector<Lane> reshape_batch(const BatchArgs& args) { return resized(args, args.full(0)); }

std::vector<Lane> broadcast_batch(const BatchArgs& args) {
  const int rank = static_cast<int>(args.node.outputs[0].shape.size());
  // What is stretched is the same for all where only a size differs, which is an error.
  args.constant_from(1, "a size");
  return resized(args, args.aligned(0, rank));
}

std::vector<Lane> specify_shape_batch(const BatchArgs& args) {
  Numbers sizes = args.node.attrs().integers("sizes");
  sizes.insert(sizes.begin(), kAnyDim);
  std::vector<Variable> inputs{args.in[0].value};
  for (const Variable& v : args.constant_from(1, "a size")) inputs.push_back(v);
  return {args.again(std::move(inputs), {{"sizes", std::move(sizes)}})};
}

std::vector<Lane> iota_batch(const BatchArgs& args) {
  args.constant_from(0, "a size");
  return {};
}

std::vector<Lane> size_of_batch(const BatchArgs& args) {
  const int axis = static_cast<int>(args.node.attrs().integer("axis"));
  return {{size_of_axis(args.in[0].value, axis + 1, args.loc), false}};
}

std::vector<Lane> shape_of_batch(const BatchArgs& args) {
  const Variable all = apply("shape_of", {args.in[0].value}, {}, args.loc);
  return {{slice_axis(all, 0, Slice(1, none), args.loc), false}};
}

/// slice, set_slice and inc_slice: a full slice of the batch's axis.
template <int kValues>
std::vector<Lane> slice_batch(const BatchArgs& args) {
  Attrs attrs;
  for (const auto& [name, value] : args.node.attrs()) {
    const Numbers* list = std::get_if<Numbers>(&value);
    if (list == nullptr) continue;
    Numbers numbers = *list;
    const std::int64_t first = name == "kind"   ? static_cast<std::int64_t>(SliceKind::full)
                               : name == "step" ? 1
                                                : kOpenBound;
    numbers.insert(numbers.begin(), first);
    attrs.set(name, std::move(numbers));
  }
  std::vector<Variable> inputs;
  for (int k = 0; k < kValues; ++k) inputs.push_back(args.full(k));
  for (const Variable& v : args.constant_from(kValues, "a bound of a slice")) inputs.push_back(v);
  return {args.again(std::move(inputs), std::move(attrs))};
}

bool adjacent(const Numbers& axes) {
  return axes.back() - axes.front() + 1 == static_cast<std::int64_t>(axes.size());
}

Variable move_axes(const Variable& x, int from, int count, int to, const Loc& loc) {
  std::vector<int> order;
  for (int axis = 0; axis < x.ndim(); ++axis) order.push_back(axis);
  const std::vector<int> moved(order.begin() + from, order.begin() + from + count);
  order.erase(order.begin() + from, order.begin() + from + count);
  order.insert(order.begin() + to, moved.begin(), moved.end());
  return dimshuffle(x, order, loc);
}

// The indices' axes stand where the indexed axes were if those are adjacent, else in front; the
// batch's axis is one of them where indices differ between its elements.
std::vector<Lane> take_batch(const BatchArgs& args) {
  const Numbers& axes = args.node.attrs().integers("axes");
  int rank = 0;  // of the indices together
  bool differ = false;
  for (int k = 1; k < args.count(); ++k) {
    rank = std::max(rank, args.rank(k));
    differ = differ || args.batched(k);
  }
  const int before = adjacent(axes) ? static_cast<int>(axes[0]) : 0;
  std::vector<int> where(axes.begin(), axes.end());
  std::vector<Variable> indices;
  for (int k = 1; k < args.count(); ++k) indices.push_back(args.aligned(k, rank));
  const Variable& x = args.in[0].value;
  if (!args.batched(0)) {
    const Variable y = take_entries(x, where, std::move(indices), 0, args.loc);
    return {{move_axes(y, before, 1, 0, args.loc)}};
  }
  for (int& axis : where) ++axis;
  if (!differ) {
    const Variable y = take_entries(x, where, std::move(indices), 0, args.loc);
    return {{adjacent(axes) ? y : move_axes(y, rank, 1, 0, args.loc)}};
  }
  std::vector<int> behind;
  for (int k = 0; k < rank; ++k) behind.push_back(k + 1);
  where.insert(where.begin(), 0);
  indices.insert(indices.begin(), insert_axes(positions(args.size(), args.loc), behind, args.loc));
  const Variable y = take_entries(x, where, std::move(indices), 0, args.loc);
  return {{move_axes(y, 1, rank, 1 + before, args.loc)}};
}

/// set_take and inc_take with indices that differ: into the axis joined with the batch's.
Lane put_differing(const BatchArgs& args) {
  const Loc& loc = args.loc;
  const int axis = static_cast<int>(args.node.attrs().integer("axis")) + 1;
  const Variable x = move_axes(args.full(0), axis, 1, 1, loc);
  const Variable value = move_axes(args.full(1), axis, 1, 1, loc);
  const Variable indices = args.in[2].value;
  const std::vector<Size> sizes = sizes_of(x, loc);
  SizeList list = size_list("take", std::span(sizes).first(2), loc);
  std::vector<Variable> inputs{insert_axes(positions(args.size(), loc), {1}, loc), indices};
  inputs.insert(inputs.end(), list.symbols.begin(), list.symbols.end());
  const Variable flat = apply("flat_index", std::move(inputs), {{"sizes", list.numbers}}, loc);
  const Lane y = args.again(
      {merge_axes(x, 0, 2, loc), merge_axes(value, 0, 2, loc), merge_axes(flat, 0, 2, loc)},
      {{"axis", std::int64_t{0}}});
  return {move_axes(reshape_sizes(y.value, sizes, loc), 1, 1, axis, loc)};
}

std::vector<Lane> put_batch(const BatchArgs& args) {
  if (args.batched(2)) return {put_differing(args)};
  return {
      args.again({args.full(0), args.full(1), args.in[2].value}, moved_axes(args.node.attrs()))};
}

std::vector<Lane> flat_index_batch(const BatchArgs& args) {
  const int count = static_cast<int>(args.node.attrs().integers("sizes").size());
  const int rank = static_cast<int>(args.node.outputs[0].shape.size());
  std::vector<Variable> inputs;
  for (int k = 0; k < count; ++k) inputs.push_back(args.aligned(k, rank));
  for (const Variable& v : args.constant_from(count, "a size")) inputs.push_back(v);
  return {args.again(std::move(inputs), args.node.attrs())};
}

std::vector<Lane> gemm_batch(const BatchArgs& args) {
  const Attrs& attrs = args.node.attrs();
  const bool matrices = args.rank(0) == 2 && args.rank(1) == 2;
  if (matrices && args.count() == 2 && !args.batched(1) &&
      attrs.integer_or("transpose_a", 0) == 0) {
    // Many rows more, of one product.
    std::vector<Size> sizes = sizes_of(args.in[0].value, args.loc);
    const Lane y =
        args.again({merge_axes(args.in[0].value, 0, 2, args.loc), args.in[1].value}, attrs);
    sizes[2] = sizes_of(y.value, args.loc)[1];
    return {{reshape_sizes(y.value, sizes, args.loc)}};
  }
  const int rank = static_cast<int>(args.node.outputs[0].shape.size());
  std::vector<Variable> inputs;
  for (int k = 0; k < args.count(); ++k) inputs.push_back(args.aligned(k, rank));
  return {args.again(std::move(inputs), attrs)};
}

/// Both results are of the operand's shape.
std::vector<Lane> sort_batch(const BatchArgs& args) {
  const Lane result = args.again({args.in[0].value}, moved_axes(args.node.attrs()));
  return {result, {result.value.node()->out(1)}};
}

/// Where the sorted vectors differ, the elements that come before a value are counted.
std::vector<Lane> searchsorted_batch(const BatchArgs& args) {
  if (!args.batched(0)) {
    return {args.again({args.in[0].value, args.in[1].value}, args.node.attrs())};
  }
  const Loc& loc = args.loc;
  const int rank = args.rank(1);
  const Variable values = insert_axes(args.aligned(1, rank), {args.in[1].value.ndim()}, loc);
  std::vector<int> between;
  for (int k = 0; k < rank; ++k) between.push_back(k + 1);
  const Variable sorted = insert_axes(args.in[0].value, between, loc);
  const auto before = [](const Variable& a, const Variable& b) {
    return is_float(a.dtype()) ? logical_or(lt(a, b), logical_and(isnan(b), logical_not(isnan(a))))
                               : lt(a, b);
  };
  const bool right = args.node.attrs().integer("right") != 0;
  const Variable ahead = right ? logical_not(before(values, sorted)) : before(sorted, values);
  const Variable counted = cast_to(ahead, DType::int64, loc);
  return {{sum_axes(counted, {counted.ndim() - 1}, false, loc)}};
}

/// remat and delay: operands of any shapes beside the value.
std::vector<Lane> each_on_its_own(const BatchArgs& args) {
  std::vector<Variable> inputs;
  for (const Lane& lane : args.in) inputs.push_back(lane.value);
  return {{args.again(std::move(inputs), args.node.attrs()).value, args.batched(0)}};
}

std::vector<Lane> true_places_batch(const BatchArgs& args) {
  graph_error("vectorize",
              "how many entries are not 0 may differ between the elements of a batch: use "
              "where(mask, a, b), or a reduction with {.where = mask}",
              args.loc);
}

const std::map<std::string_view, BatchRule>& table() {
  static const auto* const rules = new std::map<std::string_view, BatchRule>{
      {"softmax", along_axes},
      {"log_softmax", along_axes},
      {"logsumexp", along_axes},
      {"standardize", along_axes},
      {"prod_others", along_axes},
      {"cumsum", along_axes},
      {"cumprod", along_axes},
      {"cummax", along_axes},
      {"cummin", along_axes},
      {"logcumsumexp", along_axes},
      {"recurrence", along_axes},
      {"sort", sort_batch},
      {"argsort", sort_batch},
      {"searchsorted", searchsorted_batch},
      {"concatenate", along_axes},
      {"take_along_axis", along_axes},
      {"set_along_axis", along_axes},
      {"inc_along_axis", along_axes},
      {"mul_along_axis", along_axes},
      {"max_along_axis", along_axes},
      {"min_along_axis", along_axes},
      {"pick", in_front<2>},
      {"pick_grad", in_front<2>},
      {"transfer", in_front<1>},
      {"dimshuffle", dimshuffle_batch},
      {"reshape", reshape_batch},
      {"broadcast", broadcast_batch},
      {"specify_shape", specify_shape_batch},
      {"iota", iota_batch},
      {"size_of", size_of_batch},
      {"shape_of", shape_of_batch},
      {"slice", slice_batch<1>},
      {"set_slice", slice_batch<2>},
      {"inc_slice", slice_batch<2>},
      {"true_places", true_places_batch},
      {"take", take_batch},
      {"set_take", put_batch},
      {"inc_take", put_batch},
      {"mul_take", put_batch},
      {"max_take", put_batch},
      {"min_take", put_batch},
      {"flat_index", flat_index_batch},
      {"gemm", gemm_batch},
      {"remat", each_on_its_own},
      {"delay", each_on_its_own},
  };
  return *rules;
}

}  // namespace

BatchRule batch_rule(const OpDef& op) {
  const auto it = table().find(op.name);
  if (it != table().end()) return it->second;
  if (op.random) return nullptr;
  if (op.form == OpForm::scalar) return elementwise;
  return op.fold ? along_axes : nullptr;
}

}  // namespace croton
