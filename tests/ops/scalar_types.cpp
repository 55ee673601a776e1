// dtypes, shapes and errors of the operators and elementwise functions.
#include <catch2/catch.hpp>

#include "compiler/graph/node.h"
#include "compiler/graph/op.h"
#include "croton/config.h"
#include "croton/context.h"
#include "croton/error.h"
#include "croton/math.h"
#include "croton/nn.h"
#include "tests/ops/graph_values.h"

using namespace croton;
using Catch::Matchers::Contains;

namespace {

Variable input(DType dtype, Shape shape = {}, const char* name = "x") {
  return make_input({dtype, shape}, name, Loc::current());
}

std::string name_of_op(const Variable& v) { return v.node()->op->name; }

}  // namespace

TEST_CASE("operands are promoted by casts", "[ops]") {
  const Variable i32 = input(DType::int32);
  const Variable f32 = input(DType::float32);
  const Variable y = i32 + f32;
  CHECK(y.dtype() == DType::float32);
  CHECK(name_of_op(y) == "add");
  CHECK(name_of_op(y.node()->inputs[0]) == "cast");
  CHECK(y.node()->inputs[0].dtype() == DType::float32);
  CHECK(y.node()->inputs[1].same(f32));

  CHECK((input(DType::int64) * f32).dtype() == DType::float32);
  CHECK((input(DType::float64) * f32).dtype() == DType::float64);
  CHECK((input(DType::float16) - input(DType::bfloat16)).dtype() == DType::float32);
  CHECK((input(DType::uint8) + input(DType::int8)).dtype() == DType::int16);
  CHECK((input(DType::boolean) + input(DType::int8)).dtype() == DType::int8);
  const Variable less = lt(i32, f32);
  CHECK(less.dtype() == DType::boolean);
  CHECK(name_of_op(less.node()->inputs[0]) == "cast");
}

TEST_CASE("literals are weak", "[ops]") {
  CHECK((input(DType::int8) + 1).dtype() == DType::int8);
  CHECK((2.5 * input(DType::float16)).dtype() == DType::float16);
  CHECK((input(DType::int32) * 0.5).dtype() == DType::float32);
  CHECK((input(DType::boolean) + 1).dtype() == DType::int64);
  CHECK(where(input(DType::boolean), 0, input(DType::float64)).dtype() == DType::float64);
  CHECK(clip(input(DType::uint8), 0, 255).dtype() == DType::uint8);
  CHECK(pow(input(DType::float32), 2).dtype() == DType::float32);
  CHECK(name_of_op((input(DType::int8) + 1).node()->inputs[1]) == "constant");
}

TEST_CASE("division of integers gives floats", "[ops]") {
  CHECK((input(DType::int32) / input(DType::int32)).dtype() == DType::float32);
  CHECK((input(DType::boolean) / input(DType::boolean)).dtype() == DType::float32);
  CHECK((input(DType::float64) / 2).dtype() == DType::float64);
  CHECK((input(DType::float16) / input(DType::int64)).dtype() == DType::float16);
  CHECK(floor_divide(input(DType::int32), 2).dtype() == DType::int32);
  CHECK((input(DType::uint16) % 3).dtype() == DType::uint16);
  CHECK(floor_divide(input(DType::boolean), input(DType::boolean)).dtype() == DType::int8);
  CHECK(pow(input(DType::boolean), input(DType::boolean)).dtype() == DType::int8);
}

TEST_CASE("functions of integers give floats", "[ops]") {
  CHECK(exp(input(DType::int32)).dtype() == DType::float32);
  CHECK(sqrt(input(DType::boolean)).dtype() == DType::float32);
  CHECK(tanh(input(DType::float16)).dtype() == DType::float16);
  CHECK(arctan2(input(DType::int8), input(DType::float64)).dtype() == DType::float64);
  CHECK(reciprocal(input(DType::int64)).dtype() == DType::float32);
  CHECK(sigmoid(input(DType::int64)).dtype() == DType::float32);
  CHECK(floor(input(DType::int16)).dtype() == DType::int16);
  CHECK(round(input(DType::bfloat16)).dtype() == DType::bfloat16);
  CHECK(isnan(input(DType::int16)).dtype() == DType::boolean);
  CHECK(relu(input(DType::int32)).dtype() == DType::int32);
  CHECK(relu(input(DType::int32), 0.1).dtype() == DType::float32);
}

