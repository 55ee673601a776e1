// Axes, shapes, joining and creation: results as NumPy gives them, types, and what is refused.
#include "croton/error.h"
#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/build.h"
#include "tests/ops/graph_values.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

TEST_CASE("orders of axes", "[ops][shape]") {
  const Variable x = floats({2, 1, 3});
  const Array v = counting({2, 1, 3});
  const Values values{{x, v}};
  CHECK(dimshuffle(x, {2, -1, 0}).static_shape() == Shape{3, 1, 2});
  CHECK(array_equal(value(dimshuffle(x, {2, 0}), values),
                    Array{{0., 3.}, {1., 4.}, {2., 5.}}.astype(DType::float64)));
  CHECK(x.T().static_shape() == Shape{3, 1, 2});
  CHECK(array_equal(value(x.T(), values), v.transpose().contiguous()));
  CHECK(transpose(x, {1, -1, 0}).static_shape() == Shape{1, 3, 2});
  CHECK(swapaxes(x, 0, -1).static_shape() == Shape{3, 1, 2});
  CHECK(moveaxis(x, 0, -1).static_shape() == Shape{1, 3, 2});
  CHECK(moveaxis(x, -1, 0).static_shape() == Shape{3, 2, 1});
  CHECK(expand_dims(x, {0, -1}).static_shape() == Shape{1, 2, 1, 3, 1});
  CHECK(squeeze(x).static_shape() == Shape{2, 3});
  CHECK(squeeze(x, 1).static_shape() == Shape{2, 3});
  CHECK(dimshuffle(x, {0, 1, 2}).same(x));
  CHECK(floats({}).T().static_shape() == Shape{});
}

TEST_CASE("wrong orders of axes are refused", "[ops][shape]") {
  const Variable x = floats({2, kAnyDim});
  CHECK_THROWS_WITH(dimshuffle(x, {0}), Contains("axis 1 is left out") && Contains("not known"));
  CHECK_THROWS_WITH(dimshuffle(x, {1}), Contains("axis 0 is left out") && Contains("got 2"));
  CHECK_THROWS_WITH(dimshuffle(x, {0, 0}), Contains("given twice"));
  CHECK_THROWS_WITH(dimshuffle(x, {0, 2}), Contains("out of range"));
  CHECK_THROWS_WITH(transpose(x, {0}), Contains("[transpose]"));
  CHECK_THROWS_WITH(squeeze(x, 0), Contains("[squeeze]") && Contains("(2, ?)"));
  CHECK_THROWS_AS(swapaxes(x, 0, 2), GraphError);
  CHECK_THROWS_WITH(dimshuffle(floats({}), std::vector<int>(9, -1)), Contains("at most 8"));
}

TEST_CASE("reshape", "[ops][shape]") {
  const Variable x = floats({2, 6});
  const Values values{{x, counting({2, 6})}};
  CHECK(reshape(x, {3, 4}).static_shape() == Shape{3, 4});
  CHECK(reshape(x, {-1, 4}).static_shape() == Shape{3, 4});
  CHECK(x.flatten().static_shape() == Shape{12});
  CHECK(array_equal(value(reshape(x, {4, -1}), values), counting({4, 3})));
  CHECK(reshape(x, {2, 6}).same(x));
  CHECK(reshape(floats({1, 1}), {}).static_shape() == Shape{});
  const Variable open = floats({kAnyDim, 4});
  CHECK(reshape(open, {-1, 2, 2}).static_shape() == Shape{kAnyDim, 2, 2});
  CHECK(array_equal(value(reshape(open, {2, -1}), {{open, counting({3, 4})}}), counting({2, 6})));
}

