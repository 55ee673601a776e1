// Elementwise functions that are built from scalar ops: values and derivatives against mpmath
// (tests/data/make_elementwise_fixtures.py), edges, dtypes, errors.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <sstream>

#include "croton/config.h"
#include "croton/error.h"
#include "croton/function.h"
#include "croton/grad.h"
#include "croton/math.h"
#include "croton/nn.h"
#include "croton/reduce.h"
#include "croton/symbols.h"
#include "tests/data_folder.h"
#include "tests/ops/graph_values.h"

using namespace croton;
using Catch::Matchers::Contains;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Built = std::function<Variable(const std::vector<Variable>&)>;

const std::map<std::string, Built>& functions() {
  using List = const std::vector<Variable>&;
  static const std::map<std::string, Built> table = {
      {"deg2rad", [](List x) { return deg2rad(x[0]); }},
      {"rad2deg", [](List x) { return rad2deg(x[0]); }},
      {"xlogx", [](List x) { return xlogx(x[0]); }},
      {"xlogy", [](List x) { return xlogy(x[0], x[1]); }},
      {"xlog1py", [](List x) { return xlog1py(x[0], x[1]); }},
      {"ndtri", [](List x) { return ndtri(x[0]); }},
      {"trigamma", [](List x) { return trigamma(x[0]); }},
      {"gammal", [](List x) { return gammal(x[0], x[1]); }},
      {"gammau", [](List x) { return gammau(x[0], x[1]); }},
      {"chi2sf", [](List x) { return chi2sf(x[1], x[0]); }},
      {"log_sigmoid", [](List x) { return log_sigmoid(x[0]); }},
      {"hard_sigmoid", [](List x) { return hard_sigmoid(x[0]); }},
      {"softsign", [](List x) { return softsign(x[0]); }},
      {"elu", [](List x) { return elu(x[0]); }},
      {"elu_0.75", [](List x) { return elu(x[0], 0.75); }},
      {"selu", [](List x) { return selu(x[0]); }},
      {"celu_0.75", [](List x) { return celu(x[0], 0.75); }},
      {"gelu", [](List x) { return gelu(x[0]); }},
      {"gelu_tanh", [](List x) { return gelu(x[0], GeluForm::tanh); }},
      {"silu", [](List x) { return silu(x[0]); }},
      {"mish", [](List x) { return mish(x[0]); }},
      {"relu6", [](List x) { return relu6(x[0]); }},
  };
  return table;
}

Array doubles(const std::vector<double>& values) { return Array::from<double>(values); }

struct Block {
  std::string name;
  std::size_t operands = 1;
  std::vector<std::vector<double>> columns;
};

std::vector<Block> read_blocks() {
  std::ifstream in(test::data_folder() + "/elementwise_values.txt");
  REQUIRE(in);
  std::vector<Block> blocks;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    std::size_t k = 0;
    if (line[0] == '@') {
      blocks.emplace_back();
      words >> word >> blocks.back().name >> blocks.back().operands;
      continue;
    }
    for (; words >> word; ++k) {
      std::vector<std::vector<double>>& columns = blocks.back().columns;
      if (columns.size() <= k) columns.emplace_back();
      columns[k].push_back(std::strtod(word.c_str(), nullptr));
    }
  }
  return blocks;
}

void check_column(const Array& got, const std::vector<double>& want, double tolerance) {
  const std::vector<double> values = got.astype(DType::float64).to_vector<double>();
  REQUIRE(values.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    INFO("element " << i << " is " << values[i] << ", not " << want[i]);
    CHECK(std::fabs(values[i] - want[i]) <= tolerance * std::fmax(0.5, std::fabs(want[i])));
  }
}

