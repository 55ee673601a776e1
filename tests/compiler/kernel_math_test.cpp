// Every function of math.h within its bound, measured against the C library in a wider type, on
// points that cover all exponents; and Philox against its published answers.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "compiler/kernel/math.h"
#include "tests/compiler/math_runs.h"

using namespace croton;
using namespace croton::kernel;
namespace math = croton::kernel;  // std has the same names

namespace {

using test::error_in_ulp;
using test::Wide;

struct Function {
  const char* name;
  Expr (*build)(Expr, Expr);
  Wide (*exact)(Wide, Wide);
  double low, high;  ///< where most points should be
};

#define UNARY(name, function, low, high)                                                           \
  {                                                                                                \
#name, [](Expr x, Expr) { return math::name(x); }, [](Wide x,                                  \
                                                          Wide) -> Wide { return function; }, low, \
                                                                                           high    \
  }
#define BINARY(name, function, low, high)                                                         \
  {                                                                                               \
#name, [](Expr x,                                                                             \
              Expr y) { return math::name(x, y); }, [](Wide x,                                    \
                                                       Wide y) -> Wide { return function; }, low, \
                                                                                          high    \
  }

const Function kFunctions[] = {
    UNARY(exp, std::exp(x), -20, 20),
    UNARY(exp2, std::exp2(x), -20, 20),
    UNARY(expm1, std::expm1(x), -2, 2),
    UNARY(log, std::log(x), 0.5, 2),
    UNARY(log2, std::log2(x), 0.5, 2),
    UNARY(log10, std::log10(x), 0.5, 2),
    UNARY(log1p, std::log1p(x), -0.9, 2),
    BINARY(pow, std::pow(x, y), 0, 4),
    UNARY(sin, std::sin(x), -40, 40),
    UNARY(cos, std::cos(x), -40, 40),
    UNARY(tan, std::tan(x), -40, 40),
    UNARY(arcsin, std::asin(x), -1, 1),
    UNARY(arccos, std::acos(x), -1, 1),
    UNARY(arctan, std::atan(x), -4, 4),
    BINARY(arctan2, std::atan2(x, y), -4, 4),
    UNARY(sinh, std::sinh(x), -3, 3),
    UNARY(cosh, std::cosh(x), -3, 3),
    UNARY(tanh, std::tanh(x), -2, 2),
    UNARY(arcsinh, std::asinh(x), -3, 3),
    UNARY(arccosh, std::acosh(x), 1, 4),
    UNARY(arctanh, std::atanh(x), -1, 1),
    UNARY(erf, std::erf(x), -3, 3),
    UNARY(erfc, std::erfc(x), -3, 10),
    UNARY(sigmoid, 1 / (1 + std::exp(-x)), -10, 10),
    UNARY(softplus, std::fmax(x, Wide(0)) + std::log1p(std::exp(-std::fabs(x))), -10, 10),
};

template <class T>
std::vector<T> points(const Function& f, unsigned seed) {
  using Limits = std::numeric_limits<T>;
  std::mt19937_64 random(seed);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::vector<T> x = {T(0),
                      -T(0),
                      T(1),
                      -T(1),
                      Limits::infinity(),
                      -Limits::infinity(),
                      Limits::quiet_NaN(),
                      Limits::max(),
                      Limits::lowest(),
                      Limits::min(),
                      -Limits::min(),
                      Limits::denorm_min(),
                      -Limits::denorm_min()};
  // Of each precision the number that comes closest to a multiple of pi/2, and some in a row that
  // begins where another way of reduction does.
  for (const T edge : {static_cast<T>(0x1p50), std::ldexp(static_cast<T>(16367173), 72),
                       std::ldexp(static_cast<T>(6381956970095103), 797)}) {
    T value = edge;
    for (int i = 0; i < 40 && std::isfinite(value); ++i) {
      x.push_back(i % 2 ? -value : value);
      value = std::nextafter(value, Limits::infinity());
    }
  }
  const int step = sizeof(T) == 4 ? 1 : 4;
  for (int e = Limits::min_exponent - Limits::digits; e <= Limits::max_exponent; e += step) {
    for (int i = 0; i < 12; ++i) {
      const T value = static_cast<T>(std::ldexp(Wide(0.5 + 0.5 * uniform()), e));
      x.push_back(i % 2 ? -value : value);
    }
  }
  for (int i = 0; i < 12000; ++i) x.push_back(static_cast<T>(f.low + (f.high - f.low) * uniform()));
  // Around the ends of the range of exp and its like, where results overflow or are subnormal.
  const double end = sizeof(T) == 4 ? 106 : 750;
  for (int i = 0; i < 3000; ++i) x.push_back(static_cast<T>(end * (2 * uniform() - 1)));
  return x;
}

