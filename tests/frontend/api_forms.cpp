// Every call form that the public headers promise, and the user's line in what they build.
#include <croton/croton.h>

#include <catch2/catch.hpp>
#include <concepts>

using namespace croton;

namespace {

/// The message of the error that an action throws, empty when it throws none.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("arrays are written as nested lists, spans, fills") {
  const Array a = {{1, 2}, {3, 4}};
  CHECK(a.dtype() == DType::int64);
  CHECK(a.shape() == Shape{2, 2});
  const Array b2({{1, 2}, {3, 4}});
  CHECK(array_equal(a, b2));
  const Array one = {{1, 2}};
  CHECK(one.shape() == Shape{1, 2});
  const std::vector<float> values(6, 1.5f);
  const Array b = Array::from<float>(values, {2, 3});
  CHECK(b.at<float>({1, 2}) == 1.5f);
  const std::size_t n = 2;
  const unsigned k = 3;
  CHECK(Array::zeros({n, k}).shape() == Shape{2, 3});
  CHECK(Array::full({}, 2.0, DType::float64).item<double>() == 2.0);
}

TEST_CASE("indexing takes integers, slices, ellipsis, newaxis, variables, arrays and lists") {
  const Array a = {{1, 2}, {3, 4}};
  Variable x = matrix("x"), y = vector("y", DType::int64);
  const std::size_t n = 1;
  CHECK(x(1).ndim() == 1);
  CHECK(x(Slice(), Slice(0, none, 2)).ndim() == 2);
  CHECK(x(ellipsis, newaxis).ndim() == 3);
  CHECK(x(y).ndim() == 2);
  CHECK(x(constant(a)).ndim() == 3);
  CHECK(x(a).ndim() == 3);
  CHECK(x({0, 1}).ndim() == 2);
  CHECK(x(n).ndim() == 1);
  CHECK(x(Slice(x.shape(0) - 1, none)).ndim() == 2);
}

TEST_CASE("operators mix variables, arrays and literals") {
  const Array a = {{1, 2}, {3, 4}};
  Variable x = matrix("x");
  Shared w = shared(Array::zeros({2, 2}), {.name = "w"});
  const unsigned k = 3;
  const std::size_t n = 2;
  for (const Variable& v : {w - 0.1f * x, 2 * x, x + 1, x + true, x + k, x + n, x + a, 1.5 + x}) {
    CHECK(v.dtype() == DType::float32);
    CHECK(v.ndim() == 2);
  }
  CHECK(x.sum().ndim() == 0);
  CHECK(x.sum(1).ndim() == 1);
  CHECK(where(lt(x, 0), 0, x).dtype() == DType::float32);
}

TEST_CASE("reductions take axes and options") {
  Variable x = matrix("x");
  Variable mask = matrix("mask", DType::boolean);
  CHECK(sum(x).ndim() == 0);
  CHECK(sum(x, 0).ndim() == 1);
  const Variable s = sum(x, {0, 1}, {.keepdims = true, .dtype = DType::float64, .where = mask});
  CHECK(s.ndim() == 2);
  CHECK(s.dtype() == DType::float64);
  CHECK(sum(x, none, {.keepdims = true}).static_shape() == Shape{1, 1});
  CHECK(sum(x, {}).ndim() == 2);
}

TEST_CASE("reshape mixes numbers and variables") {
  Variable x = matrix("x");
  Variable n = scalar("n", DType::int64), sizes = vector("sizes", DType::int64);
  CHECK(reshape(x, {n, 10}).static_shape() == Shape{kAnyDim, 10});
  CHECK(reshape(x, {n}).ndim() == 1);
  CHECK(reshape(x, {-1}).ndim() == 1);
  CHECK(reshape(tensor("t", DType::float32, {1, 1}), {}).ndim() == 0);
}

TEST_CASE("grad gives one for one and many for many") {
  Variable x = matrix("x");
  Shared w = shared(Array::zeros({2, 2})), b = shared(0.5f);
  Variable cost = sum(dot(x, w) + b);
  std::vector<Variable> g = grad(cost, {w, b});
  CHECK(g.size() == 2);
  auto g1 = grad(cost, {w});
  static_assert(std::same_as<decltype(g1), std::vector<Variable>>);
  auto g2 = grad(cost, w);
  static_assert(std::same_as<decltype(g2), Variable>);
}

TEST_CASE("functions take inputs, outputs by index or name, updates and givens") {
  Variable x = matrix("x"), y = scalar("y");
  Shared w = shared(Array::ones({2, 2}), {.name = "w"});
  Variable p = dot(x, w), cost = sum(p) * y;
  std::vector<Variable> g = grad(cost, {w});
  Function f = function({x, y}, {cost, p},
                        {.updates = {{w, w - 0.1f * g[0]}}, .givens = {}, .name = "train"});
  const Array a = {{1.0, 2.0}, {3.0, 4.0}};
  Outputs out = f(a, 2.0f);
  CHECK(out[0].item<float>() == 40.0f);
  CHECK(out.size() == 2);
  const Array& safe = f(a, 1)[1];
  CHECK(safe.shape() == Shape{2, 2});

  Function h = function({x}, {{"main", x + 1}, {"aux", x * 2}});
  Outputs named = h({{1, 2}, {3, 4}});
  CHECK(named["main"].at<float>({1, 1}) == 5.0f);
  CHECK(named["aux"].at<float>({1, 1}) == 8.0f);
  CHECK(function({x}, {{"only", x + 1}})(a)["only"].at<float>({0, 0}) == 2.0f);
  function({x}, {}, {.updates = {{w, x}}})(a);
  CHECK(array_equal(w.get_value(), a));
  Shared s = shared(1.0f);
  function({}, {}, {.updates = {{s, 0.0f}}})();
  CHECK(s.get_value().item<float>() == 0.0f);
  CHECK(function({}, {dot(w, w), dot(w, w) + 1})().size() == 2);
  CHECK(function({x}, sum(x))(a)[0].item<float>() == 10.0f);
  CHECK(function({x}, std::vector<Variable>{x, x})(a).size() == 2);
  CHECK(f.call(std::vector<Array>{a, Array(1.0f)}).size() == 2);
}

TEST_CASE("errors carry the line of the op that the user wrote") {
  Variable x = tensor("x", DType::float32, {2, 3}), y = tensor("y", DType::float32, {4});
#line 1000 "user.cpp"
  CHECK(error_of([&] { x + y; }).find("user.cpp:1000") != std::string::npos);
  CHECK(error_of([&] { dot(x, y); }).find("user.cpp:1001") != std::string::npos);
  CHECK(error_of([&] { sum(x, 5); }).find("user.cpp:1002") != std::string::npos);
  CHECK(error_of([&] { x(0, 0, 0); }).find("user.cpp:1003") != std::string::npos);
  CHECK(error_of([&] { x.sum(7); }).find("user.cpp:1004") != std::string::npos);
  CHECK(error_of([&] { softmax(x, 9); }).find("user.cpp:1005") != std::string::npos);
  CHECK(error_of([&] { reshape(x, {5, 5}); }).find("user.cpp:1006") != std::string::npos);
}

TEST_CASE("values and ContextScopes carry contexts") {
  ContextScope on("cpu");
  Shared v = shared(random_uniform({4, 4}), {.target = "cpu"});
  CHECK(v.get_value().shape() == Shape{4, 4});
  CHECK((v + 1).context() == "cpu");
}
