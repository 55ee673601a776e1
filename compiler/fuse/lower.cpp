#include "compiler/fuse/lower.h"

#include <algorithm>

#include "compiler/graph/op.h"
#include "croton/error.h"

namespace croton {

using kernel::Expr;

std::vector<DomainLoop> merge_axes(const FusionGroup& group, const std::vector<Access>& accesses,
                                   const std::vector<bool>& used_alone) {
  std::vector<DomainLoop> loops;
  for (int axis = 0; axis < static_cast<int>(group.domain.size()); ++axis) {
    const Dim size = group.domain[axis];
    if (size.is(1)) continue;
    bool merge = !loops.empty() && loops.back().reduced == group.reduced[axis] &&
                 !used_alone[axis] && !used_alone[loops.back().axes.back()];
    if (merge) {
      const int before = loops.back().axes.back();
      for (const Access& access : accesses) {
        const Dim outer = access.coefficient[before];
        const Dim inner = access.coefficient[axis];
        merge = merge && (inner * size).same(outer);
      }
    }
    if (merge) {
      loops.back().axes.push_back(axis);
      loops.back().size = loops.back().size * size;
    } else {
      loops.push_back({{axis}, size, group.reduced[axis]});
    }
  }
  return loops;
}

/// What an op's own lowering sees of the group.
class ElementLowering : public Lowering {
 public:
  ElementLowering(GroupLowering& group, const Node& node, std::span<const DimType> in,
                  std::span<const DimType> out, Expr mask)
      : Lowering(group.b, node, in, out), group_(group), mask_(mask) {}

  Expr read(int input, std::vector<Position> at, Expr mask) override {
    if (mask_) mask = mask ? mask & mask_ : mask_;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      if (in[input].shape[axis].is(1) && at[axis].affine()) at[axis] = {};
    }
    return group_.at(node.inputs[input], at, mask);
  }
  Expr value(const Position& position) override { return group_.value(position); }
  Expr value(Dim dim) override { return group_.size(dim); }

 private:
  GroupLowering& group_;
  Expr mask_;
};

GroupLowering::GroupLowering(const FusionGroup& group, const Shapes& shapes,
                             kernel::Builder& builder, bool check_bounds)
    : group(group),
      shapes(shapes),
      b(builder),
      check_bounds_(check_bounds),
      used_alone_(group.domain.size(), false) {
  memo_.emplace_back();
}

void GroupLowering::survey() {
  survey_ = true;
  // Counters stand for loops that do not exist yet: numbers that no size argument has.
  for (std::size_t axis = 0; axis < group.domain.size(); ++axis) {
    counters_.push_back(b.size(static_cast<int>(axis)));
  }
  for (const Node* node : group.nodes) {
    if (!reduces(node, shapes)) continue;
    // Another member may read the same operand at another place.
    at(node->inputs[0], operand_position(node, 0));
    set_fold(node, b.constant(node->outputs[0].dtype, 0));
  }
  for (const Variable& output : group.outputs) {
    aligned(output);
    in_place_[output] = in_domain_order(output, linear(output, position_of(output.node())));
  }
}

bool GroupLowering::in_place(const Variable& v) const {
  const auto it = in_place_.find(v);
  return it != in_place_.end() && it->second;
}

void GroupLowering::set_loops(std::vector<DomainLoop> loops,
                              std::unordered_set<const Node*> needed) {
  survey_ = false;
  computed_ = std::move(needed);
  loops_ = std::move(loops);
  loop_of_axis_.assign(group.domain.size(), -1);
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    for (const int axis : loops_[i].axes) loop_of_axis_[axis] = static_cast<int>(i);
  }
  counters_.assign(loops_.size(), Expr{});
}

int GroupLowering::declare(const Variable& v, bool written, int aliases) {
  const int buffer = b.buffer(v.dtype(), written, aliases);
  buffers_.emplace(v, buffer);
  elements_.emplace_back(buffer, shapes.numel(v));
  return buffer;
}

int GroupLowering::declare_partial(DType dtype, bool written, Dim elements) {
  const int buffer = b.buffer(dtype, written);
  elements_.emplace_back(buffer, elements);
  return buffer;
}