TEST_CASE("sizes may be symbols", "[ops][shape]") {
  const Variable x = floats({kAnyDim, 6});
  const Values values{{x, counting({4, 6})}};
  const Variable rows = x.shape(0);
  CHECK(reshape(x, {rows, 2, 3}).static_shape() == Shape{kAnyDim, 2, 3});
  CHECK(array_equal(value(reshape(x, {rows, 2, 3}), values), counting({4, 2, 3})));
  CHECK(array_equal(value(reshape(x, {6, rows}), values), counting({6, 4})));
  CHECK(array_equal(value(reshape(x, x.shape()), values), counting({4, 6})));
  const Variable sizes = input(DType::int32, {2}, "sizes");
  CHECK(reshape(x, sizes).ndim() == 2);
  CHECK(array_equal(
      value(reshape(x, sizes), {{x, counting({4, 6})}, {sizes, Array{8, 3}.astype(DType::int32)}}),
      counting({8, 3})));
  CHECK_THROWS_WITH(reshape(x, input(DType::int64, {kAnyDim}, "sizes")),
                    Contains("[reshape]") && Contains("number of axes must be known"));
  CHECK_THROWS_WITH(reshape(x, {floats({}), Size(2)}), Contains("must be an integer scalar"));
}

TEST_CASE("shapes that do not fit are refused", "[ops][shape]") {
  const Variable x = floats({2, 6});
  CHECK_THROWS_WITH(reshape(x, {5, 2}), Contains("[reshape]") && Contains("12 and 10"));
  CHECK_THROWS_WITH(reshape(x, {5, -1}), Contains("does not fit"));
  CHECK_THROWS_WITH(reshape(x, {-1, -1}), Contains("only one size may be -1"));
  CHECK_THROWS_WITH(reshape(x, {-2, 6}), Contains("must not be negative: got -2"));
  CHECK_THROWS_WITH(reshape(floats({0, 3}), {0, -1}), Contains("undetermined"));
}

TEST_CASE("broadcast_to, and arrays of one value", "[ops][shape]") {
  const Variable x = floats({3, 1});
  const Values values{{x, counting({3, 1})}};
  CHECK(array_equal(value(broadcast_to(x, {2, 3, 2}), values),
                    counting({3, 1}).broadcast_to({2, 3, 2}).copy()));
  CHECK_THROWS_WITH(broadcast_to(x, {4, 2}), Contains("axis 0 cannot be stretched"));
  CHECK_THROWS_WITH(broadcast_to(x, {3}), Contains("from 2 axes to 1"));
  CHECK(zeros({2, 3}).dtype() == DType::float32);
  CHECK(array_equal(value(ones({2}, DType::int8)), Array::ones({2}, DType::int8)));
  CHECK(array_equal(value(full({2}, 3)), Array{3, 3}));
  CHECK(zeros_like(x).dtype() == DType::float64);
  CHECK(ones_like(x, DType::int32).static_shape() == Shape{3, 1});
  CHECK_THROWS_AS(full({2}, 300, DType::int8), GraphError);
  const Variable n = floats({kAnyDim});
  CHECK(array_equal(value(zeros({n.shape(0), Size(2)}), {{n, counting({3})}}),
                    Array::zeros({3, 2}, DType::float32)));
  CHECK_THROWS_WITH(zeros({-1}), Contains("must not be negative"));
}

TEST_CASE("specify_shape", "[ops][shape]") {
  const Variable x = floats({kAnyDim, kAnyDim});
  CHECK(specify_shape(x, {1, kAnyDim}).static_shape() == Shape{1, kAnyDim});
  CHECK_THROWS_WITH(specify_shape(floats({2}), {3}), Contains("[specify_shape]"));
}

TEST_CASE("sizes as values", "[ops][shape]") {
  const Variable x = floats({kAnyDim, 3});
  const Values values{{x, counting({4, 3})}};
  CHECK(value(x.shape(0), values).item<std::int64_t>() == 4);
  CHECK(constant_value(x.shape(-1)) != nullptr);
  CHECK(array_equal(value(x.shape(), values), Array{4, 3}));
  CHECK(value(x.size(), values).item<std::int64_t>() == 12);
  CHECK(constant_value(floats({2, 3}).size())->item<std::int64_t>() == 6);
  CHECK_THROWS_WITH(x.shape(2), Contains("[shape]") && Contains("shape_values.cpp"));
}

