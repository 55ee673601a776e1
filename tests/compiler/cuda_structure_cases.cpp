#include <cmath>
#include <limits>

#include "compiler/kernel/evaluate.h"
#include "tests/compiler/cuda_kernels.h"

namespace croton::test {
namespace {

using kernel::Accumulator;
using kernel::Binary;
using kernel::Builder;
using kernel::Expr;
using kernel::Fold;

// Small whole numbers, so that float sums are exact in any order.
std::vector<std::uint64_t> whole_numbers(DType dtype, std::int64_t count, std::uint64_t seed) {
  std::vector<std::uint64_t> bits;
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const auto value = static_cast<std::int64_t>(seed >> 60) - (is_signed(dtype) ? 8 : 0);
    bits.push_back(kernel::bits_of_integer(dtype, value));
  }
  return bits;
}

Bytes numbers(DType dtype, std::int64_t count, std::uint64_t seed = 1) {
  return packed(dtype, whole_numbers(dtype, count, seed));
}

// Every fold of a dtype over the rows of a matrix (size 0: columns), one block a row. With a mask
// on every third element for any and all.
KernelCase row_folds_case(DType t, int threads) {
  const std::vector<Fold> folds = {Fold::sum, Fold::prod, Fold::min, Fold::max};
  Builder b(threads);
  const int in = b.buffer(t, false), out = b.buffer(t, true);
  const int index = b.buffer(DType::int64, true), truth = b.buffer(DType::boolean, true);
  const Expr n = b.size(0), row = b.block();
  std::vector<Accumulator> list;
  for (const Fold f : folds) list.push_back({f, t, kernel::kNone});
  list.push_back({Fold::argmin, t, kernel::kNone});
  list.push_back({Fold::argmax, t, kernel::kNone});
  list.push_back({Fold::any, DType::boolean, kernel::kNone});
  list.push_back({Fold::all, DType::boolean, kernel::kNone});
  const Expr lanes = b.begin_lanes(n, list, 2);
  const Expr x = b.load(in, row * n, b.i64(1));
  for (int k = 0; k < 4; ++k) b.accumulate(lanes, k, x);
  b.accumulate(lanes, 4, x, lanes);
  b.accumulate(lanes, 5, x, lanes);
  b.accumulate(lanes, 6, x == b.integer(t, 7));
  b.accumulate(lanes, 7, x != b.integer(t, 5));
  b.end(lanes);
  for (int k = 0; k < 6; ++k) {
    b.store(out, row * 6 + k, b.i64(0), b.result(lanes, k));
  }
  for (int k = 4; k < 6; ++k) {
    b.store(index, row * 2 + (k - 4), b.i64(0), b.result(lanes, k, 1));
  }
  for (int k = 6; k < 8; ++k) {
    b.store(truth, row * 2 + (k - 6), b.i64(0), b.result(lanes, k));
  }
  KernelCase made{
      "folds " + std::string(name_of(t)) + " " + std::to_string(threads), b.finish(), {}};
  for (const std::int64_t columns : {0, 1, 2, 31, 33, 300}) {
    constexpr std::int64_t kRows = 4;
    auto bits = whole_numbers(t, kRows * columns, static_cast<std::uint64_t>(columns));
    if (is_float(t) && columns > 2) {  // products stay in range; the last two rows hold NaNs
      for (auto& b : bits) b = kernel::bits_of(t, b & 64 ? 2.0 : b & 128 ? -0.5 : -1.0);
      bits[2 * columns + 1] = bits[3 * columns + 2] = bits[4 * columns - 1] =
          kernel::bits_of(t, std::nan(""));
      bits[columns] = kernel::bits_of(t, -0.0);
    }
    made.launches.push_back(
        {kRows,
         {columns},
         {packed(t, bits), untouched(t, kRows * 6), untouched(DType::int64, kRows * 2),
          untouched(DType::boolean, kRows * 2)}});
  }
  return made;
}

// Folds in a loop inside of lanes (over the rows of a matrix, a lane for each column), one of them
// with a start value; the lanes fold what the loops gave.
KernelCase column_folds_case(DType t) {
  Builder b(64);
  const int in = b.buffer(t, false), out = b.buffer(t, true), all = b.buffer(t, true);
  const int where = b.buffer(DType::int64, true);
  const Expr rows = b.size(0), columns = b.size(1);
  const Expr lanes = b.begin_lanes(columns, {{Fold::sum, t, kernel::kNone}});
  const Expr start = b.load(in, b.i64(0), b.i64(1));
  const Expr loop = b.begin_loop(
      rows,
      {{Fold::sum, t, start.id}, {Fold::max, t, kernel::kNone}, {Fold::argmin, t, kernel::kNone}});
  const Expr x = b.load(in, loop * columns, b.i64(1));
  for (int k = 0; k < 2; ++k) b.accumulate(loop, k, x);
  b.accumulate(loop, 2, x, loop);
  b.end(loop);
  for (int k = 0; k < 3; ++k) b.store(out, columns * k, b.i64(1), b.result(loop, k));
  b.store(where, b.i64(0), b.i64(1), b.result(loop, 2, 1));
  b.accumulate(lanes, 0, b.result(loop, 0));
  b.end(lanes);
  b.store(all, b.i64(0), b.i64(0), b.result(lanes, 0));
  KernelCase made{"columns " + std::string(name_of(t)), b.finish(), {}};
  for (const auto& [r, c] : {std::pair<std::int64_t, std::int64_t>{5, 100}, {1, 1}, {40, 65}}) {
    made.launches.push_back(
        {1,
         {r, c},
         {numbers(t, r * c), untouched(t, 3 * c), untouched(t, 1), untouched(DType::int64, c)}});
  }
  return made;
}

// Row after row in one block: fold, keep the result in a one-element array, use it for the row.
// Every step reads what other threads wrote.
KernelCase rows_in_a_loop_case() {
  const DType t = DType::float32;
  Builder b(128);
  const int in = b.buffer(t, false), out = b.buffer(t, true);
  const Expr rows = b.size(0), n = b.size(1);
  const int kept = b.local(t, b.i64(1)), reversed = b.local(t, n), copy = b.local(DType::int8, n);
  const Expr loop = b.begin_loop(rows);
  const Expr first = b.begin_lanes(n, {{Fold::sum, t, kernel::kNone}});
  const Expr x = b.load(in, loop * n, b.i64(1));
  b.store(reversed, b.i64(0), b.i64(1), x);
  b.store(copy, b.i64(0), b.i64(1), b.cast(x, DType::int8));
  b.accumulate(first, 0, x);
  b.end(first);
  b.store(kept, b.i64(0), b.i64(0), b.result(first, 0));
  const Expr sum = b.load(kept, b.i64(0), b.i64(0));
  const Expr second = b.begin_lanes(n);
  const Expr other = b.load(reversed, n - 1, b.i64(-1));
  const Expr small = b.gather(copy, n - 1 - second);
  b.store(out, loop * n, b.i64(1), other * sum + b.cast(small, t));
  b.end(second);
  b.end(loop);
  KernelCase made{"rows in a loop", b.finish(), {}};
  for (const auto& [r, c] : {std::pair<std::int64_t, std::int64_t>{7, 100}, {3, 200}, {2, 1}}) {
    made.launches.push_back({1, {r, c}, {numbers(t, r * c), untouched(t, r * c)}});
  }
  return made;
}

// A loop that runs only for threads with a rare element, or for several that a thread takes.
KernelCase rare_loop_case(int unroll) {
  Builder b(32);
  const int in = b.buffer(DType::float64, false), out = b.buffer(DType::float64, true);
  const Expr n = b.size(0);
  const Expr lanes = b.begin_lanes(n, {}, unroll);
  const Expr x = b.load(in, b.i64(0), b.i64(1));
  const Expr rare = x == b.constant(DType::float64, 7);
  const Expr any = b.unary(kernel::Unary::any_lane, rare);
  const Expr loop = b.begin_loop(b.select(any, b.i64(20), b.i64(0)),
                                 {{Fold::sum, DType::float64, kernel::kNone}});
  b.accumulate(loop, 0, b.cast(loop, DType::float64) * x);
  b.end(loop);
  b.store(out, b.i64(0), b.i64(1), b.select(rare, b.result(loop, 0), x));
  b.end(lanes);
  const std::int64_t count = 300;
  return {"rare loop " + std::to_string(unroll),
          b.finish(),
          {{1, {count}, {numbers(DType::float64, count), untouched(DType::float64, 300)}}}};
}

// Shifts the elements of an array by one place in shared memory, again and again, without folds.
KernelCase shifting_case() {
  const DType t = DType::int32;
  Builder b(64);
  const int in = b.buffer(t, false), out = b.buffer(t, true);
  const Expr n = b.i64(150), times = b.size(0);
  const int from = b.local(t, n), to = b.local(t, n);
  Expr lanes = b.begin_lanes(n);
  b.store(from, b.i64(0), b.i64(1), b.load(in, b.i64(0), b.i64(1)));
  b.end(lanes);
  const Expr loop = b.begin_loop(times);
  lanes = b.begin_lanes(n);
  b.store(to, b.i64(0), b.i64(1), b.gather(from, (lanes + 1) % 150));
  b.end(lanes);
  lanes = b.begin_lanes(n);
  b.store(from, b.i64(0), b.i64(1), b.load(to, b.i64(0), b.i64(1)) + 1);
  b.end(lanes);
  b.end(loop);
  lanes = b.begin_lanes(n);
  b.store(out, b.i64(0), b.i64(1), b.load(from, b.i64(0), b.i64(1)));
  b.end(lanes);
  KernelCase made{"shifting", b.finish(), {}};
  for (const std::int64_t times : {0, 1, 7}) {
    made.launches.push_back({1, {times}, {numbers(t, 150), untouched(t, 150)}});
  }
  return made;
}

// Masks on every memory node, strides of all kinds, gathers and scatters.
KernelCase memory_case(DType t, bool streaming) {
  Builder b(32);
  const int in = b.buffer(t, false), places = b.buffer(DType::int64, false);
  const int out = b.buffer(t, true), moved = b.buffer(t, true), single = b.buffer(t, true);
  const Expr n = b.size(0), stride = b.size(1);
  const Expr lanes = b.begin_lanes(n);
  const Expr place = b.load(places, b.i64(0), b.i64(1));
  const Expr inside = (place >= 0) & (place < n);
  const Expr strided = b.load(in, b.i64(0), stride);
  const Expr masked = b.load(in, b.i64(0), b.i64(1), inside);
  const Expr same = b.load(in, n - 1, b.i64(0), inside);
  const Expr gathered = b.gather(in, place, inside);
  b.store(out, b.i64(0), b.i64(1), strided, {}, streaming);
  b.store(out, n, b.i64(1), masked, {}, streaming);
  b.store(out, n * 2, b.i64(1), gathered, inside, streaming);
  b.store(out, n * 3, b.i64(1), same, {}, streaming);
  b.store(out, n * 4, b.i64(2), gathered, inside, streaming);
  b.store(out, n * 7 - 1, b.i64(-1), masked, {}, streaming);
  b.scatter(moved, place, strided, inside);
  b.end(lanes);
  b.store(single, b.i64(0), b.i64(0), b.load(in, b.i64(1), b.i64(0)), n < 0);
  b.store(single, b.i64(1), b.i64(0), b.load(in, b.i64(1), b.i64(0)), b.i64(0) < n);
  b.scatter(single, b.i64(2), b.gather(in, n - 1, n == 3));
  KernelCase made{
      "memory " + std::string(name_of(t)) + (streaming ? " streaming" : ""), b.finish(), {}};
  std::vector<std::int64_t> order;
  constexpr std::int64_t kN = 75;
  for (std::int64_t i = 0; i < kN; ++i) order.push_back((i * 37 + 5) % kN);
  order[3] = -1;
  order[10] = kN;
  order[40] = INT64_MAX;
  auto values = edge_values(t);
  values.resize(3 * kN, values[3]);
  made.launches.push_back({1,
                           {kN, 3},
                           {packed(t, values), bytes_of(order), untouched(t, 7 * kN),
                            untouched(t, kN), untouched(t, 3)}});
  return made;
}

// An output that may be its input, in place or not, is never `restrict`.
KernelCase alias_case() {
  Builder b(32);
  const int in = b.buffer(DType::float32, false);
  const int out = b.buffer(DType::float32, true, in);
  const Expr lanes = b.begin_lanes(b.size(0));
  b.store(out, b.i64(0), b.i64(1), b.load(in, b.i64(0), b.i64(1)) + 1);
  b.end(lanes);
  return {"alias",
          b.finish(),
          {{1, {40}, {numbers(DType::float32, 40), untouched(DType::float32, 40)}}}};
}

// Checks inside of lanes and outside; each launch lets at most one element fail.
KernelCase checks_case() {
  Builder b(64);
  const int in = b.buffer(DType::float64, false), at = b.buffer(DType::int64, false);
  const int out = b.buffer(DType::float64, true);
  const Expr n = b.size(0), bound = b.size(1);
  b.check(n <= bound, "{value} elements, at most {bound}", n, bound);
  const Expr lanes = b.begin_lanes(n);
  const Expr place = b.load(at, b.i64(0), b.i64(1));
  const Expr ok = (place >= 0) & (place < n);
  b.check(ok, "index {value} of {bound}", place, n);
  b.store(out, b.i64(0), b.i64(1), b.gather(in, place, ok));
  b.end(lanes);
  KernelCase made{"checks", b.finish(), {}};
  std::vector<std::int64_t> good(100);
  for (std::size_t i = 0; i < good.size(); ++i) good[i] = static_cast<std::int64_t>(99 - i);
  auto bad = good;
  bad[70] = -3;
  const Bytes values = numbers(DType::float64, 100), out_bytes = untouched(DType::float64, 100);
  made.launches.push_back({1, {100, 100}, {values, bytes_of(good), out_bytes}});
  made.launches.push_back({1, {100, 100}, {values, bytes_of(bad), out_bytes}});
  made.launches.push_back({1, {100, 99}, {values, bytes_of(good), out_bytes}});
  return made;
}

// Arrays beyond what a kernel may declare lie in dynamic shared memory, as do those of sizes that
// the launch says.
KernelCase large_locals_case() {
  const DType t = DType::float64;
  Builder b(256);
  const int in = b.buffer(t, false), out = b.buffer(t, true);
  const Expr n = b.size(0);
  const int fixed = b.local(t, b.i64(7000)), sized = b.local(DType::uint8, n + 3);
  Expr lanes = b.begin_lanes(n);
  const Expr x = b.load(in, b.block() * n, b.i64(1));
  b.store(fixed, b.i64(6000), b.i64(1), x);
  b.store(sized, b.i64(3), b.i64(1), b.cast(x, DType::uint8));
  b.end(lanes);
  lanes = b.begin_lanes(n);
  const Expr back = n - 1 - lanes;
  const Expr sum = b.gather(fixed, back + 6000) + b.cast(b.gather(sized, back + 3), t);
  b.store(out, b.block() * n, b.i64(1), sum);
  b.end(lanes);
  return {"large locals", b.finish(), {{3, {500}, {numbers(t, 1500), untouched(t, 1500)}}}};
}

// Nested uniform loops around lanes, a loop in the lanes, and a fold of a fold.
KernelCase nest_case() {
  const DType t = DType::int64;
  Builder b(32);
  const int in = b.buffer(t, false), out = b.buffer(t, true);
  const Expr n = b.size(0);
  const Expr outer = b.begin_loop(b.i64(3), {{Fold::sum, t, b.i64(100).id}});
  const Expr inner = b.begin_loop(outer + 1, {{Fold::max, t, kernel::kNone}});
  const Expr lanes =
      b.begin_lanes(n, {{Fold::sum, t, kernel::kNone}, {Fold::min, t, kernel::kNone}});
  const Expr loop = b.begin_loop(inner + 2);
  const Expr x = b.gather(in, (lanes * 3 + loop + outer) % n);
  b.accumulate(lanes, 0, x * inner);
  b.accumulate(lanes, 1, x - outer);
  b.end(loop);
  b.end(lanes);
  b.accumulate(inner, 0, b.result(lanes, 0) + b.result(lanes, 1));
  b.store(out, outer * 3 + inner, b.i64(0), b.result(lanes, 1));
  b.end(inner);
  b.accumulate(outer, 0, b.result(inner, 0));
  b.end(outer);
  b.store(out, b.i64(9), b.i64(0), b.result(outer, 0));
  return {"nest", b.finish(), {{1, {50}, {numbers(t, 50), untouched(t, 10)}}}};
}

}  // namespace

std::vector<KernelCase> structure_cases() {
  std::vector<KernelCase> cases;
  for (const DType t :
       {DType::int8, DType::int16, DType::int32, DType::int64, DType::uint8, DType::uint16,
        DType::uint32, DType::uint64, DType::float32, DType::float64}) {
    cases.push_back(row_folds_case(t, 64));
    cases.push_back(column_folds_case(t));
    cases.push_back(memory_case(t, true));
  }
  for (const int threads : {32, 256, 1024}) {
    cases.push_back(row_folds_case(DType::float32, threads));
  }
  for (const DType t : {DType::boolean, DType::float16, DType::bfloat16, DType::float32}) {
    cases.push_back(memory_case(t, t != DType::float32));
  }
  cases.push_back(rows_in_a_loop_case());
  cases.push_back(shifting_case());
  for (const int unroll : {1, 4}) cases.push_back(rare_loop_case(unroll));
  cases.push_back(alias_case());
  cases.push_back(checks_case());
  cases.push_back(large_locals_case());
  cases.push_back(nest_case());
  return cases;
}

}  // namespace croton::test
