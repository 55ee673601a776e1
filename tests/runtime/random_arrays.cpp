#include "croton/random_arrays.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "croton/error.h"
#include "runtime/philox.h"

using namespace croton;

// The vectors published with Random123 (kat_vectors, philox4x32 10).
TEST_CASE("Philox gives the published words", "[random]") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) ==
        PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t f = 0xffffffff;
  CHECK(philox4x32({f, f, f, f}, {f, f}) ==
        PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  CHECK(philox_block(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("uniform numbers are the words' top bits", "[random]") {
  const Array a = random_uniform({2, 3}, {.seed = 5});
  REQUIRE(a.dtype() == DType::float32);
  const auto v = a.to_vector<float>();
  for (std::size_t e = 0; e < v.size(); ++e) {
    CHECK(v[e] == static_cast<float>(philox_block(5, 0, e / 4)[e % 4] >> 8) / 16777216.0f);
  }
  const auto d =
      random_uniform({3}, {.seed = 5, .dtype = DType::float64, .stream = 7}).to_vector<double>();
  const PhiloxBlock w = philox_block(5, 7, 0);
  CHECK(d[1] == std::ldexp(static_cast<double>((std::uint64_t{w[3]} << 32 | w[2]) >> 11), -53));
}

TEST_CASE("a seed fixes the numbers, another stream or none changes them", "[random]") {
  const Array a = random_uniform({100}, {.seed = 1});
  CHECK(array_equal(a, random_uniform({100}, {.seed = 1})));
  CHECK(array_equal(a.slice(0, 0, 10), random_uniform({10}, {.seed = 1})));
  CHECK_FALSE(array_equal(a, random_uniform({100}, {.seed = 2})));
  CHECK_FALSE(array_equal(a, random_uniform({100}, {.seed = 1, .stream = 1})));
  CHECK_FALSE(array_equal(random_uniform({100}), random_uniform({100})));
  CHECK_FALSE(array_equal(random_normal({100}), random_normal({100})));
}

TEST_CASE("uniform numbers fill their range evenly", "[random]") {
  for (DType t : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    CAPTURE(name_of(t));
    const Array a = random_uniform({40001}, {.seed = 3, .dtype = t});
    CHECK(a.dtype() == t);
    const auto v = a.astype(DType::float64).to_vector<double>();
    double sum = 0, square = 0;
    for (double x : v) {
      REQUIRE(x >= 0);
      REQUIRE(x < 1);
      sum += x;
      square += x * x;
    }
    const double n = static_cast<double>(v.size()), mean = sum / n;
    // Grids of 2^-8 and 2^-11 sit half a step below the continuous mean.
    const double bias = t == DType::bfloat16 ? 0x1p-9 : t == DType::float16 ? 0x1p-12 : 0;
    CHECK(std::fabs(mean + bias - 0.5) < 4 * std::sqrt(1 / 12.0 / n));
    CHECK(std::fabs(square / n - mean * mean - 1 / 12.0) < 0.003);
  }
  const auto r = random_uniform({1000}, {.seed = 4, .low = -2, .high = 6}).to_vector<float>();
  CHECK(*std::min_element(r.begin(), r.end()) >= -2);
  CHECK(*std::max_element(r.begin(), r.end()) <= 6);
  CHECK(*std::max_element(r.begin(), r.end()) > 5.9f);
}

TEST_CASE("normal numbers have the moments of the normal distribution", "[random]") {
  for (DType t : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    CAPTURE(name_of(t));
    const auto v =
        random_normal({40001}, {.seed = 3, .dtype = t}).astype(DType::float64).to_vector<double>();
    double m1 = 0, m2 = 0, m3 = 0, m4 = 0, lag = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      REQUIRE(std::isfinite(v[i]));
      m1 += v[i];
      m2 += v[i] * v[i];
      m3 += v[i] * v[i] * v[i];
      m4 += v[i] * v[i] * v[i] * v[i];
      if (i > 0) lag += v[i] * v[i - 1];
    }
    const double n = static_cast<double>(v.size()), s = std::sqrt(n);
    CHECK(std::fabs(m1 / n) < 4 / s);
    CHECK(std::fabs(m2 / n - 1) < 4 * std::sqrt(2) / s);
    CHECK(std::fabs(m3 / n) < 4 * std::sqrt(15) / s);
    CHECK(std::fabs(m4 / n - 3) < 4 * std::sqrt(96) / s);
    CHECK(std::fabs(lag / n) < 4 / s);
  }
  const auto v = random_normal({4}, {.seed = 9, .mean = 10, .stddev = 2}).to_vector<float>();
  const PhiloxBlock w = philox_block(9, 0, 0);
  const double r = std::sqrt(-2 * std::log(((w[2] >> 8) + 1) / 16777216.0));
  CHECK(v[2] == Approx(10 + 2 * r * std::cos(2 * M_PI * (w[3] >> 8) / 16777216.0)));
  CHECK(v[3] == Approx(10 + 2 * r * std::sin(2 * M_PI * (w[3] >> 8) / 16777216.0)));
}

TEST_CASE("random arrays of odd shapes and with wrong options", "[random]") {
  CHECK(random_uniform({}, {.seed = 1}).ndim() == 0);
  CHECK(random_uniform({0, 3}).size() == 0);
  CHECK(random_normal({0}).size() == 0);
  CHECK(random_uniform({3}, {.low = 2, .high = 2}).to_vector<float>() ==
        std::vector<float>{2, 2, 2});
  using Catch::Contains;
  CHECK_THROWS_WITH(random_uniform({2}, {.dtype = DType::int32}), Contains("int32"));
  CHECK_THROWS_WITH(random_uniform({2}, {.low = 1, .high = 0}), Contains("high"));
  CHECK_THROWS_WITH(random_uniform({2}, {.low = -HUGE_VAL}), Contains("finite"));
  CHECK_THROWS_WITH(random_uniform({2}, {.low = -1e308, .high = 1e308}), Contains("high - low"));
  CHECK_THROWS_WITH(random_normal({2}, {.stddev = -1}), Contains("stddev"));
  CHECK_THROWS_AS(random_uniform({-1}), UserError);
}
