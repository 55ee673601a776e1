// How running folds along an axis are computed. An operand is (outer, length, inner) around the
// axis. Where the axis is long and there is little beside it, it is cut into chunks: each is folded
// by itself, then the ends of the chunks one after the other, then each chunk goes on from the end
// of the one before. Chunks come from the shape alone, so the order of operations does, too.
#include "ops/cumulative_kernel.h"

#include <utility>

namespace croton {
namespace {

using kernel::Expr;

constexpr int kResult = 0;
constexpr int kOperand = 1;
constexpr int kFactor = 2;
constexpr std::int64_t kTile = 256;    ///< elements of a row, or columns, that a block has at once
constexpr std::int64_t kShort = 32;    ///< rows up to this length are folded side by side
constexpr std::int64_t kLeast = 1024;  ///< elements of a chunk
constexpr std::int64_t kBlocks = 64;   ///< chunks are made until there are so many blocks

Dim ceil_div(Dim a, Dim b) { return floor_div(a + b - Dim(1), b); }

/// An operand around the axis, and what the kernels of this file have in common.
class Along {
 public:
  explicit Along(KernelLowering& low)
      : low_(low), b_(low.b), reverse_(low.node.attrs().integer("reverse") != 0) {
    const auto axis = static_cast<std::size_t>(low.node.attrs().integer("axis"));
    const std::vector<Dim>& shape = low.in[0].shape;
    length_ = shape[axis];
    for (std::size_t k = 0; k < axis; ++k) outer_ = outer_ * shape[k];
    for (std::size_t k = axis + 1; k < shape.size(); ++k) inner_ = inner_ * shape[k];
    rows_ = inner_.is(1);
    tiles_ = ceil_div(inner_, Dim(kTile));
    chunk_ = max(length_, Dim(1));
    chunks_ = 1;
  }

 protected:
  Expr value(Dim dim) { return low_.value(dim); }
  Expr least(Expr a, Expr b) { return b_.binary(kernel::Binary::min, a, b); }
  int local(std::int64_t size) { return b_.local(low_.out[0].dtype, b_.i64(size)); }
  /// Where the k-th element that is folded stands along the axis.
  Expr along(Expr k) { return reverse_ ? value(length_) - 1 - k : k; }

  /// Rows side by side, each by itself. `next(carry, k, at, stride)` gives the k-th element, in
  /// lanes that read at `at`, `stride` apart.
  template <class Next>
  void short_rows(Expr start, const Next& next) {
    low_.blocks = ceil_div(outer_, Dim(kTile));
    const Expr first = b_.block() * kTile;
    const Expr length = value(length_);
    walk(
        least(b_.i64(kTile), value(outer_) - first), length, start,
        [&](Expr k) { return first * length + along(k); }, length, next);
  }

  /// Columns side by side.
  template <class Next>
  void columns(Expr start, const Next& next) {
    low_.blocks = outer_ * chunks_ * tiles_;
    const Expr tile = b_.block() % value(tiles_) * kTile;
    const Expr unit = b_.block() / value(tiles_);
    const Expr first = unit % value(chunks_) * value(chunk_);
    const Expr outer = unit / value(chunks_);
    walk(
        least(b_.i64(kTile), value(inner_) - tile), least(value(chunk_), value(length_) - first),
        start,
        [&](Expr k) { return (outer * value(length_) + along(first + k)) * value(inner_) + tile; },
        b_.i64(1), next);
  }

  /// `count` elements in each of some lanes, from `start` on; the k-th ones stand at `base(k)`,
  /// `stride` apart.
  template <class Base, class Next>
  void walk(Expr lanes, Expr count, Expr start, const Base& base, Expr stride, const Next& next) {
    const int carry = local(kTile);
    const Expr zero = b_.i64(0);
    const Expr one = b_.i64(1);
    const Expr lane = b_.begin_lanes(lanes);
    b_.store(carry, zero, one, start);
    b_.end(lane);
    const Expr k = b_.begin_loop(count);
    const Expr at = base(k);
    const Expr own = b_.begin_lanes(lanes);
    const Expr y = next(b_.load(carry, zero, one), k, at, stride);
    b_.store(carry, zero, one, y);
    b_.store(kResult, at, stride, y);
    b_.end(own);
    b_.end(k);
  }

  KernelLowering& low_;
  kernel::Builder& b_;
  bool reverse_;
  bool rows_ = false;
  Dim outer_ = 1, length_, inner_ = 1;
  Dim tiles_, chunk_, chunks_;
};

class Running : Along {
 public:
  Running(KernelLowering& low, const RunningFold& fold) : Along(low), fold_(fold) {
    const Dim units = max(outer_ * tiles_, Dim(1));
    const Dim wanted = max(min(ceil_div(length_, Dim(kLeast)), floor_div(Dim(kBlocks), units)), 1);
    chunk_ = max(ceil_div(length_, wanted), Dim(1));
    chunks_ = ceil_div(length_, chunk_);
  }