void GroupLowering::end_declarations() {
  if (!check_bounds_) return;
  for (const auto& [buffer, elements] : elements_) b.bound(buffer, size(elements));
}

void GroupLowering::set_counter(int loop, Expr value) { counters_[loop] = value; }

void GroupLowering::set_lane(int loop, Expr start, Expr counter) {
  lane_loop_ = loop;
  lane_start_ = start;
  counters_[loop] = start + counter;
}

void GroupLowering::clear_lane() {
  if (lane_loop_ >= 0) counters_[lane_loop_] = {};
  for (int i = flat_loop_; i >= 0 && i < static_cast<int>(loops_.size()); ++i) counters_[i] = {};
  lane_loop_ = -1;
  flat_loop_ = -1;
}

void GroupLowering::set_flat(int first, Expr start, Expr counter) {
  flat_loop_ = first;
  lane_start_ = start;
  Expr index = b.bounded(start + counter);
  flat_index_ = index;
  for (int i = static_cast<int>(loops_.size()) - 1; i > first; --i) {
    const Expr extent = size(loops_[i].size);
    counters_[i] = index % extent;
    index = index / extent;
  }
  counters_[first] = index;
}

Expr GroupLowering::size(Dim dim) {
  internal_check(!dim.is_unknown(), "a size is unknown in a kernel");
  if (dim.is_number()) return b.i64(dim.number());
  const DimRef ref = shapes.dims().ref(dim);
  const auto [it, added] = size_index_.emplace(ref, static_cast<int>(size_arguments_.size()));
  if (added) size_arguments_.push_back(ref);
  // In a survey the first numbers stand for the loops.
  return b.size(it->second + (survey_ ? static_cast<int>(kMaxRank) * 4 : 0));
}

std::vector<Position> GroupLowering::position_of(const Node* node) const {
  std::vector<Position> result;
  for (const int axis : group.axes.at(node)) {
    Position& position = result.emplace_back();
    if (axis >= 0) position.terms.emplace_back(axis, Dim(1));
  }
  return result;
}

std::vector<Position> GroupLowering::operand_position(const Node* node, int k) const {
  const std::vector<Position> mine = position_of(node);
  const std::vector<Dim>& shape = shapes.of(node->inputs[k]).shape;
  std::vector<Position> result(shape.size());
  if (node->op->fold) {
    const auto& list = node->attrs().integers("axes");
    const bool keepdims = node->attrs().integer("keepdims") != 0;
    std::size_t kept = 0;
    int next_reduced = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (std::find(list.begin(), list.end(), static_cast<int>(axis)) == list.end()) {
        result[axis] = mine[kept++];
        continue;
      }
      if (keepdims) ++kept;
      if (shape[axis].is(1)) continue;
      while (!group.reduced[next_reduced] || group.domain[next_reduced].is(1)) ++next_reduced;
      result[axis].terms.emplace_back(next_reduced++, Dim(1));
    }
    return result;
  }
  const std::size_t skip = mine.size() - shape.size();
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (!shape[axis].is(1)) result[axis] = mine[axis + skip];
  }
  return result;
}

Expr GroupLowering::axis_value(int axis) {
  if (group.domain[axis].is(1)) return b.i64(0);
  if (survey_) {
    used_alone_[axis] = true;
    return counters_[axis];
  }
  const Expr counter = counters_[loop_of_axis_[axis]];
  internal_check(static_cast<bool>(counter), "a loop counter is used outside of its loop");
  return counter;
}

Expr GroupLowering::value(const Position& position) {
  Expr sum = size(position.offset);
  if (flat_loop_ == 0 && is_flat(position)) {
    sum = sum + flat_index_;
    return position.computed ? sum + position.computed : sum;
  }
  for (const auto& [axis, coefficient] : position.terms) {
    sum = sum + axis_value(axis) * size(coefficient);
  }
  return position.computed ? sum + position.computed : sum;
}

