// Loops ops compiled for sizes at which schedules change: nothing, one, more than a vector, more
// than a block.
#include <random>

#include "croton/function.h"
#include "croton/indexing.h"
#include "croton/linalg.h"
#include "croton/math.h"
#include "croton/reduce.h"
#include "croton/tensor.h"
#include "tests/ops/graph_values.h"

using namespace croton;
using namespace croton::test;

namespace {

void check_called(const std::vector<Variable>& inputs, const Variable& y,
                  const std::vector<Array>& arguments) {
  Values values;
  for (std::size_t k = 0; k < inputs.size(); ++k) values[inputs[k]] = arguments[k];
  const Array expected = value(y, values);
  const Array result = function(inputs, y, {.on_unused = OnUnused::ignore}).call(arguments)[0];
  REQUIRE(result.dtype() == expected.dtype());
  REQUIRE(result.shape() == expected.shape());
  INFO("the result of " << y.node()->op->name);
  CHECK(array_equal(result, expected));
}

/// Small whole numbers, whose sums are exact in every order.
Array drawn(const Shape& shape, DType dtype, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::int64_t> values(static_cast<std::size_t>(shape.numel()));
  for (std::int64_t& v : values) v = std::uniform_int_distribution<int>(0, 9)(random);
  return Array::from<std::int64_t>(values, shape).astype(dtype);
}

Shape unknown(const Shape& shape) {
  return Shape(std::vector<std::int64_t>(shape.size(), kAnyDim));
}

}  // namespace

TEST_CASE("reductions of all sizes over all axes", "[ops][sizes]") {
  const Shape shapes[] = {{0},        {1},          {7},          {5000},
                          {300000},   {0, 3},       {3, 1},       {1, 3},
                          {1000, 37}, {3, 5000},    {5000, 3},    {1, 70000},
                          {70000, 1}, {130, 7, 65}, {2, 3000, 4}, {17, 16, 16}};
  const std::vector<std::vector<int>> lists[] = {
      {{0}}, {{0}, {1}, {0, 1}}, {{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}, {0, 1, 2}}};
  for (const Shape& shape : shapes) {
    for (const std::vector<int>& axes : lists[shape.size() - 1]) {
      const Array v = drawn(shape, DType::float32, 1);
      const bool known = axes.size() % 2 == 1;
      const Variable x = input(DType::float32, known ? shape : unknown(shape), "x");
      INFO(shape.to_string() << " over " << axes.size() << " axes from " << axes[0]
                             << (known ? ", known" : ", unknown"));
      check_called({x}, sum(x, axes), {v});
      check_called({x}, sum(x * 2 + 1, axes, {.keepdims = true}) - 3, {v});
      check_called({x}, any(gt(x, 8), axes), {v});
      check_called({x}, all(lt(x, 9), axes), {v});
      if (shape.numel() == 0) continue;
      check_called({x}, max(x, axes), {v});
      check_called({x}, x - min(x, axes, {.keepdims = true}), {v});
      if (axes.size() == 1) {
        check_called({x}, argmax(x, axes[0]), {v});
        check_called({x}, argmin(x, axes[0], true), {v});
      }
    }
  }
}

TEST_CASE("reductions in every dtype", "[ops][sizes]") {
  const DType dtypes[] = {DType::boolean, DType::int8,    DType::int16,    DType::int32,
                          DType::int64,   DType::uint8,   DType::uint16,   DType::uint32,
                          DType::uint64,  DType::float16, DType::bfloat16, DType::float64};
  for (const DType dtype : dtypes) {
    const Variable x = input(dtype, {kAnyDim, kAnyDim}, "x");
    const Array v = drawn({13, 29}, dtype, 2);
    INFO(name_of(dtype));
    for (const int axis : {0, 1}) {
      if (dtype != DType::bfloat16) check_called({x}, sum(x, axis), {v});
      check_called({x}, max(x, axis), {v});
      check_called({x}, min(x, axis), {v});
      check_called({x}, argmax(x, axis), {v});
      check_called({x}, any(x, axis), {v});
      check_called({x}, all(x, axis), {v});
    }
  }
}

