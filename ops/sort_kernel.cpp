// How GPUs sort: chunks of each line first, in which each element counts those that come before it;
// then runs into runs of kWays times the length, in which each element finds its place by bisecting
// the other runs. Merges come in pairs, so that the result is where it should be whatever the
// length.
#include "ops/sort_kernel.h"

#include "compiler/graph/op.h"
#include "ops/order.h"

namespace croton {
namespace {

using kernel::Expr;

constexpr int kResult = 0;
constexpr int kOther = 1;
constexpr int kOperand = 2;

constexpr std::int64_t kChunk = 1024;  ///< sorted first, by counting
constexpr std::int64_t kWays = 32;     ///< runs that are merged at once
constexpr std::int64_t kTile = 256;    ///< elements of a block
constexpr int kMerges = 6;             ///< at most: for 2^40 elements

Dim ceil_div(Dim a, Dim b) { return floor_div(a + b - Dim(1), b); }

/// The length of runs before a merge, from 0 on.
std::int64_t run_before(int merge) {
  std::int64_t run = kChunk;
  for (int m = 0; m < merge; ++m) run *= kWays;
  return run;
}

class Merging {
 public:
  Merging(KernelLowering& low, bool places)
      : low_(low),
        b_(low.b),
        places_(places),
        descending_(low.node.attrs().integer("descending") != 0) {
    const auto axis = static_cast<std::size_t>(low.node.attrs().integer("axis"));
    const std::vector<Dim>& shape = low.in[0].shape;
    length_ = shape[axis];
    for (std::size_t k = 0; k < axis; ++k) lines_ = lines_ * shape[k];
    for (std::size_t k = axis + 1; k < shape.size(); ++k) inner_ = inner_ * shape[k];
    lines_ = lines_ * inner_;
  }

  void run() {
    low_.work = lines_ * length_ * Dim(kChunk);
    if (low_.launch == 0) {
      chunks();
      low_.more = longer_than(kChunk);
      return;
    }
    const int merge = low_.launch - 1;
    merges(run_before(merge), merge % 2 == 0);
    // A pair of merges is for lines that are longer than the runs before it.
    low_.blocks = low_.blocks * less(Dim(run_before(merge - merge % 2)), length_);
    low_.more = merge % 2 == 0 || (merge + 1 < kMerges && longer_than(run_before(merge + 1)));
  }

 private:
  Expr value(Dim dim) { return low_.value(dim); }
  Expr least(Expr a, Expr b) { return b_.binary(kernel::Binary::min, a, b); }
  Expr before(Expr a, Expr b) { return comes_before(a, b, descending_); }
  /// Whether lines may be.
  bool longer_than(std::int64_t size) const {
    return !length_.is_number() || length_.number() > size;
  }

  /// The element at place 0 of a line, and the one at any place.
  Expr line_start(Expr line) {
    return line / value(inner_) * value(length_) * value(inner_) + line % value(inner_);
  }
  Expr element(Expr start, Expr place) { return start + place * value(inner_); }

  void chunks() {
    const Dim count = ceil_div(length_, Dim(kChunk));
    low_.blocks = lines_ * count;
    const Expr start = line_start(b_.block() / value(count));
    const Expr first = b_.block() % value(count) * kChunk;
    const Expr size = least(b_.i64(kChunk), value(length_) - first);
    const Expr base = element(start, first);
    const Expr lane = b_.begin_lanes(size);
    const Expr read = b_.load(kOperand, base, value(inner_));
    const Expr own = comparable(read);
    const Expr other = b_.begin_loop(size, {{kernel::Fold::sum, DType::int64}});
    const Expr theirs = comparable(b_.gather(kOperand, element(base, other)));
    const Expr tie = (!before(own, theirs)) & (other < lane);
    b_.accumulate(other, 0, b_.cast(before(theirs, own) | tie, DType::int64));
    b_.end(other);
    b_.scatter(kResult, element(base, b_.result(other, 0)), places_ ? first + lane : read);
    b_.end(lane);
  }

  /// What the array `from` holds at a place, and the element that this stands for.
  struct Held {
    Expr value, element;
  };
  Held held(int from, Expr start, Expr place, Expr mask = {}) {
    const Expr found = b_.gather(from, element(start, place), mask);
    if (!places_) return {found, comparable(found)};
    return {found, comparable(b_.gather(kOperand, element(start, found), mask))};
  }

  /// Each element of kWays runs goes to its place among them: its own place in its run, and for
  /// each other run the number of elements there that come before it.
  void merges(std::int64_t run, bool away) {
    const int from = away ? kResult : kOther;
    const int to = away ? kOther : kResult;
    const Dim tiles = ceil_div(length_, Dim(kTile));
    low_.blocks = lines_ * tiles;
    const Expr start = line_start(b_.block() / value(tiles));
    const Expr first = b_.block() % value(tiles) * kTile;
    const Expr lane = b_.begin_lanes(least(b_.i64(kTile), value(length_) - first));
    const Expr place = first + lane;
    const Held own = held(from, start, place);
    const Expr own_run = place / run;
    const Expr group = own_run / kWays * kWays;
    const Expr way = b_.begin_loop(b_.i64(kWays), {{kernel::Fold::sum, DType::int64}});
    const Expr other_run = group + way;
    const Expr begin = other_run * run;
    const Expr there = least(b_.i64(run), value(length_) - begin);
    Expr found = b_.i64(0);
    for (std::int64_t step = run; step > 0; step /= 2) {
      const Expr next = found + step;
      const Expr inside = (next <= there) & (other_run != own_run);
      const Expr theirs = held(from, start, begin + next - 1, inside).element;
      // Equal elements of earlier runs come first.
      const Expr tie = (!before(own.element, theirs)) & (other_run < own_run);
      found = b_.select(inside & (before(theirs, own.element) | tie), next, found);
    }
    b_.accumulate(way, 0, b_.select(other_run == own_run, place - own_run * run, found));
    b_.end(way);
    b_.scatter(to, element(start, group * run + b_.result(way, 0)), own.value);
    b_.end(lane);
  }

  KernelLowering& low_;
  kernel::Builder& b_;
  bool places_;
  bool descending_;
  Dim lines_ = 1, length_, inner_ = 1;
};

}  // namespace

void lower_sort(KernelLowering& low, bool places) { Merging(low, places).run(); }

}  // namespace croton