TEST_CASE("concatenate and stack", "[ops][shape]") {
  const Variable a = floats({2, 2}, "a");
  const Variable b = floats({2, kAnyDim}, "b");
  const Values values{{a, counting({2, 2})}, {b, counting({2, 1})}};
  CHECK(concatenate({a, b}, 1).static_shape() == Shape{2, kAnyDim});
  CHECK(array_equal(value(concatenate({a, b}, -1), values),
                    Array{{0., 1., 0.}, {2., 3., 1.}}.astype(DType::float64)));
  CHECK(stack({a, a}).static_shape() == Shape{2, 2, 2});
  CHECK(array_equal(value(stack({a, a}, 2), values),
                    Array{{{0., 0.}, {1., 1.}}, {{2., 2.}, {3., 3.}}}.astype(DType::float64)));
  CHECK(concatenate({input(DType::int8, {2}), input(DType::float32, {3})}).dtype() ==
        DType::float32);
  CHECK_THROWS_WITH(concatenate({a, floats({3, 3})}, 1), Contains("differ along axis 0"));
  CHECK_THROWS_WITH(concatenate({a, floats({2})}), Contains("2 and 1 axes"));
  CHECK_THROWS_WITH(concatenate({floats({}), floats({})}), Contains("use stack"));
  CHECK_THROWS_WITH(concatenate(std::vector<Variable>{}), Contains("at least one"));
  CHECK(stack({floats({}), 1}).static_shape() == Shape{2});
}

TEST_CASE("tile and repeat", "[ops][shape]") {
  const Variable x = input(DType::int64, {kAnyDim, 2});
  const Values values{{x, Array{{1, 2}, {3, 4}}}};
  CHECK(array_equal(value(tile(x, 2, 1), values), Array{{1, 2, 1, 2}, {3, 4, 3, 4}}));
  CHECK(array_equal(value(repeat(x, 2, 1), values), Array{{1, 1, 2, 2}, {3, 3, 4, 4}}));
  CHECK(array_equal(value(repeat(x, 2, 0), values), Array{{1, 2}, {1, 2}, {3, 4}, {3, 4}}));
  CHECK(value(tile(x, 0), values).shape() == Shape{2, 0});
  CHECK_THROWS_WITH(tile(x, -1), Contains("[tile]"));
}

TEST_CASE("arange and what is made of positions", "[ops][shape]") {
  CHECK(array_equal(value(arange(4)), Array{0, 1, 2, 3}));
  CHECK(array_equal(value(arange(5, 0, -2)), Array{5, 3, 1}));
  CHECK(value(arange(3, 1)).shape() == Shape{0});
  CHECK(array_equal(value(arange(0., 1., 0.25)), Array{0., 0.25, 0.5, 0.75}));
  CHECK(arange(3, DType::float64).dtype() == DType::float64);
  const Variable x = floats({kAnyDim});
  const Values values{{x, counting({7})}};
  CHECK(array_equal(value(arange(x.shape(0)), values), Array{0, 1, 2, 3, 4, 5, 6}));
  CHECK(array_equal(value(arange(1, x.shape(0), 3), values), Array{1, 4}));
  CHECK(array_equal(value(arange(x.shape(0), 1, -3), values), Array{7, 4}));
  CHECK(array_equal(value(iota_like(floats({2, 2}), 1)), Array{{0, 1}, {0, 1}}));
  CHECK(array_equal(value(eye(2)), Array{{1., 0.}, {0., 1.}}));
  CHECK(array_equal(value(one_hot(Array{2, 0}, 3, DType::int64)), Array{{0, 0, 1}, {1, 0, 0}}));
  CHECK_THROWS_WITH(arange(0, 3, 0), Contains("must not be 0"));
  CHECK_THROWS_WITH(arange(0, x.shape(0), 0.5), Contains("[arange]") && Contains("integers"));
  CHECK_THROWS_WITH(arange(floats({2})), Contains("must be scalars"));
}

TEST_CASE("transfer names a context, and its gradient goes back", "[ops][shape]") {
  const Variable x = floats({2});
  const Variable there = x.transfer("dev1");
  CHECK(there.context() == "dev1");
  CHECK(there.transfer("dev1").same(there));
  const Variable back = there.transfer("dev0");
  const Variable g = floats({2}, "g").transfer("dev0");
  const Variable grads[] = {g};
  CHECK(back.node()->op->grad({*back.node(), grads, {}})[0].context() == "dev1");
  CHECK_THROWS_WITH(x.transfer(""), Contains("[transfer]"));
}
