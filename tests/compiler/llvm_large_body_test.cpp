// Bodies so large that they are printed once, each vector under a mask.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <numeric>

#include "compiler/kernel/builder.h"
#include "tests/compiler/jit_kernel.h"

using namespace croton;
using namespace croton::kernel;
using croton::test::JitModule;

namespace {

constexpr int kRounds = 32;

std::vector<std::int64_t> lengths() {
  std::int64_t w = host_target().lanes();
  return {0, 1, w - 1, w, w + 1, 4 * w - 1, 4 * w, 4 * w + 1, 1000};
}

/// Many nodes that no rule of arithmetic makes fewer.
template <class T>
T stir(T x) {
  for (int i = 0; i < kRounds; ++i) x = (x ^ (x * 5)) + (i + 1);
  return x;
}

std::uint32_t stirred(std::uint32_t x) { return stir(x); }

}  // namespace

TEST_CASE("large bodies load, store and fold") {
  for (int unroll : {1, 4}) {
    for (bool fixed : {false, true}) {
      for (std::int64_t n : lengths()) {
        Builder b;
        DType t = DType::uint32;
        int in = b.buffer(t, false), back = b.buffer(t, false), out = b.buffer(t, true);
        int reversed = b.buffer(t, true), results = b.buffer(DType::int64, true);
        Expr count = fixed ? b.i64(n) : b.size(0), one = b.i64(1), zero = b.i64(0);
        Expr lanes = b.begin_lanes(
            count, {{Fold::sum, t}, {Fold::argmax, t}, {Fold::all, DType::boolean}}, unroll);
        Expr x = b.load(in, zero, one), y = b.load(back, count - 1, b.i64(-1));
        Expr s = stir(x + y);
        b.store(out, zero, one, s);
        b.store(reversed, count - 1, b.i64(-1), s, (x & b.integer(t, 1)) == b.integer(t, 0));
        b.accumulate(lanes, 0, s);
        b.accumulate(lanes, 1, s, lanes);
        b.accumulate(lanes, 2, x < b.integer(t, 100000));
        b.end(lanes);
        b.store(results, zero, zero, b.cast(b.result(lanes, 0), DType::int64));
        b.store(results, one, zero, b.result(lanes, 1, 1));
        b.store(results, b.i64(2), zero, b.cast(b.result(lanes, 2), DType::int64));
        JitModule module({b.finish()});
        if (!fixed && host_target().vector_bits == 512) {
          CHECK(module.text().find("tail") == std::string::npos);
        }
        std::vector<std::uint32_t> a(n + 1), c(n + 1), o(n + 1, 7), r(n + 1, 7);
        std::vector<std::uint32_t> expected(n + 1, 7), expected_r(n + 1, 7);
        std::iota(a.begin(), a.end(), 3u);
        std::iota(c.begin(), c.end(), 1000u);
        std::uint32_t sum = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          std::uint32_t s_i = stirred(a[i] + c[n - 1 - i]);
          expected[i] = s_i;
          if (a[i] % 2 == 0) expected_r[n - 1 - i] = s_i;
          sum += s_i;
        }
        std::vector<std::int64_t> found(3);
        module.run(0, {a.data(), c.data(), o.data(), r.data(), found.data()}, {n});
        CHECK(o == expected);
        CHECK(r == expected_r);
        CHECK(found[0] == sum);
        if (n > 0) {
          auto last = expected.begin() + n;
          CHECK(found[1] == std::max_element(expected.begin(), last) - expected.begin());
        }
        CHECK(found[2] == 1);
      }
    }
  }
}

TEST_CASE("large bodies of all widths of element") {
  auto check = []<class T>(DType t, T) {
    Builder b;
    int in = b.buffer(t, false), out = b.buffer(t, true, in);
    Expr lanes = b.begin_lanes(b.size(0), {}, 2);
    b.store(out, b.i64(0), b.i64(1), stir(b.load(in, b.i64(0), b.i64(1))), {}, true);
    b.end(lanes);
    JitModule module({b.finish()});
    for (std::int64_t n : lengths()) {
      auto* y = static_cast<T*>(std::aligned_alloc(64, 64 * 130));
      for (std::int64_t i = 0; i <= n; ++i) y[i] = static_cast<T>(i);
      module.run(0, {y, y}, {n});
      bool right = y[n] == static_cast<T>(n);
      for (std::int64_t i = 0; i < n; ++i) {
        auto x = static_cast<T>(stir(static_cast<std::uint64_t>(i)));
        right = right && y[i] == x;
      }
      CHECK(right);
      std::free(y);
    }
  };
  check(DType::int8, std::int8_t{});
  check(DType::uint16, std::uint16_t{});
  check(DType::int64, std::int64_t{});
}

TEST_CASE("large bodies check and loop") {
  Builder b;
  DType t = DType::uint64;
  int in = b.buffer(t, false), out = b.buffer(t, true);
  Expr n = b.size(0), bound = b.size(1);
  Expr lanes = b.begin_lanes(n, {{Fold::sum, t}});
  Expr x = b.load(in, b.i64(0), b.i64(1));
  Expr value = b.cast(x, DType::int64);
  b.check(value < bound, "{value} of {bound}", value, bound);
  Expr loop = b.begin_loop(b.size(2), {{Fold::sum, t}});
  Expr y = b.load(in, loop * n, b.i64(1));
  b.accumulate(loop, 0, stir(y));
  b.accumulate(lanes, 0, y);
  b.end(loop);
  b.store(out, b.i64(0), b.i64(1), b.result(loop, 0));
  b.end(lanes);
  b.store(out, n, b.i64(0), b.result(lanes, 0));
  JitModule module({b.finish()});
  for (std::int64_t count : lengths()) {
    std::vector<std::uint64_t> a(3 * count), o(count + 1), expected(count + 1);
    std::iota(a.begin(), a.end(), 0u);
    for (std::int64_t i = 0; i < count; ++i) {
      for (int r = 0; r < 3; ++r) {
        expected[i] += stir(a[r * count + i]);
        expected[count] += a[r * count + i];
      }
    }
    std::int64_t limit = count > 2 ? count - 2 : count;
    auto error = module.run(0, {a.data(), o.data()}, {count, limit, 3});
    CHECK(o == expected);
    CHECK(error[0] == (count > 2));
    if (count > 2) CHECK(error[1] == count - 2);
  }
}