  void run() {
    low_.work = outer_ * length_ * inner_ * Dim(fold_.cost);
    const Dim is_short = less(length_, Dim(kShort + 1));
    const bool maybe_short = rows_ && !is_short.is(0);
    const bool only_short = rows_ && is_short.is(1);
    const bool one_chunk = only_short || chunks_.is(1) || chunks_.is(0);
    // Which of these is empty may show in the call only.
    std::vector<std::pair<void (Running::*)(), Dim>> launches;
    if (maybe_short) launches.emplace_back(&Running::folded_rows, is_short);
    const Dim others = rows_ ? Dim(1) - is_short : Dim(1);
    if (!only_short)
      launches.emplace_back(rows_ ? &Running::rows : &Running::folded_columns, others);
    if (!one_chunk) {
      const Dim cut = less(Dim(1), chunks_) * others;
      launches.emplace_back(&Running::ends, cut);
      launches.emplace_back(rows_ ? &Running::go_on_rows : &Running::go_on_columns, cut);
    }
    const auto& [kernel, used] = launches[static_cast<std::size_t>(low_.launch)];
    low_.more = low_.launch + 1 < static_cast<int>(launches.size());
    (this->*kernel)();
    low_.blocks = low_.blocks * used;
  }

 private:
  Expr combine(Expr a, Expr b) { return fold_.combine(b_, a, b); }
  Expr identity() { return fold_.identity(b_, low_.out[0].dtype); }
  /// The last element of a chunk.
  Expr end_of(Expr chunk) { return along(least((chunk + 1) * value(chunk_), value(length_)) - 1); }

  /// With what has been folded so far.
  auto folding() {
    return [this](Expr carry, Expr, Expr at, Expr stride) {
      return combine(carry, b_.load(kOperand, at, stride));
    };
  }
  void folded_rows() { short_rows(identity(), folding()); }
  void folded_columns() { columns(identity(), folding()); }

  /// One row or chunk of a row a block: tile after tile, in each of which distances double.
  void rows() {
    low_.blocks = outer_ * chunks_;
    const Expr zero = b_.i64(0);
    const Expr one = b_.i64(1);
    const Expr first = b_.block() % value(chunks_) * value(chunk_);
    const Expr row = b_.block() / value(chunks_) * value(length_);
    const Expr count = least(value(chunk_), value(length_) - first);
    const Expr tile_size = b_.i64(kTile);
    // In front of each tile stands room that holds the identity.
    int now = local(2 * kTile);
    int next = local(2 * kTile);
    const int carry = local(1);
    const Expr fill = b_.begin_lanes(tile_size);
    b_.store(now, zero, one, identity());
    b_.store(next, zero, one, identity());
    b_.end(fill);
    b_.store(carry, zero, zero, identity());

    const Expr tile = b_.begin_loop((count + (kTile - 1)) / kTile);
    const Expr begin = first + tile * kTile;
    const Expr here = least(tile_size, count - tile * kTile);
    const Expr at = row + along(begin);
    const Expr step = b_.i64(reverse_ ? -1 : 1);
    const Expr copy = b_.begin_lanes(here);
    b_.store(now, tile_size, one, b_.load(kOperand, at, step));
    b_.end(copy);
    for (std::int64_t distance = 1; distance < kTile; distance *= 2) {
      const Expr lane = b_.begin_lanes(here);
      const Expr before = b_.load(now, b_.i64(kTile - distance), one);
      b_.store(next, tile_size, one, combine(before, b_.load(now, tile_size, one)));
      b_.end(lane);
      std::swap(now, next);
    }
    const Expr lane = b_.begin_lanes(here);
    b_.store(kResult, at, step, combine(b_.load(carry, zero, zero), b_.load(now, tile_size, one)));
    b_.end(lane);
    b_.store(carry, zero, zero,
             combine(b_.load(carry, zero, zero), b_.load(now, tile_size + here - 1, zero)));
    b_.end(tile);
  }

  /// Folds the ends of the chunks.
  void ends() {
    const Expr zero = b_.i64(0);
    const Expr one = b_.i64(1);
    Expr base, stride, lanes;
    if (rows_) {
      low_.blocks = ceil_div(outer_, Dim(kTile));
      const Expr first = b_.block() * kTile;
      base = first * value(length_);
      stride = value(length_);
      lanes = least(b_.i64(kTile), value(outer_) - first);
    } else {
      low_.blocks = outer_ * tiles_;
      const Expr tile = b_.block() % value(tiles_) * kTile;
      base = b_.block() / value(tiles_) * value(length_) * value(inner_) + tile;
      stride = one;
      lanes = least(b_.i64(kTile), value(inner_) - tile);
    }
    const int carry = local(kTile);
    const Expr start = b_.begin_lanes(lanes);
    b_.store(carry, zero, one, identity());
    b_.end(start);
    const Expr chunk = b_.begin_loop(value(chunks_));
    const Expr at = base + end_of(chunk) * value(inner_);
    const Expr lane = b_.begin_lanes(lanes);
    const Expr next = combine(b_.load(carry, zero, one), b_.load(kResult, at, stride));
    b_.store(carry, zero, one, next);
    b_.store(kResult, at, stride, next);
    b_.end(lane);
    b_.end(chunk);
  }

