// What is refused in a call, before anything has run or changed, and in which words.
#include <croton/croton.h>

#include <limits>

#include "tests/frontend/error_text.h"

using namespace croton;
using namespace croton::test;

TEST_CASE("arguments must be as many as the inputs, of their dtypes and shapes", "[bad_input]") {
  Variable x = tensor("x", DType::float32, {kAnyDim, 3}), n = vector("n", DType::int64);
  Shared calls = shared(0, {.name = "calls"});
  Function f =
      function({x, n}, sum(x) + sum(n), {.updates = {{calls, calls + 1}}, .name = "score"});
  const Array a = Array::ones({2, 3}), i = {1, 2};
  CHECK_THAT(error_text<CallError>([&] { f(a); }), HasAll({"[score]", "got 1, expected 2 (x, n)"}));
  CHECK_THAT(error_text<CallError>([&] { f(a, i, i); }), HasAll({"got 3, expected 2 (x, n)"}));
  CHECK_THAT(error_text<CallError>([&] { f(); }), HasAll({"got 0, expected 2"}));
  CHECK_THAT(error_text<CallError>([&] { f.call(std::vector<Array>(9)); }),
             HasAll({"got 9, expected 2"}));
  CHECK_THAT(error_text<CallError>([&] { f(a.astype(DType::float64), i); }),
             HasAll({"[score] argument 0 (\"x\")", "got float64, expected float32", "astype"}));
  CHECK_THAT(error_text<CallError>([&] { f(a, a); }),
             HasAll({"argument 1 (\"n\")", "got float32, expected int64"}));
  CHECK_THAT(error_text<CallError>([&] { f(Array::ones({3}), i); }),
             HasAll({"argument 0 (\"x\")", "axes", "(3,)", "(?, 3)"}));
  CHECK_THAT(error_text<CallError>([&] {
               f(Array::ones({2, 4}), i);
             }),
             HasAll({"argument 0 (\"x\")", "axis 1", "got 4", "expected 3"}));
  CHECK_THAT(error_text<CallError>([&] { f(Array(), i); }),
             HasAll({"argument 0 (\"x\")", "no value"}));
  CHECK_THAT(error_text<CallError>([&] {
               f(a, {1.5, 2.0});
             }),
             HasAll({"argument 1 (\"n\")", "int64"}));
  CHECK_THAT(error_text<CallError>([&] { f(a, 2); }), HasAll({"argument 1 (\"n\")", "axes"}));
  CHECK(calls.get_value().item<std::int64_t>() == 0);
  CHECK(f(a, i)[0].item<float>() == 9.0f);
  CHECK(calls.get_value().item<std::int64_t>() == 1);
}

TEST_CASE("numbers convert to an input's dtype only when nothing is lost", "[bad_input]") {
  const auto pass = [](DType dtype, const Arg& value) {
    Variable x = tensor("x", dtype, {});
    return function({x}, x)(value)[0];
  };
  CHECK(pass(DType::int8, 127).item<std::int8_t>() == 127);
  CHECK_THAT(error_text<CallError>([&] { pass(DType::int8, 128); }), HasAll({"\"x\"", "int8"}));
  CHECK_THAT(error_text<CallError>([&] { pass(DType::uint8, -1); }), HasAll({"\"x\"", "uint8"}));
  CHECK_THAT(error_text<CallError>([&] { pass(DType::int64, 2.0); }), HasAll({"\"x\"", "int64"}));
  CHECK_THAT(error_text<CallError>([&] { pass(DType::boolean, 1); }), HasAll({"\"x\"", "bool"}));
  CHECK_THAT(error_text<CallError>([&] { pass(DType::float32, 16777217); }),
             HasAll({"16777217", "float32"}));
  CHECK(pass(DType::float32, 0.1).item<float>() == 0.1f);
  CHECK(std::isinf(pass(DType::float32, std::numeric_limits<double>::infinity()).item<float>()));
  CHECK_THROWS_AS(Array({{1, 2}, {3}}), UserError);
}