void check_block(const Block& block, DType dtype, double tolerance) {
  INFO(block.name << " of " << name_of(dtype));
  std::vector<Variable> inputs;
  std::vector<Array> arguments;
  for (std::size_t k = 0; k < block.operands; ++k) {
    inputs.push_back(tensor("x", dtype, {kAnyDim}));
    arguments.push_back(Array::from<double>(block.columns[k]).astype(dtype));
  }
  const Variable y = functions().at(block.name)(inputs);
  REQUIRE(y.dtype() == dtype);
  std::vector<Variable> all{y};
  const std::size_t slopes = block.columns.size() - block.operands - 1;
  if (inputs.size() == 2) {
    for (std::size_t k = 2 - slopes; k < 2; ++k) all.push_back(grad(sum(y), inputs[k]));
  } else {
    all.push_back(grad(sum(y), inputs[0]));
    all.push_back(grad(sum(all[1]), inputs[0], {.disconnected_inputs = Disconnected::ignore}));
  }
  for (std::size_t k = 0; k < all.size(); ++k) {
    INFO("column " << k);
    check_column(function(inputs, all[k], {.on_unused = OnUnused::ignore}).call(arguments)[0],
                 block.columns[block.operands + k], tolerance);
  }
}

std::vector<double> values_at(const Built& build, const std::vector<double>& at, bool slope) {
  const Variable x = tensor("x", DType::float64, {kAnyDim});
  const Variable y = build({x});
  const Function f = function({x}, slope ? grad(sum(y), x) : y);
  return f.call({Array::from<double>(at)})[0].astype(DType::float64).to_vector<double>();
}

}  // namespace

TEST_CASE("elementwise functions have the values and slopes of mpmath", "[ops]") {
  std::size_t count = 0;
  for (const Block& block : read_blocks()) {
    check_block(block, DType::float64, 1e-12);
    check_block(block, DType::float32, 2e-5);
    ++count;
  }
  CHECK(count == functions().size());
}

TEST_CASE("elementwise functions at their edges", "[ops]") {
  const std::vector<double> edges = {-kInfinity, -1e4, -0.0, 0.0, kInfinity, kNan};
  const auto check = [&](const char* name, const std::vector<double>& values,
                         const std::vector<double>& slopes) {
    INFO(name);
    const std::vector<double> got = values_at(functions().at(name), edges, false);
    const std::vector<double> slope = values_at(functions().at(name), edges, true);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      INFO("at " << edges[i] << " value " << got[i] << ", slope " << slope[i]);
      CHECK((got[i] == values[i] || (std::isnan(got[i]) && std::isnan(values[i]))));
      if (!std::isnan(edges[i])) CHECK(slope[i] == Approx(slopes[i]));
    }
  };
  check("silu", {0, 0, 0, 0, kInfinity, kNan}, {0, 0, 0.5, 0.5, 1, 0});
  check("gelu", {0, 0, 0, 0, kInfinity, kNan}, {0, 0, 0.5, 0.5, 1, 0});
  check("elu", {-1, -1, 0, 0, kInfinity, kNan}, {0, 0, 1, 1, 1, 0});
  check("softsign", {-1, -1e4 / (1 + 1e4), 0, 0, 1, kNan},
        {0, 1 / ((1 + 1e4) * (1 + 1e4)), 1, 1, 0, 0});
  check("log_sigmoid", {-kInfinity, -1e4, -std::log(2), -std::log(2), 0, kNan},
        {1, 1, 0.5, 0.5, 0, 0});
  check("hard_sigmoid", {0, 0, 0.5, 0.5, 1, kNan}, {0, 0, 0.2, 0.2, 0, 0});
  check("relu6", {0, 0, 0, 0, 6, kNan}, {0, 0, 1, 1, 0, 0});
}