std::string GroupLowering::key(const Variable& v, const std::vector<Position>& position,
                               Expr mask) const {
  std::string text;
  const auto put = [&](auto number) {
    text.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  put(v.node());
  put(mask.id);
  for (const Position& p : position) {
    put(static_cast<int>(p.terms.size()));
    for (const auto& [axis, coefficient] : p.terms) {
      put(axis);
      put(shapes.dims().ref(coefficient));
    }
    put(shapes.dims().ref(p.offset));
    put(p.computed.id);
  }
  return text;
}

Expr GroupLowering::aligned(const Variable& v) {
  const auto found = group.axes.find(v.node());
  if (found != group.axes.end()) return at(v, position_of(v.node()));
  // An operand from outside: find a member that says where it stands.
  for (const Node* node : group.nodes) {
    if (!group.axes.contains(node)) continue;
    if (node->op->form != OpForm::scalar && !node->op->fold) continue;
    for (int k = 0; k < static_cast<int>(node->inputs.size()); ++k) {
      if (node->inputs[k].same(v)) return at(v, operand_position(node, k));
    }
  }
  throw InternalError("a value has no place in its group");
}

Expr GroupLowering::at(const Variable& v, const std::vector<Position>& position, Expr mask) {
  const std::string name = key(v, position, mask);
  for (auto scope = memo_.rbegin(); scope != memo_.rend(); ++scope) {
    const auto it = scope->find(name);
    if (it == scope->end()) continue;
    if (survey_) met_.insert(met_.end(), met_at_[name].begin(), met_at_[name].end());
    return it->second;
  }
  const std::size_t before = met_.size();
  const Node* node = v.node();
  Expr result;
  if (const auto it = folds_.find(node); it != folds_.end()) {
    result = it->second;
  } else if (const auto cache = cached_.find(node); cache != cached_.end()) {
    const Cached& c = cache->second;
    if (c.stride) {
      result = b.load(c.buffer, c.base, c.stride);
    } else if (c.base) {
      result = b.gather(c.buffer, c.base, mask_);
    } else {
      result = load_at(c.buffer, v.dtype(), c.linear);
    }
  } else if (group.contains(node)) {
    result = compute(node, position, mask);
  } else if (const Array* array = constant_value(v); array != nullptr && array->size() == 1) {
    const DType dtype = array->dtype();
    result = is_float(dtype)
                 ? b.constant(dtype, array->reshape({}).astype(DType::float64).item<double>())
                 : b.integer(dtype, array->reshape({}).astype(DType::int64).item<std::int64_t>());
  } else {
    result = read(v, position, mask);
  }
  memo_.back().emplace(name, result);
  if (survey_) {
    // Each once, however often a value is used on the way.
    const auto mine = met_.begin() + static_cast<std::ptrdiff_t>(before);
    std::sort(mine, met_.end());
    met_.erase(std::unique(mine, met_.end()), met_.end());
    met_at_[name].assign(mine, met_.end());
  }
  return result;
}

Expr GroupLowering::compute(const Node* node, const std::vector<Position>& position, Expr mask) {
  if (survey_) computed_.insert(node);
  if (node->op->fold) {
    // Only over axes of size 1: the value itself, at index 0.
    for (const std::int64_t axis : node->attrs().integers("axes")) {
      internal_check(shapes.of(node->inputs[0]).shape[axis].is(1),
                     "a reduction is used before it is done");
    }
    if (*node->op->fold == kernel::Fold::argmax || *node->op->fold == kernel::Fold::argmin) {
      return b.i64(0);
    }
    const auto& axes = node->attrs().integers("axes");
    const bool keepdims = node->attrs().integer("keepdims") != 0;
    std::vector<Position> where(shapes.of(node->inputs[0]).shape.size());
    std::size_t next = 0;
    for (std::size_t axis = 0; axis < where.size(); ++axis) {
      const bool reduced =
          std::find(axes.begin(), axes.end(), static_cast<int>(axis)) != axes.end();
      if (!reduced) where[axis] = position[next];
      if (!reduced || keepdims) ++next;
    }
    return at(node->inputs[0], where, mask);
  }
  if (node->op->form != OpForm::scalar) {
    std::vector<DimType> in;
    for (const Variable& input : node->inputs) in.push_back(shapes.of(input));
    ElementLowering lowering(*this, *node, in, shapes.of(node), mask);
    const std::size_t before = met_.size();
    const Expr result = node->op->element(lowering, position);
    if (survey_) {
      std::vector<Access>& reads = member_reads_[node];
      reads.clear();
      for (std::size_t i = before; i < met_.size(); ++i) reads.push_back(walked_[met_[i]]);
    }
    return result;
  }
  const auto narrow = [](DType t) { return t == DType::float16 || t == DType::bfloat16; };
  std::vector<Expr> operands;
  for (const Variable& input : node->inputs) {
    const std::vector<Dim>& shape = shapes.of(input).shape;
    std::vector<Position> where(shape.size());
    const std::size_t skip = position.size() - shape.size();
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (!shape[axis].is(1)) where[axis] = position[axis + skip];
    }
    const Expr operand = at(input, where, mask);
    operands.push_back(narrow(operand.dtype()) ? b.cast(operand, DType::float32) : operand);
  }
  const Expr result = node->op->scalar(b, operands, *node);
  const DType dtype = node->outputs[0].dtype;
  return result.dtype() == dtype ? result : b.cast(result, dtype);
}

