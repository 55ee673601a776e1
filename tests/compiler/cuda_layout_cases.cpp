// Kernels whose lanes are dealt out to threads in each of the ways there are: several at a time
// with wide accesses, written out with arrays in registers, warps that share a block, blocks of as
// many threads as the launch says.
#include "compiler/kernel/evaluate.h"
#include "tests/compiler/cuda_kernels.h"

namespace croton::test {
namespace {

using kernel::Binary;
using kernel::Builder;
using kernel::Expr;
using kernel::Fold;

Bytes counted(DType dtype, std::int64_t count, std::int64_t modulus = 11) {
  std::vector<std::uint64_t> bits;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t value = is_bool(dtype) ? i % 3 == 0 : i % modulus;
    bits.push_back(kernel::bits_of_integer(dtype, value));
  }
  return packed(dtype, bits);
}

// Rows of size 0, aligned or not; a second operand goes along the columns (size 1 divides the row)
// and a third along what is left.
KernelCase wide_case(DType t) {
  Builder b(64);
  const int x = b.buffer(t, false), column = b.buffer(DType::float32, false);
  const int row = b.buffer(t, false);
  const int out = b.buffer(t, true), sums = b.buffer(DType::float32, true);
  const Expr n = b.size(0), inner = b.size(1), one = b.i64(1);
  const Expr start = b.block() * n;
  const Expr lanes = b.begin_lanes(n);
  const Expr element = b.bounded(start + lanes);
  const Expr value = b.load(x, start, one);
  b.store(out, start, one, b.select(lanes % 3 == 0, b.gather(row, element / inner), value));
  const Expr sum = b.gather(column, element % inner) + b.load(column, b.i64(1), one, lanes < 1);
  b.store(sums, start, one, sum);
  b.end(lanes);
  KernelCase made{"wide " + std::string(name_of(t)), b.finish(), {}};
  for (const auto& [width, step] : {std::pair{256, 8}, {256, 2}, {67, 1}, {3, 3}, {520, 65}}) {
    const std::int64_t all = 3 * width;
    made.launches.push_back({3,
                             {width, step},
                             {counted(t, all), counted(DType::float32, 600), counted(t, all),
                              untouched(t, all), untouched(DType::float32, all)}});
  }
  return made;
}

// Each row minus its largest value, over which a sum is made; the row is kept in between. Of
// `width` columns, a constant.
KernelCase kept_case(int threads, std::int64_t width, std::int64_t packed) {
  const DType t = DType::float32;
  Builder b(threads);
  if (packed > 1) b.share_blocks();
  const int x = b.buffer(t, false), out = b.buffer(t, true), sums = b.buffer(t, true);
  const Expr zero = b.i64(0), one = b.i64(1), n = b.i64(width);
  const int kept = b.local(t, n), lowered = b.local(t, n);
  const Expr start = b.block() * width;
  Expr lanes = b.begin_lanes(n, {{Fold::max, t, kernel::kNone}});
  const Expr value = b.load(x, start, one);
  b.store(kept, zero, one, value);
  b.accumulate(lanes, 0, value);
  b.end(lanes);
  const Expr largest = b.result(lanes, 0);
  lanes = b.begin_lanes(n, {{Fold::sum, t, kernel::kNone}});
  const Expr less = b.load(kept, zero, one) - largest;
  b.store(lowered, zero, one, less);
  b.accumulate(lanes, 0, less);
  b.end(lanes);
  const Expr sum = b.result(lanes, 0);
  lanes = b.begin_lanes(n);
  b.store(out, start, one, b.load(lowered, zero, one) + sum);
  b.end(lanes);
  b.store(sums, b.block(), zero, sum);
  constexpr std::int64_t kRows = 7;
  KernelCase made{"kept " + std::to_string(width), b.finish(), {}};
  made.launches.push_back(
      {kRows, {}, {counted(t, kRows * width), untouched(t, kRows * width), untouched(t, kRows)}});
  made.launches.back().packed = static_cast<int>(packed);
  return made;
}

// Arrays of which some are wanted eight elements at a time and others four; the last one by lanes
// of both kinds.
KernelCase two_widths_case() {
  const DType narrow = DType::uint16, wide = DType::int32;
  constexpr std::int64_t kWidth = 256;
  Builder b(32);
  const int x = b.buffer(narrow, false), y = b.buffer(wide, false), out = b.buffer(wide, true);
  const Expr zero = b.i64(0), one = b.i64(1), n = b.i64(kWidth);
  const int first = b.local(narrow, n), second = b.local(wide, n), both = b.local(narrow, n);
  Expr lanes = b.begin_lanes(n);
  b.store(first, zero, one, b.load(x, zero, one) + 1);
  b.end(lanes);
  lanes = b.begin_lanes(n);
  b.store(both, zero, one, b.load(first, zero, one) + b.load(x, b.i64(kWidth), one));
  b.end(lanes);
  lanes = b.begin_lanes(n);
  b.store(second, zero, one, b.load(y, zero, one) * 3);
  b.end(lanes);
  lanes = b.begin_lanes(n);
  const Expr sum = b.load(second, zero, one) + b.cast(b.load(both, zero, one), wide);
  b.store(out, zero, one, sum + b.load(y, b.i64(kWidth), one));
  b.end(lanes);
  return {"two widths",
          b.finish(),
          {{1,
            {},
            {counted(narrow, 2 * kWidth, 499), counted(wide, 2 * kWidth, 1009),
             untouched(wide, kWidth)}}}};
}

// Rows as in kept_case where the launch knows the width, with the row in shared memory.
KernelCase elastic_case() {
  const DType t = DType::int32;
  Builder b(256);
  b.stretch();
  b.share_blocks();
  const int x = b.buffer(t, false), out = b.buffer(t, true), at = b.buffer(DType::int64, true);
  const Expr zero = b.i64(0), one = b.i64(1), n = b.size(0);
  const int kept = b.local(t, n);
  const Expr start = b.block() * n;
  Expr lanes = b.begin_lanes(n, {{Fold::sum, t, kernel::kNone}, {Fold::argmax, t, kernel::kNone}});
  const Expr value = b.load(x, start, one);
  b.store(kept, zero, one, value);
  b.accumulate(lanes, 0, value);
  b.accumulate(lanes, 1, value, lanes);
  b.end(lanes);
  const Expr sum = b.result(lanes, 0), where = b.result(lanes, 1, 1);
  lanes = b.begin_lanes(n);
  b.store(out, start, one, b.gather(kept, n - 1 - lanes) + sum);
  b.end(lanes);
  b.store(at, b.block(), zero, where);
  KernelCase made{"elastic", b.finish(), {}};
  struct Shape {
    std::int64_t width;
    int threads, packed;
  };
  for (const Shape s : {Shape{20, 32, 8}, {20, 32, 1}, {300, 96, 2}, {1000, 256, 1}}) {
    constexpr std::int64_t kRows = 5;
    made.launches.push_back({kRows,
                             {s.width},
                             {counted(t, kRows * s.width), untouched(t, kRows * s.width),
                              untouched(DType::int64, kRows)},
                             s.threads,
                             s.packed});
  }
  return made;
}

// Additions at places of which many are the same; some are masked.
KernelCase additions_case(DType t) {
  Builder b(64);
  const int value = b.buffer(t, false), at = b.buffer(DType::int64, false);
  const int out = b.buffer(t, true);
  const Expr n = b.size(0), one = b.i64(1);
  const Expr start = b.block() * n;
  const Expr lanes = b.begin_lanes(n);
  const Expr place = b.load(at, start, one);
  b.scatter_add(out, place, b.load(value, start, one), place < 9);
  b.end(lanes);
  KernelCase made{"additions " + std::string(name_of(t)), b.finish(), {}};
  made.launches.push_back({2, {50}, {counted(t, 100), counted(DType::int64, 100), counted(t, 9)}});
  return made;
}

// What neighbours share: groups of four numbers from an offset that is a multiple or is not.
KernelCase groups_case() {
  Builder b(32);
  const int offset = b.buffer(DType::int64, false);
  const int out = b.buffer(DType::uint32, true);
  const Expr zero = b.i64(0), one = b.i64(1);
  const Expr from = b.load(offset, zero, zero);
  const Expr start = b.block() * 100;
  const Expr lanes = b.begin_lanes(b.i64(100));
  const Expr number = b.cast(b.bounded(start + lanes) + from, DType::uint64);
  const Expr group = b.cast(number >> 2, DType::uint32) * 40503u;
  const Expr odd = (number & 1) != 0, high = (number & 2) != 0;
  const Expr pick =
      b.select(high, b.select(odd, group + 3, group + 2), b.select(odd, group + 1, group));
  b.store(out, start, one, pick);
  b.end(lanes);
  KernelCase made{"groups", b.finish(), {}};
  for (const std::int64_t first :
       {std::int64_t{0}, std::int64_t{8}, std::int64_t{5}, (std::int64_t{1} << 40) + 4}) {
    made.launches.push_back(
        {3, {}, {bytes_of(std::vector<std::int64_t>{first}), untouched(DType::uint32, 300)}});
  }
  return made;
}

}  // namespace

std::vector<KernelCase> layout_cases() {
  std::vector<KernelCase> cases;
  for (const DType t : {DType::boolean, DType::uint8, DType::float16, DType::int32, DType::float32,
                        DType::float64}) {
    cases.push_back(wide_case(t));
  }
  cases.push_back(kept_case(32, 10, 3));
  cases.push_back(kept_case(32, 256, 8));
  cases.push_back(kept_case(64, 500, 1));
  cases.push_back(kept_case(128, 1023, 1));
  cases.push_back(two_widths_case());
  cases.push_back(elastic_case());
  for (const DType t :
       {DType::int32, DType::int64, DType::uint32, DType::uint64, DType::float32, DType::float64}) {
    cases.push_back(additions_case(t));
  }
  cases.push_back(groups_case());
  return cases;
}

}  // namespace croton::test