TEST_CASE("the flags of promotion", "[ops]") {
  const Variable i8 = input(DType::int8);
  const Variable i32 = input(DType::int32);
  const Variable f32 = input(DType::float32);
  {
    const ConfigScope scope(current_config().with("cast_policy", "numpy"));
    CHECK((i32 + f32).dtype() == DType::float64);
    CHECK((i8 + f32).dtype() == DType::float32);
    CHECK((f32 + 1).dtype() == DType::float32);
    CHECK(lt(i32, f32).node()->inputs[0].dtype() == DType::float64);
    CHECK(where(i8, i32, f32).dtype() == DType::float64);
    CHECK(exp(i8).dtype() == DType::float16);
    CHECK(exp(input(DType::int16)).dtype() == DType::float32);
    CHECK(exp(i32).dtype() == DType::float64);
    CHECK((i8 / i8).dtype() == DType::float64);
    CHECK((f32 / f32).dtype() == DType::float32);
  }
  {
    const ConfigScope scope(current_config().with("floatX", "float64"));
    CHECK(exp(i8).dtype() == DType::float64);
    CHECK((i32 / i32).dtype() == DType::float64);
    CHECK((i32 * 0.5).dtype() == DType::float64);
    CHECK((f32 * 0.5).dtype() == DType::float32);
  }
  CHECK((i32 + f32).dtype() == DType::float32);
}

TEST_CASE("logic works on truth values, bits on integers and bools", "[ops]") {
  const Variable f = input(DType::float32);
  const Variable i = input(DType::int32);
  const Variable y = logical_and(f, i);
  CHECK(y.dtype() == DType::boolean);
  CHECK(y.node()->inputs[0].dtype() == DType::boolean);
  CHECK(logical_not(i).dtype() == DType::boolean);
  CHECK((i & 3).dtype() == DType::int32);
  CHECK((i | input(DType::boolean)).dtype() == DType::int32);
  CHECK((~input(DType::boolean)).dtype() == DType::boolean);
  CHECK((i << 2).dtype() == DType::int32);
  CHECK((1 << i).dtype() == DType::int32);
  CHECK((i >> i ^ i).dtype() == DType::int32);
  CHECK(where(f, i, i).node()->inputs[0].dtype() == DType::boolean);
}

TEST_CASE("a cast to the same dtype is the value itself", "[ops]") {
  const Variable x = input(DType::float32);
  CHECK(cast(x, DType::float32).same(x));
  CHECK(x.astype(DType::int8).dtype() == DType::int8);
  CHECK(cast(3, DType::float16).dtype() == DType::float16);
  CHECK(name_of_op(cast(3, DType::float16)) == "constant");
}

TEST_CASE("shapes broadcast where sizes are known to be 1", "[ops]") {
  const Variable m = input(DType::float32, {kAnyDim, 5});
  const Variable row = input(DType::float32, {5});
  const Variable column = input(DType::float32, {kAnyDim, 1});
  CHECK((m + row).static_shape() == Shape{kAnyDim, 5});
  CHECK((column * row).static_shape() == Shape{kAnyDim, 5});
  CHECK((m + 1).static_shape() == Shape{kAnyDim, 5});
  CHECK(where(lt(column, 0), m, row).static_shape() == Shape{kAnyDim, 5});
  CHECK((Array{1.0, 2.0, 3.0, 4.0, 5.0} * m).static_shape() == Shape{kAnyDim, 5});

  const std::string error = test::message_of<GraphError>(
      [&] { input(DType::float32, {3}, "a") + input(DType::float32, {4}, "b"); });
  CHECK_THAT(error, Contains("[add]") && Contains("3") && Contains("4") && Contains("'a'"));
}