TEST_CASE("sizes that clash in a call are named before anything changes", "[bad_input]") {
  Variable x = matrix("x"), y = matrix("y");
  Shared w = shared(Array::zeros({2, 2}), {.name = "w"});
  Function add_up = function({x, y}, x + y, {.updates = {{w, w + 1}}, .name = "add_up"});
  const std::string text = error_text<CallError>([&] {
    add_up(Array::ones({2, 3}), Array::ones({2, 4}));
  });
  CHECK_THAT(text, HasAll({"[add]", "3", "4", "bad_input_call.cpp:"}));
  // A size that turns out to be 1 does not broadcast, and the message says what would make it.
  CHECK_THAT(error_text<CallError>([&] {
               add_up(Array::ones({2, 3}), Array::ones({1, 3}));
             }),
             HasAll({"[add]", "1", "2"}));
  CHECK_THROWS_AS(function({x, y}, dot(x, y))(Array::ones({2, 3}), Array::ones({2, 3})), CallError);
  CHECK_THROWS_AS(function({x}, reshape(x, {4, 2}))(Array::ones({3, 3})), CallError);
  CHECK_THROWS_AS(function({x}, max(x, 0))(Array::ones({0, 3})), CallError);
  CHECK(array_equal(w.get_value(), Array::zeros({2, 2})));
  CHECK(add_up(Array::ones({2, 2}), Array::ones({2, 2}))[0].at<float>({1, 1}) == 2.0f);
}

TEST_CASE("an index out of bounds leaves shared values as they were", "[bad_input]") {
  Variable i = vector("i", DType::int64);
  Shared table = shared(Array::arange(10).astype(DType::float32), {.name = "table"});
  Shared calls = shared(0);
  Function look = function(
      {i}, table(i),
      {.updates = {{table, inc_subtensor(table(i), 1.0f)}, {calls, calls + 1}}, .name = "look"});
  const Array before = table.get_value();
  CHECK_THAT(error_text<CallError>([&] { look(Array({0, 10})); }), HasAll({"10"}));
  CHECK_THROWS_AS(look(Array({-11})), CallError);
  CHECK(array_equal(table.get_value(), before));
  CHECK(calls.get_value().item<std::int64_t>() == 0);
  CHECK(array_equal(look(Array({9, -1, 0}))[0], Array({9.0, 9.0, 0.0})));
  CHECK(calls.get_value().item<std::int64_t>() == 1);

  Variable logits = matrix("logits"), labels = vector("labels", DType::int64);
  Function loss = function({logits, labels}, cross_entropy_from_logits(logits, labels));
  CHECK_THROWS_AS(loss(Array::ones({2, 3}), Array({0, 3})), CallError);
  CHECK_NOTHROW(loss(Array::ones({2, 3}), Array({0, 2})));
}

TEST_CASE("set_value keeps the type, and says what it was", "[bad_input]") {
  Shared w = shared(Array::ones({2, 3}), {.name = "w"});
  CHECK_THAT(error_text<UserError>([&] {
               w.set_value(Array::ones({3, 2}));
             }),
             HasAll({"w", "(3, 2)", "(2, 3)"}));
  CHECK_THAT(error_text<UserError>([&] {
               w.set_value(Array::ones({2, 3}, DType::float64));
             }),
             HasAll({"w", "float64", "float32"}));
  CHECK_THROWS_AS(w.set_value(Array()), UserError);
  CHECK(array_equal(w.get_value(), Array::ones({2, 3})));
  Shared free = shared(Array::ones({2}), {.resizable = true});
  CHECK_NOTHROW(free.set_value(Array::ones({5})));
  CHECK_THROWS_AS(free.set_value(Array::ones({5, 1})), UserError);
}

TEST_CASE("results are read with their dtype, place and rank", "[bad_input]") {
  Variable x = matrix("x");
  const Array r = function({x}, x * 2)(Array::ones({2, 2}))[0];
  CHECK_THAT(error_text<UserError>([&] { r.item<float>(); }), HasAll({"(2, 2)"}));
  CHECK_THAT(error_text<UserError>([&] { r.to_vector<double>(); }), HasAll({"float32", "float64"}));
  CHECK_THAT(error_text<UserError>([&] { r.at<float>({2, 0}); }), HasAll({"2"}));
  CHECK_THAT(error_text<UserError>([&] { r.at<float>({0}); }), HasAll({"1", "2"}));
}
