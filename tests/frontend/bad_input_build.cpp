// What is refused while a graph or a function is built, and in which words.
#include <croton/croton.h>

#include "tests/frontend/error_text.h"

using namespace croton;
using namespace croton::test;

namespace {

const std::string kHere = "bad_input_build.cpp:";

}  // namespace

TEST_CASE("operands that do not fit an op are GraphErrors with the user's line", "[bad_input]") {
  Variable x = tensor("x", DType::float32, {2, 3}), y = tensor("y", DType::float32, {4});
  Variable n = tensor("n", DType::int64, {3}), b = vector("b", DType::boolean);
  // Sizes.
  CHECK_THAT(error_text<GraphError>([&] { x + y; }), HasAll({"[add]", "(2, 3)", "(4,)", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { dot(x, x); }), HasAll({"3", "2", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { concatenate({x, y}); }), HasAll({"2", "1", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { reshape(x, {4, 2}); }), HasAll({"6", "8", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { broadcast_to(x, {2, 2}); }), HasAll({"3", "2", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { squeeze(x, 0); }), HasAll({"2", kHere}));
  // dtypes.
  CHECK_THAT(error_text<GraphError>([&] { x& n; }), HasAll({"float32", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { left_shift(x, 1); }), HasAll({"float32", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { x(vector("i")); }), HasAll({"float32", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { pick(x, y); }), HasAll({"float32", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { tensor("i", DType::int8, {}) + 300; }),
             HasAll({"[add]", "300", "int8", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { tensor("u", DType::uint8, {}) - (-1); }),
             HasAll({"-1", "uint8"}));
  // Ranks and axes.
  CHECK_THAT(error_text<GraphError>([&] { x(0, 0, 0); }), HasAll({"3", "2", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { x(2); }), HasAll({"2", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { x(ellipsis, ellipsis); }), HasAll({kHere}));
  CHECK_THAT(error_text<GraphError>([&] { sum(x, 2); }), HasAll({"[sum]", "2", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { sum(x, {0, 0}); }), HasAll({"0", "twice", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { softmax(x, -3); }), HasAll({"-3", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { max(tensor("e", DType::float32, {0})); }),
             HasAll({"max", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { x.dimshuffle({0, 0, 1}); }), HasAll({"0", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { x(Slice(none, none, 0)); }),
             HasAll({"step", "0", kHere}));
  CHECK_THAT(error_text<GraphError>([&] { tensor("t", DType::float32, {-2}); }),
             HasAll({"'t'", "-2", kHere}));
}

TEST_CASE("empty variables are refused wherever they are given", "[bad_input]") {
  Variable x = matrix("x"), none_yet;
  CHECK_THAT(error_text<GraphError>([&] { x + none_yet; }), HasAll({"empty Variable"}));
  CHECK_THAT(error_text<GraphError>([&] { none_yet.sum(); }), HasAll({"empty Variable"}));
  CHECK_THAT(error_text<GraphError>([&] { none_yet(0); }), HasAll({"empty Variable"}));
  CHECK_THAT(error_text<GraphError>([&] { none_yet.dtype(); }), HasAll({"empty Variable"}));
  CHECK_THAT(error_text<GraphError>([&] { grad(none_yet, x); }), HasAll({"empty"}));
  CHECK_THAT(error_text<GraphError>([&] { grad(sum(x), none_yet); }), HasAll({"empty"}));
  CHECK_THAT(error_text<GraphError>([&] { function({none_yet}, x); }),
             HasAll({"input 0", "empty"}));
  CHECK_THAT(error_text<GraphError>([&] { function({x}, none_yet); }),
             HasAll({"output 0", "empty"}));
  CHECK_THAT(error_text<GraphError>([&] {
               function({x}, x, {.givens = {{none_yet, x}}});
             }),
             HasAll({"given", "empty"}));
  CHECK_THROWS_AS(Shared().get_value(), UserError);
  CHECK_THROWS_AS(Shared().set_value(Array(1.0f)), UserError);
  CHECK_THROWS_AS(Function()(), UserError);
  CHECK_THROWS_AS(shared(Array()), UserError);
  CHECK_THROWS_AS(constant(Array()), UserError);
  CHECK_THROWS_AS(x + Array(), UserError);
}

TEST_CASE("inputs of a function must be symbols, each given once and needed", "[bad_input]") {
  Variable x = matrix("x"), y = matrix("y");
  Shared w = shared(Array::ones({2, 2}), {.name = "w"});
  CHECK_THAT(error_text<GraphError>([&] { function({x}, x + y); }),
             HasAll({"[function]", "'y'", "not among the inputs", kHere}));
  CHECK_THAT(error_text<GraphError>([&] {
               function({x, y}, x);
             }),
             HasAll({"[function]", "input 1 (\"y\")", "on_unused", kHere}));
  CHECK_NOTHROW(function({x, y}, x, {.on_unused = OnUnused::ignore}));
  CHECK_THAT(error_text<GraphError>([&] { function({x, x}, x); }), HasAll({"\"x\"", "twice"}));
  CHECK_THAT(error_text<GraphError>([&] { function({w}, x); }), HasAll({"\"w\"", "shared"}));
  CHECK_THAT(error_text<GraphError>([&] { function({x + 1}, x); }), HasAll({"add", "givens"}));
  CHECK_THAT(error_text<GraphError>([&] { function({constant(Array(1.0f))}, x); }),
             HasAll({"input 0", "constant"}));
  CHECK_THAT(error_text<GraphError>([&] {
               function({x}, {{"a", x}, {"a", x + 1}});
             }),
             HasAll({"'a'", "two outputs"}));
}

TEST_CASE("updates must have the type of their variable, once each", "[bad_input]") {
  Variable x = matrix("x");
  Shared w = shared(Array::ones({2, 2}), {.name = "w"});
  const auto update = [&](const Operand& value) {
    return error_text<GraphError>([&] { function({}, {}, {.updates = {{w, value}}}); });
  };
  CHECK_THAT(update(w.astype(DType::float64)),
             HasAll({"update of w", "float64 (2, 2)", "float32 (2, 2)", "astype", kHere}));
  CHECK_THAT(update(cast(w, DType::int32)), HasAll({"int32", "float32"}));
  CHECK_THAT(update(sum(w, 0)), HasAll({"update of w", "(2,)", "(2, 2)"}));
  CHECK_THAT(update(Array::ones({3, 2})), HasAll({"(3, 2)", "(2, 2)"}));
  CHECK_THAT(update(0.0f), HasAll({"update of w", "scalar"}));
  CHECK_THAT(error_text<GraphError>([&] {
               function({}, {}, {.updates = {{w, w + 1}, {w, w + 2}}});
             }),
             HasAll({"w is updated twice", kHere}));
  CHECK_THAT(error_text<GraphError>([&] {
               function({}, {}, {.updates = {{Shared(), x}}});
             }),
             HasAll({"empty Shared"}));
  CHECK(array_equal(w.get_value(), Array::ones({2, 2})));
}

TEST_CASE("givens must replace like by like, once each", "[bad_input]") {
  Variable x = matrix("x"), y = x + 1;
  const auto given = [&](std::vector<Given> givens) {
    return error_text<GraphError>([&] { function({}, y, {.givens = givens}); });
  };
  CHECK_THAT(given({{x, Array::ones({2}, DType::float32)}}), HasAll({"given", "(2,)", "(?, ?)"}));
  CHECK_THAT(given({{x, matrix("d", DType::float64)}}), HasAll({"float64", "float32"}));
  const Array one = Array::ones({2, 2});
  CHECK_THAT(given({{x, one}, {x, one}}), HasAll({"two givens"}));
  CHECK_THAT(error_text<GraphError>([&] {
               function({x}, y, {.givens = {{x, one}}});
             }),
             HasAll({"\"x\"", "given"}));
}

TEST_CASE("gradients need a scalar float cost that depends on the variable", "[bad_input]") {
  Variable x = matrix("x"), n = matrix("n", DType::int64);
  Shared w = shared(1.0f, {.name = "w"});
  CHECK_THAT(error_text<GraphError>([&] { grad(x, x); }), HasAll({"scalar"}));
  CHECK_THAT(error_text<GraphError>([&] { grad(sum(n), n); }), HasAll({"int64"}));
  CHECK_THAT(error_text<GraphError>([&] { grad(sum(x), w); }), HasAll({"w"}));
}

TEST_CASE("names that nothing has are errors that say which there are", "[bad_input]") {
  Variable x = matrix("x");
  Function f = function({x}, {{"cost", sum(x)}, {"grad", x}});
  const Array one = Array::ones({1, 1});
  CHECK_THAT(error_text<UserError>([&] { f(one)["costs"]; }),
             HasAll({"'costs'", "did you mean 'cost'", "grad"}));
  CHECK_THAT(error_text<UserError>([&] { f(one)[2]; }), HasAll({"output 2", "has 2"}));
  CHECK_THAT(error_text<UserError>([&] { function({x}, x)(one)["y"]; }),
             HasAll({"'y'", "no names"}));
  CHECK_THAT(error_text<ConfigError>([&] { current_config().with("floatx", "float64"); }),
             HasAll({"floatx", "floatX"}));
  CHECK_THAT(error_text<ConfigError>(
                 [&] { function({x}, x, {.config = current_config().with("device", "null")}); }),
             HasAll({"device", "function"}));
  CHECK_THAT(error_text<ConfigError>([&] { shared(1.0f, {.target = "dev0"}); }),
             HasAll({"\"dev0\"", "contexts=dev0->cpu0", "shared at " + kHere}));
  CHECK_THAT(error_text<ConfigError>([&] { ContextScope on("dev0"); }), HasAll({"\"dev0\""}));
  CHECK_THAT(error_text<ConfigError>([&] { function({x}, x.transfer("dev0")); }),
             HasAll({"[contexts]", "\"dev0\"", "transfer at " + kHere}));
  CHECK_NOTHROW(function({x}, x.transfer("cpu0") + 1)(one));
}
