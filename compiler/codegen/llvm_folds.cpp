// Accumulators: their start, their folds, and the phi nodes that carry them through loops.
#include "compiler/codegen/llvm_emitter.h"
#include "compiler/codegen/llvm_types.h"
#include "croton/error.h"

namespace croton::codegen::llvm_ir {

using kernel::Binary;
using kernel::Fold;
using kernel::kNone;
using kernel::Op;

namespace {

/// The bits of the largest or smallest value, infinities included.
std::uint64_t extreme_bits(DType t, bool largest) {
  if (t == DType::float32) return largest ? 0x7f800000u : 0xff800000u;
  if (t == DType::float64) return largest ? 0x7ff0000000000000u : 0xfff0000000000000u;
  if (t == DType::boolean) return largest ? 1 : 0;
  int bits = bits_of(t);
  std::uint64_t all = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  if (is_unsigned(t)) return largest ? all : 0;
  return largest ? all >> 1 : (all >> 1) + 1;
}

std::uint64_t one_bits(DType t) {
  if (t == DType::float32) return 0x3f800000u;
  if (t == DType::float64) return 0x3ff0000000000000u;
  return 1;
}

constexpr std::uint64_t kNoIndex = 0x7fffffffffffffffu;

std::uint64_t identity_bits(Fold fold, DType t) {
  switch (fold) {
    case Fold::sum:
    case Fold::any:
      return 0;
    case Fold::prod:
    case Fold::all:
      return one_bits(t);
    case Fold::min:
    case Fold::argmin:
      return extreme_bits(t, true);
    case Fold::max:
    case Fold::argmax:
      return extreme_bits(t, false);
  }
  return 0;
}

}  // namespace

bool Emitter::is_pair(Id loop, int k) const {
  Fold fold = node(loop).accumulators[k].fold;
  return fold == Fold::argmin || fold == Fold::argmax;
}

/// Those of a lanes, and of a loop in a lanes, are vectors.
int Emitter::accumulator_width(Id loop) const {
  if (node(loop).op == Op::lanes) return lanes_.width;
  return lanes_.depth > 0 ? lanes_.width : 0;
}

void Emitter::start_accumulators(Id loop) {
  int width = accumulator_width(loop);
  std::vector<Running>& running = running_[loop];
  running.clear();
  at_ = depth();
  for (const kernel::Accumulator& a : node(loop).accumulators) {
    Running start;
    if (a.init != kNone) {
      start.value = operand(a.init, width);
    } else {
      start.value = constant_of(a.dtype, width, identity_bits(a.fold, a.dtype));
    }
    start.index = constant_of(DType::int64, width, kNoIndex);
    running.push_back(start);
  }
}

/// Folds `v` into `a`; both have `width` elements.
Emitter::Running Emitter::fold(Fold fold, DType t, int width, const Running& a, const Running& v) {
  switch (fold) {
    case Fold::sum:
      return {binary(Binary::add, t, width, a.value, v.value), {}};
    case Fold::prod:
      return {binary(Binary::mul, t, width, a.value, v.value), {}};
    case Fold::min:
      return {minimum(false, t, width, v.value, a.value), {}};
    case Fold::max:
      return {minimum(true, t, width, v.value, a.value), {}};
    case Fold::any:
      return {simple("or", t, width, a.value, v.value), {}};
    case Fold::all:
      return {simple("and", t, width, a.value, v.value), {}};
    case Fold::argmin:
    case Fold::argmax:
      break;
  }
  DType b = DType::boolean;
  bool is_float = is_llvm_float(t), max = fold == Fold::argmax;
  std::string better = is_float       ? (max ? "ogt" : "olt")
                       : is_signed(t) ? (max ? "sgt" : "slt")
                                      : (max ? "ugt" : "ult");
  std::string take = compare(better, t, width, v.value, a.value);
  std::string same = compare(is_float ? "oeq" : "eq", t, width, v.value, a.value);
  if (is_float) {
    std::string new_nan = compare("uno", t, width, v.value, v.value);
    std::string old_number = compare("ord", t, width, a.value, a.value);
    std::string first_nan = simple("and", b, width, new_nan, old_number);
    std::string both = compare("uno", t, width, a.value, a.value);
    take = simple("or", b, width, take, first_nan);
    same = simple("or", b, width, same, simple("and", b, width, new_nan, both));
  }
  std::string earlier = compare("slt", DType::int64, width, v.index, a.index);
  take = simple("or", b, width, take, simple("and", b, width, same, earlier));
  Running result;
  result.value = select(t, width, take, v.value, a.value);
  result.index = select(DType::int64, width, take, v.index, a.index);
  return result;
}

void Emitter::emit_accumulate(Id id) {
  const Node& n = node(id);
  Id loop = n.in[0];
  at_ = depth();
  int width = accumulator_width(loop);
  const kernel::Accumulator& a = node(loop).accumulators[n.index];
  Running& running = running_[loop][n.index];
  Running value;
  value.value = operand(n.in[1], width);
  if (n.in[2] != kNone) value.index = operand(n.in[2], width);
  Running next = fold(a.fold, a.dtype, width, running, value);
  if (node(loop).op == Op::lanes && !lanes_.mask.empty()) {
    next.value = select(a.dtype, width, lanes_.mask, next.value, running.value);
    if (is_pair(loop, n.index)) {
      next.index = select(DType::int64, width, lanes_.mask, next.index, running.index);
    }
  }
  running = next;
}

/// Folds the upper half of the vector into the lower one until one element is left.
Emitter::Running Emitter::halve(Fold fold, DType t, int width, Running a) {
  auto part = [this](DType t, int width, int from, int count, const std::string& x) {
    std::string full = type(t, width);
    if (count == 0) return op("extractelement {} {}, i32 {}", full, x, from);
    std::string lanes;
    for (int i = 0; i < count; ++i) lanes += fmt::format("{}i32 {}", i ? ", " : "", from + i);
    return op("shufflevector {0} {1}, {0} poison, <{2} x i32> <{3}>", full, x, count, lanes);
  };
  bool pair = fold == Fold::argmin || fold == Fold::argmax;
  for (; width > 1; width /= 2) {
    int half = width / 2;
    int count = half == 1 ? 0 : half;
    Running low, high;
    low.value = part(t, width, 0, count, a.value);
    high.value = part(t, width, half, count, a.value);
    if (pair) {
      low.index = part(DType::int64, width, 0, count, a.index);
      high.index = part(DType::int64, width, half, count, a.index);
    }
    a = this->fold(fold, t, count, low, high);
  }
  return a;
}

/// After a lanes: what its accumulators hold becomes one element each.
void Emitter::finish_lanes_folds(Id id) {
  const Node& n = node(id);
  at_ = depth();
  for (std::size_t k = 0; k < n.accumulators.size(); ++k) {
    const kernel::Accumulator& a = n.accumulators[k];
    running_[id][k] = halve(a.fold, a.dtype, lanes_.width, running_[id][k]);
  }
}

// ---- Carrying accumulators through loops ----

/// The accumulators that the body of `loop` folds into: its own and those of enclosing regions.
void Emitter::find_carried(int region, std::set<std::pair<Id, int>>& carried) const {
  for (Id id : kernel_.regions[region]) {
    const Node& n = node(id);
    if (n.op == Op::accumulate) carried.emplace(n.in[0], n.index);
    if (n.region >= 0) find_carried(n.region, carried);
  }
}

Emitter::Carried Emitter::carried_through(Id loop) const {
  std::set<std::pair<Id, int>> found;
  find_carried(node(loop).region, found);
  Carried carried;
  for (const auto& [owner, k] : found) {
    // An inner loop's own accumulators start anew in each iteration.
    if (owner == loop || running_.contains(owner)) carried.emplace_back(owner, k);
  }
  return carried;
}

std::vector<Emitter::Running> Emitter::running_values(const Carried& carried) {
  std::vector<Running> values;
  for (const auto& [loop, k] : carried) values.push_back(running_[loop][k]);
  return values;
}

std::vector<Emitter::Running> Emitter::fresh_values(const Carried& carried) {
  std::vector<Running> values;
  for (const auto& [loop, k] : carried) {
    Running& value = values.emplace_back();
    value.value = fresh();
    if (is_pair(loop, k)) value.index = fresh();
  }
  return values;
}

void Emitter::set_running(const Carried& carried, const std::vector<Running>& values) {
  for (std::size_t i = 0; i < carried.size(); ++i) {
    running_[carried[i].first][carried[i].second] = values[i];
  }
}

/// The phi nodes that give `names` what comes in from each predecessor.
std::string Emitter::phis(const Carried& carried, const std::vector<Running>& names,
                          const std::vector<Incoming>& incoming) {
  std::string text;
  for (std::size_t i = 0; i < carried.size(); ++i) {
    const auto& [loop, k] = carried[i];
    int width = accumulator_width(loop);
    auto print = [&](DType t, std::string Running::*field) {
      text += fmt::format("  {} = phi {} ", names[i].*field, type(t, width));
      for (std::size_t j = 0; j < incoming.size(); ++j) {
        text += fmt::format("{}[ {}, %{} ]", j ? ", " : "", incoming[j].values[i].*field,
                            incoming[j].label);
      }
      text += "\n";
    };
    print(node(loop).accumulators[k].dtype, &Running::value);
    if (is_pair(loop, k)) print(DType::int64, &Running::index);
  }
  return text;
}

}  // namespace croton::codegen::llvm_ir
