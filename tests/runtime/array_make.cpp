#include <catch2/catch.hpp>
#include <limits>

#include "croton/array.h"
#include "croton/error.h"

using namespace croton;
using Catch::Contains;
using I = std::vector<std::int64_t>;
using F = std::vector<float>;

TEST_CASE("nested lists give arrays", "[array]") {
  Array a = {{1, 2}, {3, 4}};
  CHECK(a.dtype() == DType::int64);
  CHECK(a.shape() == Shape({2, 2}));
  CHECK(a.to_vector<std::int64_t>() == I{1, 2, 3, 4});
  Array b({{1, 2}, {3, 4}});
  CHECK(array_equal(a, b));
  Array one = {{1, 2}};
  CHECK(one.shape() == Shape({1, 2}));
  CHECK(Array({1.5, 2.5f}).dtype() == DType::float32);
  CHECK(Array({1, 2.5}).to_vector<float>() == F{1, 2.5f});
  CHECK(Array({true, false}).dtype() == DType::boolean);
  CHECK(Array({true, 2}).to_vector<std::int64_t>() == I{1, 2});
  CHECK(Array({std::uint64_t{1} << 63, std::uint64_t{0}}).dtype() == DType::uint64);
  Array deep = {{{1}, {2}}, {{3}, {4}}, {{5}, {6}}};
  CHECK(deep.shape() == Shape({3, 2, 1}));
  Array hollow = {{}, {}};
  CHECK(hollow.shape() == Shape({2, 0}));
  CHECK(hollow.dtype() == DType::float32);
}

TEST_CASE("floating lists follow the default float", "[array]") {
  set_default_float_source([] { return DType::float64; });
  const DType list = Array({0.5}).dtype(), scalar = Array(0.5f).dtype(),
              zeros = Array::zeros({1}).dtype();
  set_default_float_source(nullptr);
  CHECK(list == DType::float64);
  CHECK(scalar == DType::float64);
  CHECK(zeros == DType::float64);
}

TEST_CASE("ragged lists say where", "[array]") {
  using V = UserError;
  CHECK_THROWS_AS(Array({{1, 2}, {3}}), V);
  CHECK_THROWS_WITH(Array({{1, 2}, {3}}),
                    Contains("entry [1]") && Contains("1 entries") && Contains("2"));
  CHECK_THROWS_WITH(Array({{{1}, {2}}, {{3}, {4, 5}}}), Contains("entry [1][1]"));
  CHECK_THROWS_WITH(Array({1, {2}}), Contains("entry [1] is a list"));
  CHECK_THROWS_WITH(Array({{1}, 2}), Contains("entry [1] is a number"));
  CHECK_THROWS_WITH(Array({{}, {1}}), Contains("entry [1]"));
  CHECK_THROWS_WITH(Array({{{{{{{{{1}}}}}}}}}), Contains("at most 8"));
}

TEST_CASE("values beyond int64 do not mix with negative ones", "[array]") {
  CHECK_THROWS_WITH(Array({Nested(-1), Nested(std::uint64_t{1} << 63)}),
                    Contains("no integer dtype"));
}

TEST_CASE("scalars are 0-d", "[array]") {
  const Array a(2.0f);
  CHECK(a.ndim() == 0);
  CHECK(a.size() == 1);
  CHECK(a.shape() == Shape());
  CHECK(a.item<float>() == 2.0f);
  CHECK(a.at<float>({}) == 2.0f);
  CHECK(Array(true).item<bool>());
  CHECK(Array(std::int8_t{3}).item<std::int64_t>() == 3);
  CHECK(Array{2.0f}.shape() == Shape({1}));  // braces make lists
}

TEST_CASE("from copies and borrow does not", "[array]") {
  std::vector<float> v = {1, 2, 3, 4, 5, 6};
  const Array copied = Array::from<float>(v, {2, 3});
  const Array borrowed = Array::borrow(v.data(), {2, 3});
  v[0] = 9;
  CHECK(copied.at<float>({0, 0}) == 1);
  CHECK(borrowed.at<float>({0, 0}) == 9);
  CHECK(borrowed.raw_data() == v.data());
  CHECK(Array::from<float>(v).shape() == Shape({6}));
  CHECK(Array::from<int>({1, 2}, {2, 1}).dtype() == DType::int32);
  const bool flags[] = {true, false};
  CHECK(Array::from<bool>(flags).to_vector<bool>() == std::vector<bool>{true, false});
  CHECK_THROWS_WITH(Array::from<float>(v, {2, 2}),
                    Contains("got 6") && Contains("expected 4") && Contains("(2, 2)"));
  CHECK_THROWS_WITH(Array::from<float>(v, {kAnyDim, 3}), Contains("-1"));
  CHECK_THROWS_WITH(Array::borrow<float>(nullptr, {2}), Contains("null pointer"));
  CHECK(Array::borrow<float>(nullptr, {0}).size() == 0);
  CHECK_THROWS_WITH(
      Array::borrow(reinterpret_cast<double*>(reinterpret_cast<char*>(v.data()) + 1), {1}),
      Contains("not aligned"));
}