Position GroupLowering::linear(const Variable& v, const std::vector<Position>& position) {
  const std::vector<Dim>& shape = shapes.of(v).shape;
  Position sum;
  Dim stride = 1;
  for (int axis = static_cast<int>(shape.size()) - 1; axis >= 0; --axis) {
    sum = sum + scaled(position[axis], stride, position[axis].computed ? size(stride) : Expr{});
    stride = stride * shape[axis];
  }
  if (!survey_) return sum;
  Access access{std::vector<Dim>(group.domain.size(), Dim(0)), !sum.affine()};
  for (const auto& [axis, coefficient] : sum.terms) access.coefficient[axis] = coefficient;
  met_.push_back(walked_.size());
  walked_.push_back(access);
  if (sum.affine()) {
    accesses_.push_back(access);
  } else {
    for (const auto& [axis, coefficient] : sum.terms) used_alone_[axis] = true;
  }
  return sum;
}

/// Whether the elements of v stand in memory as the loops of the domain walk through them.
bool GroupLowering::in_domain_order(const Variable& v, const Position& linear) const {
  bool plain =
      linear.affine() && linear.offset.is(0) && shapes.of(v).shape.size() <= group.domain.size();
  Dim stride = 1;
  for (int axis = static_cast<int>(group.domain.size()) - 1; axis >= 0 && plain; --axis) {
    Dim mine = 0;
    for (const auto& [term, coefficient] : linear.terms) {
      if (term == axis) mine = coefficient;
    }
    plain = group.domain[axis].is(1) || mine.same(stride);
    stride = stride * group.domain[axis];
  }
  return plain;
}

Expr GroupLowering::read(const Variable& v, const std::vector<Position>& position, Expr mask) {
  const Position sum = linear(v, position);
  if (survey_) {
    const bool first = in_place_.find(v) == in_place_.end();
    if (first) reads_.push_back(v);
    const bool plain = mask.id == kernel::kNone && in_domain_order(v, sum);
    in_place_[v] = plain && (first || in_place_[v]);
    return b.constant(v.dtype(), 1);
  }
  if (mask_) mask = mask ? mask & mask_ : mask_;
  const int buffer = buffers_.at(v);
  if (!sum.affine()) return b.gather(buffer, value(sum), mask);
  const Address from = address(sum);
  return from.base.varying() ? b.gather(buffer, from.base, mask)
                             : b.load(buffer, from.base, from.stride, mask);
}

/// Whether the flat loops are walked through in row-major order, one element at a time.
bool GroupLowering::is_flat(const Position& linear) const {
  Dim stride = 1;
  for (std::size_t i = loops_.size(); i-- > static_cast<std::size_t>(flat_loop_);) {
    Dim mine = 0;
    for (const auto& [axis, coefficient] : linear.terms) {
      if (axis == loops_[i].axes.back()) mine = coefficient;
    }
    if (!mine.same(stride)) return false;
    stride = stride * loops_[i].size;
  }
  return true;
}

