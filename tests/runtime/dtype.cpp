#include "croton/dtype.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include "croton/error.h"
#include "tests/data_folder.h"

using namespace croton;

TEST_CASE("names and sizes of dtypes go both ways", "[dtype]") {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType t = static_cast<DType>(i);
    CHECK(dtype_from_name(name_of(t)) == t);
    CHECK(size_of(t) > 0);
    CHECK(int{is_bool(t)} + int{is_integer(t)} + int{is_float(t)} == 1);
  }
  CHECK(name_of(DType::boolean) == "bool");
  CHECK(dtype_from_name("boolean") == DType::boolean);
  CHECK(size_of(DType::bfloat16) == 2);
  CHECK(is_signed(DType::int8));
  CHECK(is_signed(DType::float16));
  CHECK_FALSE(is_signed(DType::uint64));
  CHECK_FALSE(is_signed(DType::boolean));
  CHECK_THROWS_WITH(dtype_from_name("float"), Catch::Contains("'float'") &&
                                                  Catch::Contains("float32") &&
                                                  Catch::Contains("bfloat16"));
  CHECK_THROWS_AS(dtype_from_name(""), UserError);
}

TEST_CASE("every integer type of C++ has a dtype", "[dtype]") {
  CHECK(dtype_of<long> == DType::int64);
  CHECK(dtype_of<long long> == DType::int64);
  CHECK(dtype_of<unsigned long long> == DType::uint64);
  CHECK(dtype_of<signed char> == DType::int8);
  CHECK(dtype_of<std::uint8_t> == DType::uint8);
  CHECK(dtype_of<bool> == DType::boolean);
  CHECK(dtype_of<float16> == DType::float16);
  static_assert(!Element<char> && !Literal<char> && !Literal<char16_t> && !Literal<float16>);
  static_assert(Literal<bool> && !Integer<bool> && Literal<double>);
}

TEST_CASE("promotion follows NumPy's table under its policy", "[dtype]") {
  std::ifstream in(test::data_folder() + "/promotion.txt");
  std::string a, b, result;
  int lines = 0;
  while (in >> a >> b >> result) {
    ++lines;
    const DType x = dtype_from_name(a), y = dtype_from_name(b);
    CAPTURE(a, b);
    CHECK(name_of(promote(x, y, true)) == result);
    // Without the policy only float with integer differs.
    if (is_float(x) && is_integer(y)) {
      CHECK(promote(x, y) == x);
    } else if (is_float(y) && is_integer(x)) {
      CHECK(promote(x, y) == y);
    } else {
      CHECK(name_of(promote(x, y)) == result);
    }
  }
  CHECK(lines == 144);
}

TEST_CASE("promotion with bfloat16", "[dtype]") {
  const DType b = DType::bfloat16;
  CHECK(promote(b, DType::float16) == DType::float32);
  CHECK(promote(DType::float16, b) == DType::float32);
  CHECK(promote(b, b) == b);
  CHECK(promote(b, DType::float32) == DType::float32);
  CHECK(promote(b, DType::float64) == DType::float64);
  CHECK(promote(DType::boolean, b) == b);
  CHECK(promote(DType::int64, b) == b);
  CHECK(promote(DType::int8, b, true) == b);
  CHECK(promote(DType::int16, b, true) == DType::float32);
  CHECK(promote(DType::int64, b, true) == DType::float64);
}

TEST_CASE("float16 rounds doubles once, to nearest even", "[dtype]") {
  std::ifstream in(test::data_folder() + "/half.txt");
  std::string value;
  unsigned bits = 0;
  int lines = 0;
  while (in >> value >> bits) {
    ++lines;
    CAPTURE(value);
    CHECK(float16(std::strtod(value.c_str(), nullptr)).bits == bits);
  }
  CHECK(lines > 150);
}

TEST_CASE("16-bit floats survive the way to float and back", "[dtype]") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float h = float16::from_bits(static_cast<std::uint16_t>(bits));
    const float b = bfloat16::from_bits(static_cast<std::uint16_t>(bits));
    wrong += std::isnan(h) ? !std::isnan(static_cast<float>(float16(h))) : float16(h).bits != bits;
    wrong +=
        std::isnan(b) ? !std::isnan(static_cast<float>(bfloat16(b))) : bfloat16(b).bits != bits;
  }
  CHECK(wrong == 0);
  CHECK(static_cast<float>(float16::from_bits(0x0001)) == 0x1p-24f);
  CHECK(static_cast<float>(float16::from_bits(0x7bff)) == 65504.0f);
  CHECK(std::isinf(static_cast<float>(float16(65520.0f))));
  CHECK(static_cast<float>(float16(65519.0f)) == 65504.0f);
}

TEST_CASE("bfloat16 rounds to nearest even, also from doubles and long integers", "[dtype]") {
  CHECK(bfloat16(1.0f).bits == 0x3f80);
  CHECK(bfloat16(1.00390625f).bits == 0x3f80);           // halfway: to even
  CHECK(bfloat16(1.01171875f).bits == 0x3f82);           // halfway: to even, upwards
  CHECK(bfloat16(1.00390625 + 0x1p-40).bits == 0x3f81);  // above it, which float would lose
  CHECK(bfloat16(-1.00390625 - 0x1p-40).bits == 0xbf81);
  CHECK(bfloat16((std::int64_t{257} << 52) + 1).bits == bfloat16(258.0 * 0x1p52).bits);
  CHECK(bfloat16(-((std::int64_t{257} << 52) + 1)).bits == bfloat16(-258.0 * 0x1p52).bits);
  CHECK(bfloat16(std::int64_t{257} << 52).bits == bfloat16(256.0 * 0x1p52).bits);
  CHECK(bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);  // rounds to infinity
  CHECK(bfloat16(1e300).bits == 0x7f80);
  CHECK(std::isnan(static_cast<float>(bfloat16(std::nanf("")))));
  CHECK(float16(1e300).bits == 0x7c00);
  CHECK(float16(-1e300).bits == 0xfc00);
  CHECK(float16(1e-300).bits == 0);
}

TEST_CASE("a literal keeps its kind and value", "[dtype]") {
  CHECK(LiteralValue(true).kind == DType::boolean);
  CHECK(LiteralValue(7u).kind == DType::int64);
  CHECK(LiteralValue(1.5f).kind == DType::float64);
  CHECK(LiteralValue(std::uint64_t{1} << 63).kind == DType::uint64);
  CHECK(LiteralValue(std::numeric_limits<std::int64_t>::min()).integer ==
        std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("the default float comes from the registered source", "[dtype]") {
  CHECK(default_float() == DType::float32);
  set_default_float_source([] { return DType::float64; });
  CHECK(default_float() == DType::float64);
  set_default_float_source(nullptr);
  CHECK(default_float() == DType::float32);
}