template <class T>
void check_bound(const Function& f, double bound) {
  const std::vector<T> x = points<T>(f, 1);
  std::vector<T> y = points<T>(f, 2);
  std::shuffle(y.begin(), y.end(), std::mt19937_64(3));
  const std::vector<T> got = test::run_math<T>(f.build, x, y);
  const std::string name = f.name;
  double worst = 0;
  T at = 0, at_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Wide exact = f.exact(x[i], y[i]);
    const double error = error_in_ulp(got[i], exact);
    if (error > worst) worst = error, at = x[i], at_y = y[i];
  }
  INFO(name << " of " << name_of(dtype_of<T>) << " at " << at << ", " << at_y);
  CHECK(worst <= bound);
  CHECK(worst >= 0.5);  // the points do measure something
}

Wide exact_of(const char* name, Wide x, Wide y) {
  return std::string(name) == "pow" ? std::pow(x, y) : std::atan2(x, y);
}

template <class T>
void check_grid(const char* name) {
  using Limits = std::numeric_limits<T>;
  const Function* function = nullptr;
  for (const Function& f : kFunctions) {
    if (std::string(f.name) == name) function = &f;
  }
  const T special[] = {0,
                       0.5,
                       1,
                       1.5,
                       2,
                       3,
                       4,
                       0.1f,
                       1e-30f,
                       1e30f,
                       0x1p24f,
                       0x1p24f + 2,
                       0x1p53,
                       Limits::min(),
                       Limits::denorm_min(),
                       Limits::max(),
                       Limits::infinity(),
                       Limits::quiet_NaN(),
                       127,
                       128,
                       1074,
                       1 + Limits::epsilon(),
                       1 - Limits::epsilon() / 2};
  std::vector<T> x, y;
  for (T a : special) {
    for (T b : special) {
      for (int signs = 0; signs < 4; ++signs) {
        x.push_back(signs & 1 ? -a : a);
        y.push_back(signs & 2 ? -b : b);
      }
    }
  }
  const std::vector<T> got = test::run_math<T>(function->build, x, y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = error_in_ulp(got[i], exact_of(name, x[i], y[i]));
    if (error > 2.5) {
      FAIL_CHECK(name << "(" << x[i] << ", " << y[i] << ") gives " << got[i]);
    }
  }
}

}  // namespace

TEST_CASE("each mathematical function keeps its bound", "[kernel][math]") {
  // Those that C does not have follow: kernel_special_test.cpp.
  REQUIRE(std::size(kFunctions) < math_bounds().size());
  for (std::size_t i = 0; i < std::size(kFunctions); ++i) {
    const MathBound& bound = math_bounds()[i];
    REQUIRE(bound.name == kFunctions[i].name);
    check_bound<float>(kFunctions[i], bound.float32_ulp);
    check_bound<double>(kFunctions[i], bound.float64_ulp);
  }
}

TEST_CASE("functions of two arguments follow C at the edges", "[kernel][math]") {
  check_grid<float>("pow");
  check_grid<double>("pow");
  check_grid<float>("arctan2");
  check_grid<double>("arctan2");
}

TEST_CASE("NaN with any payload stays NaN", "[kernel][math]") {
  std::vector<float> x;
  for (std::uint32_t bits = 0x7f800001; bits < 0x7fffffff; bits += 0x12345) {
    x.push_back(std::bit_cast<float>(bits));
    x.push_back(std::bit_cast<float>(bits | 0x80000000u));
  }
  for (const Function& f : kFunctions) {
    int numbers = 0;
    for (float y : test::run_math<float>(f.build, x, x)) numbers += !std::isnan(y);
    INFO(f.name);
    CHECK(numbers == 0);
  }
}

TEST_CASE("is_nan tells NaN from numbers", "[kernel][math]") {
  const auto build = [](Expr x, Expr) { return x.builder->cast(is_nan(x), x.dtype()); };
  const std::vector<double> x = {0, -1, std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN()};
  CHECK(test::run_math<double>(build, x, x) == std::vector<double>{0, 0, 0, 1});
}

TEST_CASE("Philox gives its published numbers", "[kernel][math]") {
  // The known-answer vectors that come with the paper's code: counter, key, result.
  struct Answer {
    std::uint64_t counter, stream, key;
    std::uint32_t words[4];
  };
  const Answer answers[] = {
      {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {~0ull, ~0ull, ~0ull, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {0x85a308d3243f6a88,
       0x0370734413198a2e,
       0x299f31d0a4093822,
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Answer& a : answers) {
    Builder b;
    const int in = b.buffer(DType::uint64, false);
    const int out = b.buffer(DType::uint32, true);
    const Expr zero = b.i64(0);
    const auto argument = [&](int i) { return b.load(in, b.i64(i), zero); };
    const PhiloxWords words = philox(argument(0), argument(1), argument(2));
    for (int i = 0; i < 4; ++i) b.store(out, b.i64(i), zero, words.word[i]);
    const Kernel kernel = b.finish();
    std::vector<test::Bytes> buffers = {
        test::bytes_of(std::vector<std::uint64_t>{a.key, a.stream, a.counter}), test::Bytes(16)};
    std::int64_t error[3] = {};
    test::interpret(kernel, buffers, {}, 1, error);
    CHECK(test::values_of<std::uint32_t>(buffers[1]) ==
          std::vector<std::uint32_t>(a.words, a.words + 4));
  }
}