TEST_CASE("what fits 32 bits is folded in 64", "[ops][sizes]") {
  for (const Shape& shape : {Shape{5}, Shape{1024}, Shape{3, 64}}) {
    const Variable truth = input(DType::boolean, shape, "b");
    const Array some = drawn(shape, DType::int64, 4).astype(DType::boolean);
    const Variable counts = truth.astype(DType::int64);
    for (const Variable& y : {argmin(counts, 0), argmax(counts, 0), max(counts, 0), min(counts, 0),
                              sum(counts, 0), prod(counts + 1, 0)}) {
      check_called({truth}, y, {some});
    }
    const Variable x = input(DType::int32, shape, "x");
    const Array large = Array::full(shape, 2'000'000'000, DType::int32);
    const int last = static_cast<int>(shape.size()) - 1;
    check_called({x}, sum(x, last), {large});
    check_called({x}, sum(x.astype(DType::int64) * 2 + 7, last), {large});
  }
}

TEST_CASE("arrays without elements", "[ops][sizes]") {
  const Variable x = input(DType::float32, {kAnyDim, kAnyDim}, "x");
  const Variable i = input(DType::int64, {kAnyDim}, "i");
  const Array none_int = Array::zeros({0}, DType::int64);
  for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}, Shape{0, 0}}) {
    const Array v = Array::zeros(shape, DType::float32);
    INFO(shape.to_string());
    check_called({x}, x.T() + 1, {v});
    check_called({x}, x(Slice(none, none, -1), Slice(1, none)), {v});
    check_called({x}, x.flatten(), {v});
    check_called({x}, concatenate({x, x}, 1), {v});
    check_called({x}, set_subtensor(x(Slice(0, 2)), 1), {v});
    check_called({x}, broadcast_to(x(newaxis), {Size(2), x.shape(0), x.shape(1)}), {v});
    check_called({x}, sum(x), {v});
    check_called({x}, dot(x, x.T()), {v});
    check_called({x}, dot(x, ones({x.shape(1)})), {v});
    check_called({x, i}, x(i), {v, none_int});
    check_called({x, i}, inc_subtensor(x(i), 1), {v, none_int});
    check_called({x, i}, x(Slice(), i), {v, none_int});
    check_called({x}, iota_like(x, 1), {v});
    check_called({x}, eye(x.shape(0)), {v});
  }
}

TEST_CASE("more operands than a kernel takes", "[ops][sizes]") {
  std::vector<Variable> inputs, parts;
  std::vector<Array> arguments;
  Variable total;
  for (int k = 0; k < 700; ++k) {
    inputs.push_back(input(DType::float32, {kAnyDim, 2}, "x"));
    arguments.push_back(Array::full({1 + k % 3, 2}, k % 10, DType::float32));
    parts.push_back(k % 2 == 0 ? inputs[k] : inputs[k] * 2);
    const Variable row = inputs[k](0);
    total = k == 0 ? row : total + row;
  }
  check_called(inputs, concatenate(parts, 0), arguments);
  check_called(inputs, total, arguments);
  for (Array& argument : arguments) argument = argument.slice(0, 0, 1).copy();
  check_called(inputs, stack(parts, 1), arguments);
}

TEST_CASE("index maps of all sizes", "[ops][sizes]") {
  const Shape shapes[] = {{1, 1, 1}, {2, 3, 4}, {33, 5, 17}, {3, 130, 70}, {40, 1, 900}};
  for (const Shape& shape : shapes) {
    for (const bool known : {true, false}) {
      const Variable x = input(DType::float32, known ? shape : unknown(shape), "x");
      const Array v = drawn(shape, DType::float32, 3);
      INFO(shape.to_string() << (known ? ", known" : ", unknown"));
      check_called({x}, transpose(x, {2, 0, 1}), {v});
      check_called({x}, transpose(x, {0, 2, 1}) * 2, {v});
      check_called({x}, x.T(), {v});
      check_called({x}, x(Slice(none, none, -2), ellipsis, Slice(0, none, 3)), {v});
      check_called({x}, x(ellipsis, -1) + x(ellipsis, 0), {v});
      check_called({x}, reshape(transpose(x, {1, 0, 2}), {-1}), {v});
      check_called({x}, reshape(x * 2, {x.shape(2), Size(-1)}) + 1, {v});
      check_called({x}, concatenate({x, x * 2, x}, 1), {v});
      check_called({x}, stack({x, x + 1}, -1), {v});
      check_called({x}, repeat(x, 3, 1), {v});
      check_called({x}, set_subtensor(x(Slice(none, none, 2)), x(0)), {v});
      check_called({x}, inc_subtensor(x(ellipsis, Slice(1, none)), 5), {v});
      check_called({x}, x({0, -1, 0}) * 2, {v});
      check_called({x}, take(x, Array{{0, -1}}, 2), {v});
      check_called({x}, take_along_axis(x, argmax(x, 1, true), 1), {v});
      check_called({x}, set_subtensor(x({0, -1}, Slice(), {-1, 0}), 7), {v});
    }
  }
}