GroupLowering::Address GroupLowering::address(const Position& linear) {
  Address to{size(linear.offset), b.i64(0)};
  const bool flat = flat_loop_ >= 0 && is_flat(linear);
  if (flat) to = {to.base + lane_start_, b.i64(1)};
  const std::size_t last = flat ? static_cast<std::size_t>(flat_loop_) : loops_.size();
  for (std::size_t i = 0; i < last; ++i) {
    for (const auto& [axis, coefficient] : linear.terms) {
      if (axis != loops_[i].axes.back()) continue;
      const bool lane = static_cast<int>(i) == lane_loop_;
      to.base = to.base + (lane ? lane_start_ : counters_[i]) * size(coefficient);
      if (lane) to.stride = size(coefficient);
    }
  }
  if (linear.computed) to.base = to.base + linear.computed;
  return to;
}

void GroupLowering::store(const Variable& v, Expr value) {
  store_at(buffers_.at(v), linear(v, position_of(v.node())), value);
}

void GroupLowering::store_at(int buffer, const Position& linear, Expr value) {
  const Address to = address(linear);
  if (to.base.varying()) return b.scatter(buffer, to.base, value, mask_);
  b.store(buffer, to.base, to.stride, value, mask_);
}

Expr GroupLowering::load_at(int buffer, DType, const Position& linear) {
  const Address from = address(linear);
  return from.base.varying() ? b.gather(buffer, from.base, mask_)
                             : b.load(buffer, from.base, from.stride, mask_);
}

void GroupLowering::hoist(const std::vector<bool>& running) {
  const auto runs = [&](const std::vector<int>& axes) {
    for (const int axis : axes) {
      if (axis >= 0 && loop_of_axis_[axis] >= 0 && !running[loop_of_axis_[axis]]) return false;
    }
    return true;
  };
  std::unordered_map<const Node*, bool> ready;  // all folds below are done
  for (const Node* node : group.nodes) {
    bool now = true;
    for (const Variable& input : node->inputs) {
      if (const auto it = ready.find(input.node()); it != ready.end()) now = now && it->second;
    }
    if (reduces(node, shapes)) now = has_fold(node);
    ready[node] = now;
    const auto found = group.axes.find(node);
    if (found == group.axes.end()) continue;
    if (!computed_.contains(node) && !reduces(node, shapes)) continue;
    if (now && runs(found->second) && !reduces(node, shapes)) {
      aligned(node->out());
      continue;
    }
    if (node->op->form != OpForm::scalar && !node->op->fold) {
      for (const Variable& input : node->inputs) {
        const bool operand = !group.contains(input.node()) && buffers_.contains(input);
        if (operand && shapes.of(input).shape.empty()) at(input, {});
      }
      continue;
    }
    for (int k = 0; k < static_cast<int>(node->inputs.size()); ++k) {
      const Variable& input = node->inputs[k];
      if (group.contains(input.node())) continue;
      const std::vector<Position> where = operand_position(node, k);
      bool all = true;
      for (const Position& p : where) {
        for (const auto& [axis, coefficient] : p.terms) all = all && runs({axis});
      }
      if (all) at(input, where);
    }
  }
}

Expr combine(kernel::Builder& b, kernel::Fold fold, Expr x, Expr y) {
  using kernel::Binary;
  using kernel::Fold;
  switch (fold) {
    case Fold::sum:
      return b.binary(Binary::add, x, y);
    case Fold::prod:
      return b.binary(Binary::mul, x, y);
    case Fold::min:
    case Fold::argmin:
      return b.binary(Binary::min, x, y);
    case Fold::max:
    case Fold::argmax:
      return b.binary(Binary::max, x, y);
    case Fold::any:
      return b.binary(Binary::bit_or, x, y);
    case Fold::all:
      return b.binary(Binary::bit_and, x, y);
  }
  throw InternalError("unknown fold");
}

}  // namespace croton