TEST_CASE("errors name the op and the user's line", "[ops]") {
  const Variable b = input(DType::boolean);
  const Variable f = input(DType::float32);
  std::string error = test::message_of<GraphError>([&] {
#line 5000 "user.cpp"
    b - b;
  });
#line 500 "scalar_types.cpp"
  CHECK_THAT(error, Contains("[sub] bools cannot be subtracted") && Contains("user.cpp:5000"));

  error = test::message_of<GraphError>([&] {
#line 5010 "user.cpp"
    f& f;
  });
#line 510 "scalar_types.cpp"
  CHECK_THAT(error, Contains("[bitwise_and]") && Contains("floats") && Contains("user.cpp:5010"));

  error = test::message_of<GraphError>([&] {
#line 5020 "user.cpp"
    input(DType::int8) + 300;
  });
#line 520 "scalar_types.cpp"
  CHECK_THAT(error,
             Contains("[add]") && Contains("300") && Contains("int8") && Contains("user.cpp:5020"));

  error = test::message_of<GraphError>([&] {
#line 5030 "user.cpp"
    pow(input(DType::int32), -2);
  });
#line 530 "scalar_types.cpp"
  CHECK_THAT(error, Contains("[pow]") && Contains("-2") && Contains("user.cpp:5030"));

  CHECK_THAT(test::message_of<GraphError>([&] { neg(b); }), Contains("[neg]") && Contains("bool"));
  CHECK_THAT(test::message_of<GraphError>([&] { sign(b); }), Contains("[sign]"));
  CHECK_THAT(test::message_of<GraphError>([&] { b << b; }),
             Contains("[left_shift] integers expected"));
  CHECK_THAT(test::message_of<GraphError>([&] { ~f; }), Contains("[bitwise_not]"));
  CHECK_THAT(test::message_of<GraphError>([&] { grad_clip(f, 1, 0); }), Contains("[grad_clip]"));
  CHECK_THAT(test::message_of<GraphError>([&] { Variable() + 1; }), Contains("empty Variable"));
}

TEST_CASE("nodes carry the user's line", "[ops]") {
  const Variable x = input(DType::float32);
#line 7000 "user.cpp"
  const Variable y = x * 2;
  const Variable z = 1 - exp(x);
#line 700 "scalar_types.cpp"
  CHECK(to_text(y.node()->loc) == "user.cpp:7000");
  CHECK(to_text(z.node()->loc) == "user.cpp:7001");
  CHECK(to_text(z.node()->inputs[1].node()->loc) == "user.cpp:7001");
}

namespace {
template <class A, class B>
concept Addable = requires(const A& a, const B& b) {
  a + b;
};
template <class A, class B>
concept Shiftable = requires(const A& a, const B& b) {
  a << b;
};
template <class A>
concept Negatable = requires(const A& a) {
  -a;
};
}  // namespace

TEST_CASE("arithmetic between arrays alone does not compile", "[ops]") {
  STATIC_REQUIRE(!Addable<Array, Array>);
  STATIC_REQUIRE(!Addable<Array, int>);
  STATIC_REQUIRE(!Addable<double, Array>);
  STATIC_REQUIRE(!Shiftable<Array, int>);
  STATIC_REQUIRE(!Negatable<Array>);
  STATIC_REQUIRE(Addable<Variable, Array>);
  STATIC_REQUIRE(Addable<Array, Variable>);
  STATIC_REQUIRE(Addable<Variable, unsigned long>);
  STATIC_REQUIRE(Addable<Variable, bool>);
  STATIC_REQUIRE(!Addable<Variable, char>);
  STATIC_REQUIRE(!Addable<Variable, const char*>);
}