TEST_CASE("x log y of zeros is 0, with slopes that are numbers", "[ops]") {
  const Variable x = tensor("x", DType::float64, {kAnyDim});
  const Variable y = tensor("y", DType::float64, {kAnyDim});
  const Array xs = doubles({0, 0, 0, 0, 0, 2});
  const Array ys = doubles({0, -1, 2, kInfinity, kNan, 0});
  const auto run = [&](const Variable& v) {
    return function({x, y}, v).call({xs, ys})[0].to_vector<double>();
  };
  const std::vector<double> value = run(xlogy(x, y));
  CHECK(std::vector<double>(value.begin(), value.begin() + 4) == std::vector<double>{0, 0, 0, 0});
  CHECK(std::isnan(value[4]));
  CHECK(value[5] == -kInfinity);
  const std::vector<double> slope = run(grad(sum(xlogy(x, y)), x));
  CHECK(slope[0] == 0);
  CHECK(slope[1] == 0);
  CHECK(slope[2] == Approx(std::log(2)));
  CHECK(slope[5] == -kInfinity);
  const std::vector<double> other = run(grad(sum(xlogy(x, y)), y));
  CHECK(std::vector<double>(other.begin(), other.begin() + 4) == std::vector<double>{0, 0, 0, 0});
  CHECK(run(xlog1py(x, y - 1))[0] == 0);
  CHECK(values_at([](const std::vector<Variable>& v) { return xlogx(v[0]); }, {0, -0.0}, true) ==
        std::vector<double>{0, 0});
}

TEST_CASE("nan_to_num takes the ends of the dtype", "[ops]") {
  const std::vector<double> at = {kNan, kInfinity, -kInfinity, -2.5};
  const auto run = [&](DType dtype, auto&&... options) {
    const Variable x = tensor("x", dtype, {kAnyDim});
    return function({x}, nan_to_num(x, options...))
        .call({Array::from<double>(at).astype(dtype)})[0]
        .astype(DType::float64)
        .template to_vector<double>();
  };
  using Values = std::vector<double>;
  const double most = std::numeric_limits<double>::max();
  const double single = std::numeric_limits<float>::max();
  CHECK(run(DType::float64) == Values{0, most, -most, -2.5});
  CHECK(run(DType::float32) == Values{0, single, -single, -2.5});
  CHECK(run(DType::float16) == Values{0, 65504, -65504, -2.5});
  CHECK(run(DType::bfloat16) == Values{0, 0x1.fep127, -0x1.fep127, -2.5});
  CHECK(run(DType::float64, 1, 2, -3) == Values{1, 2, -3, -2.5});
  const Variable i = tensor("i", DType::int32, {kAnyDim});
  CHECK(nan_to_num(i).same(i));
}

TEST_CASE("the sign of zero counts, that of NaN does not", "[ops]") {
  const std::vector<double> at = {-0.0, 0.0, -2, kNan, -kNan, -kInfinity};
  const auto run = [&](const Built& build) { return values_at(build, at, false); };
  using List = const std::vector<Variable>&;
  CHECK(run([](List x) { return signbit(x[0]); }) == std::vector<double>{1, 0, 1, 0, 0, 1});
  CHECK(run([](List x) { return copysign(2, x[0]); }) == std::vector<double>{-2, 2, -2, 2, 2, -2});
}

TEST_CASE("isclose and inrange", "[ops]") {
  const std::vector<double> a = {1, 1, 100, kInfinity, kInfinity, kNan, 0};
  const std::vector<double> b = {1 + 9e-6, 1 + 2e-5, 100.0009, kInfinity, -kInfinity, kNan, 5e-9};
  const Variable x = tensor("x", DType::float64, {kAnyDim});
  const Variable y = tensor("y", DType::float64, {kAnyDim});
  const auto run = [&](const Variable& v) {
    return function({x, y}, v, {.on_unused = OnUnused::ignore})
        .call({Array::from<double>(a), Array::from<double>(b)})[0]
        .astype(DType::int64)
        .to_vector<std::int64_t>();
  };
  using Truths = std::vector<std::int64_t>;
  CHECK(run(isclose(x, y)) == Truths{1, 0, 1, 1, 0, 0, 1});
  CHECK(run(isclose(x, y, 0, 0)) == Truths{0, 0, 0, 1, 0, 0, 0});
  CHECK(run(isclose(x, y, 1e-5, 1e-8, true)) == Truths{1, 0, 1, 1, 0, 1, 1});
  CHECK(run(inrange(x, 0, 1)) == Truths{1, 1, 0, 0, 0, 0, 1});
  CHECK(run(inrange(x, 0, 1, true)) == Truths{1, 1, 0, 0, 0, 0, 0});
  CHECK(run(inrange(x, 0, 1, false, true)) == Truths{0, 0, 0, 0, 0, 0, 1});

  const Variable i = tensor("i", DType::uint8, {kAnyDim});
  const Array small = doubles({0, 255}).astype(DType::uint8);
  const Array close = function({i}, isclose(i, 1, 0, 1)).call({small})[0];
  CHECK(close.astype(DType::int64).to_vector<std::int64_t>() == Truths{1, 0});
}