TEST_CASE("zeros, ones, full, eye and empty", "[array]") {
  CHECK(Array::zeros({2, 3}).to_vector<float>() == F(6));
  CHECK(Array::ones({2}, DType::int8).to_vector<std::int8_t>() == std::vector<std::int8_t>{1, 1});
  CHECK(Array::ones({1}, DType::boolean).item<bool>());
  CHECK(Array::ones({1}, DType::bfloat16).item<bfloat16>().bits == 0x3f80);
  CHECK(Array::full({2}, 7).dtype() == DType::int64);
  CHECK(Array::full({2}, 0.5).dtype() == DType::float32);
  CHECK(Array::full({}, 2.0, DType::float64).item<double>() == 2.0);
  CHECK(Array::full({1}, 2.0, DType::int32).item<std::int32_t>() == 2);
  CHECK(Array::eye(2).to_vector<float>() == F{1, 0, 0, 1});
  CHECK(Array::eye(2, 3, 1, DType::int64).to_vector<std::int64_t>() == I{0, 1, 0, 0, 0, 1});
  CHECK(Array::eye(3, 2, -2, DType::int64).to_vector<std::int64_t>() == I{0, 0, 0, 0, 1, 0});
  CHECK(Array::eye(2, 2, 5).to_vector<float>() == F(4));
  CHECK(Array::empty({3, 0}).size() == 0);
  CHECK(Array::zeros({0}).to_vector<float>().empty());
}

TEST_CASE("values that a dtype cannot hold are errors", "[array]") {
  CHECK_THROWS_WITH(Array::full({1}, 300, DType::int8), Contains("got 300") && Contains("int8"));
  CHECK_THROWS_AS(Array::full({1}, -1, DType::uint64), UserError);
  CHECK_THROWS_AS(Array::full({1}, 0.5, DType::int32), UserError);
  CHECK_THROWS_AS(Array::full({1}, std::numeric_limits<double>::quiet_NaN(), DType::int32),
                  UserError);
  CHECK_THROWS_AS(Array::full({1}, 1e300, DType::float32), UserError);
  CHECK_THROWS_AS(Array::full({1}, 65520, DType::float16), UserError);
  CHECK_THROWS_AS(Array::full({1}, 2, DType::boolean), UserError);
  CHECK_THROWS_AS(Array::full({1}, 0x1p63, DType::int64), UserError);
  CHECK(Array::full({1}, -0x1p63, DType::int64).item<std::int64_t>() ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(Array::full({1}, std::numeric_limits<double>::infinity()).item<float>() ==
        std::numeric_limits<float>::infinity());
  CHECK(Array::full({1}, ~std::uint64_t{0}).item<std::uint64_t>() == ~std::uint64_t{0});
}

TEST_CASE("arange counts like Python's range and NumPy's arange", "[array]") {
  CHECK(Array::arange(4).to_vector<std::int64_t>() == I{0, 1, 2, 3});
  CHECK(Array::arange(2, 8, 3).to_vector<std::int64_t>() == I{2, 5});
  CHECK(Array::arange(5, 0, -2).to_vector<std::int64_t>() == I{5, 3, 1});
  CHECK(Array::arange(3, 3).size() == 0);
  CHECK(Array::arange(3, 0).size() == 0);
  CHECK(Array::arange(0, 1, 0.25).to_vector<float>() == F{0, 0.25f, 0.5f, 0.75f});
  CHECK(Array::arange(3, DType::float32).to_vector<float>() == F{0, 1, 2});
  CHECK(Array::arange(3, DType::int8).dtype() == DType::int8);
  CHECK(Array::arange(0.0, 3.0, 1.0, DType::int32).to_vector<std::int32_t>() ==
        std::vector<std::int32_t>{0, 1, 2});
  CHECK(Array::arange(std::numeric_limits<std::int64_t>::max() - 1,
                      std::numeric_limits<std::int64_t>::max(), 5)
            .size() == 1);
  CHECK_THROWS_WITH(Array::arange(0, 5, 0), Contains("step"));
  CHECK_THROWS_AS(Array::arange(0.0, std::numeric_limits<double>::infinity()), UserError);
  CHECK_THROWS_AS(Array::arange(0.0, 1.0, std::numeric_limits<double>::quiet_NaN()), UserError);
  CHECK_THROWS_AS(Array::arange(200, DType::int8), UserError);
  CHECK_THROWS_AS(Array::arange(2, DType::boolean), UserError);
}

TEST_CASE("impossible sizes are errors before anything is allocated", "[array]") {
  const std::int64_t big = std::int64_t{1} << 40;
  CHECK_THROWS_AS(Array::zeros({-2}), UserError);
  CHECK_THROWS_AS(Array::zeros({big, big}), UserError);
  CHECK_THROWS_AS(Array::zeros({std::int64_t{1} << 61}, DType::float64), UserError);
  CHECK_THROWS_WITH(Array::empty({std::int64_t{1} << 58}, DType::float64), Contains("no memory"));
  CHECK_THROWS_AS(Array::empty({std::int64_t{1} << 58}, DType::float64), OutOfMemory);
}