  /// The chunk of a block after the first ones, its row and how many elements it has but its end.
  struct Later {
    Expr chunk, outer, first, count;
  };
  Later later(Expr unit) {
    Later at;
    const Expr chunks = value(chunks_ - Dim(1));
    at.chunk = unit % chunks + 1;
    at.outer = unit / chunks;
    at.first = at.chunk * value(chunk_);
    at.count = least(value(chunk_), value(length_) - at.first) - 1;
    return at;
  }

  void go_on_rows() {
    low_.blocks = outer_ * (chunks_ - Dim(1));
    const Expr zero = b_.i64(0);
    const Later at = later(b_.block());
    const Expr row = at.outer * value(length_);
    const Expr before = b_.load(kResult, row + end_of(at.chunk - 1), zero);
    const Expr step = b_.i64(reverse_ ? -1 : 1);
    const Expr base = row + along(at.first);
    const Expr lane = b_.begin_lanes(at.count);
    b_.store(kResult, base, step, combine(before, b_.load(kResult, base, step)));
    b_.end(lane);
  }

  void go_on_columns() {
    low_.blocks = outer_ * (chunks_ - Dim(1)) * tiles_;
    const Expr one = b_.i64(1);
    const Expr tile = b_.block() % value(tiles_) * kTile;
    const Later at = later(b_.block() / value(tiles_));
    const Expr lanes = least(b_.i64(kTile), value(inner_) - tile);
    const auto base = [&](Expr k) {
      return (at.outer * value(length_) + k) * value(inner_) + tile;
    };
    const Expr before = base(end_of(at.chunk - 1));
    const Expr k = b_.begin_loop(at.count);
    const Expr here = base(along(at.first + k));
    const Expr lane = b_.begin_lanes(lanes);
    b_.store(kResult, here, one,
             combine(b_.load(kResult, before, one), b_.load(kResult, here, one)));
    b_.end(lane);
    b_.end(k);
  }

  const RunningFold& fold_;
};

class Recurrence : Along {
  Expr zero() { return b_.constant(low_.out[0].dtype, 0); }

  /// The first factor counts for nothing, whatever it is.
  auto following() {
    return [this](Expr carry, Expr k, Expr at, Expr stride) {
      const Expr factor = b_.load(kFactor, at, stride, b_.i64(0) < k);
      return factor * carry + b_.load(kOperand, at, stride);
    };
  }

 public:
  using Along::Along;

  void run() {
    low_.work = outer_ * length_ * inner_ * Dim(4);
    const Dim is_short = less(length_, Dim(kShort + 1));
    if (!rows_) return columns(zero(), following());
    low_.more = low_.launch == 0 && !is_short.is_number();
    const bool side_by_side = low_.launch == 0 && !is_short.is(0);
    side_by_side ? short_rows(zero(), following()) : rows();
    if (!is_short.is_number()) {
      low_.blocks = low_.blocks * (side_by_side ? is_short : Dim(1) - is_short);
    }
  }

 private:
  /// A row a block, tile after tile.
  void rows() {
    low_.blocks = outer_;
    const Expr none = b_.i64(0);
    const Expr one = b_.i64(1);
    const Expr step = b_.i64(reverse_ ? -1 : 1);
    const Expr row = b_.block() * value(length_);
    const int x = local(kTile);
    const int factors = local(kTile);
    const int carry = local(1);
    b_.store(carry, none, none, zero());
    const Expr tile = b_.begin_loop(value(ceil_div(length_, Dim(kTile))));
    const Expr first = tile * kTile;
    const Expr count = least(b_.i64(kTile), value(length_) - first);
    const Expr at = row + along(first);
    const Expr copy = b_.begin_lanes(count);
    b_.store(x, none, one, b_.load(kOperand, at, step));
    b_.store(factors, none, one, b_.load(kFactor, at, step, none < first + copy));
    b_.end(copy);
    const Expr k = b_.begin_loop(count);
    const Expr y = b_.load(factors, k, none) * b_.load(carry, none, none) + b_.load(x, k, none);
    b_.store(carry, none, none, y);
    b_.store(x, k, none, y);
    b_.end(k);
    const Expr back = b_.begin_lanes(count);
    b_.store(kResult, at, step, b_.load(x, none, one));
    b_.end(back);
    b_.end(tile);
  }
};

}  // namespace

void lower_running(KernelLowering& low, const RunningFold& fold) { Running(low, fold).run(); }

void lower_recurrence(KernelLowering& low) { Recurrence(low).run(); }

}  // namespace croton