TEST_CASE("divisions that come in pairs and that round up", "[ops]") {
  const Variable a = tensor("a", DType::int32, {kAnyDim});
  const Variable b = tensor("b", DType::int32, {kAnyDim});
  const Array as = doubles({7, -7, 7, -7, 6, 5}).astype(DType::int32);
  const Array bs = doubles({2, 2, -2, -2, 3, 0}).astype(DType::int32);
  const auto run = [&](const Variable& v) {
    CHECK(v.dtype() == DType::int32);
    return function({a, b}, v).call({as, bs})[0].to_vector<std::int32_t>();
  };
  using Values = std::vector<std::int32_t>;
  const auto [quotient, rest] = divmod(a, b);
  CHECK(run(quotient) == Values{3, -4, -4, 3, 2, 0});
  CHECK(run(rest) == Values{1, 1, -1, -1, 0, 0});
  CHECK(run(ceil_intdiv(a, b)) == Values{4, -3, -3, 4, 2, 0});
  const Variable u = tensor("u", DType::uint8, {kAnyDim});
  const Array us = doubles({0, 1, 255}).astype(DType::uint8);
  CHECK(function({u}, ceil_intdiv(u, 2)).call({us})[0].to_vector<std::uint8_t>() ==
        std::vector<std::uint8_t>{0, 1, 128});
}

namespace {

/// Compiled values of a function on floats, of which few are large, and the exact ones.
template <class T>
void check_large_angles(Variable (*f)(const Operand&), long double (*exact)(long double),
                        double ulps) {
  std::vector<T> x;
  for (int i = 0; i < 3000; ++i) {
    const T small = static_cast<T>(0.37 * i - 500);
    const T large = std::ldexp(static_cast<T>(1) + static_cast<T>(i) / 4096,
                               std::numeric_limits<T>::max_exponent - 1 - i % 70);
    x.push_back(i % 37 == 5 ? large : i % 37 == 9 ? -large : small);
  }
  x.push_back(std::ldexp(static_cast<T>(16367173), 72));
  x.push_back(std::numeric_limits<T>::infinity());
  const DType dtype = dtype_of<T>;
  const Variable v = tensor("v", dtype, {kAnyDim});
  const Array given = Array::from<T>(x, {x.size()});
  const std::vector<T> got = function({v}, f(v)).call({given})[0].template to_vector<T>();
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const long double want = exact(x[i]);
    const T rounded = std::fabs(static_cast<T>(want));
    const T spacing = std::nextafter(rounded, std::numeric_limits<T>::infinity()) - rounded;
    INFO(name_of(dtype) << " at " << x[i] << " gives " << got[i]);
    CHECK(std::fabs(got[i] - want) <= ulps * spacing);
  }
  CHECK(std::isnan(got.back()));
}

}  // namespace

TEST_CASE("angles of any size", "[ops]") {
  using Real = long double (*)(long double);
  check_large_angles<float>(croton::sin, static_cast<Real>(std::sin), 1);
  check_large_angles<float>(croton::cos, static_cast<Real>(std::cos), 1);
  check_large_angles<float>(croton::tan, static_cast<Real>(std::tan), 2.5);
  check_large_angles<double>(croton::sin, static_cast<Real>(std::sin), 1);
  check_large_angles<double>(croton::cos, static_cast<Real>(std::cos), 1);
  check_large_angles<double>(croton::tan, static_cast<Real>(std::tan), 2.5);
}

TEST_CASE("the next number, in each float dtype", "[ops]") {
  const std::vector<double> from{0, -0.0, 1, 1, -1, 2, 3.5, kInfinity, 65504, 1, kNan, 0};
  const std::vector<double> to{1, -1, 2, 0, 0, 2, 9, 0, kInfinity, kNan, 1, -0.0};
  struct Wanted {
    DType dtype;
    double least, above_one, below_one, above, largest, beyond;
  };
  constexpr double kFloat = std::numeric_limits<float>::max();
  constexpr double kDouble = std::numeric_limits<double>::max();
  const Wanted all[] = {
      {DType::float16, 0x1p-24, 1 + 0x1p-10, 1 - 0x1p-11, 3.5 + 0x1p-9, 65504, kInfinity},
      {DType::bfloat16, 0x1p-133, 1 + 0x1p-7, 1 - 0x1p-8, 3.5 + 0x1p-6, 0x1.fep127, 66048},
      {DType::float32, 0x1p-149, 1 + 0x1p-23, 1 - 0x1p-24, 3.5 + 0x1p-22, kFloat, 65504 + 0x1p-8},
      {DType::float64, 0x1p-1074, 1 + 0x1p-52, 1 - 0x1p-53, 3.5 + 0x1p-51, kDouble,
       65504 + 0x1p-37}};
  for (const Wanted& w : all) {
    const Variable a = tensor("a", w.dtype, {kAnyDim}), b = tensor("b", w.dtype, {kAnyDim});
    const Variable y = nextafter(a, b);
    CHECK(y.dtype() == w.dtype);
    const Array as = doubles(from).astype(w.dtype), bs = doubles(to).astype(w.dtype);
    // 65504 is no bfloat16; it rounds to 65536, which 66048 follows.
    const std::vector<double> want{w.least, -w.least,  w.above_one, w.below_one, -w.below_one, 2,
                                   w.above, w.largest, w.beyond,    kNan,        kNan,         0};
    const Array compiled = function({a, b}, y).call({as, bs})[0];
    const Array reference = test::value(y, {{a, as}, {b, bs}});
    INFO(name_of(w.dtype) << ", compiled " << compiled << ", reference " << reference);
    CHECK(allclose(compiled.astype(DType::float64), doubles(want), 0, 0, true));
    CHECK(allclose(reference.astype(DType::float64), doubles(want), 0, 0, true));
  }
}

TEST_CASE("elementwise functions: dtypes, places and errors", "[ops]") {
  const Variable i = tensor("i", DType::int32, {kAnyDim});
  const Variable half = tensor("h", DType::float16, {kAnyDim});
  CHECK(silu(i).dtype() == DType::float32);
  CHECK(gelu(half).dtype() == DType::float16);
  CHECK(deg2rad(i).dtype() == DType::float32);
  CHECK(relu6(i).dtype() == DType::int32);
  CHECK(rint(i).dtype() == DType::float32);
  CHECK(fix(i).dtype() == DType::int32);
  CHECK(xlogy(i, half).dtype() == DType::float16);
  CHECK(hypot(i, 3).dtype() == DType::float32);
  CHECK(gamma(i).dtype() == DType::float32);
  CHECK(polygamma(0, half).dtype() == DType::float16);
  CHECK(isclose(i, half).dtype() == DType::boolean);
  for (const int order : {-1, 101}) {
    CHECK_THAT(test::message_of<GraphError>([&] { polygamma(order, half); }),
               Contains("[polygamma]") && Contains("got " + std::to_string(order)) &&
                   Contains("expected 0 to 100") && Contains("elementwise_values.cpp"));
  }
  CHECK_THAT(test::message_of<GraphError>([&] { grad(sum(polygamma(100, half)), half); }),
             Contains("[polygamma]") && Contains("got 101"));
  CHECK_THAT(test::message_of<GraphError>([&] { celu(half, 0); }), Contains("[celu]"));
  const Variable three = tensor("x", DType::float32, {3});
  const Variable four = tensor("y", DType::float32, {4});
  CHECK_THAT(test::message_of<GraphError>([&] { xlogy(three, four); }), Contains("[xlogy]"));
  CHECK_THAT(test::message_of<GraphError>([&] { hypot(three, four); }), Contains("[hypot]"));
  CHECK_THAT(test::message_of<GraphError>([&] { fmod(tensor("b", DType::float32, {3}), four); }),
             Contains("[fmod]"));
}
