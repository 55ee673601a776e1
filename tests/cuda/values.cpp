// Families of ops on a GPU against the CPU. Runs with contexts=dev0->cuda0;dev1->cuda1;host->cpu.
#include <algorithm>

#include "tests/cuda/both.h"

using namespace croton;
using namespace croton::test;

TEST_CASE("elementwise ops give the same bits as on the CPU", "[values]") {
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
    INFO(name_of(dtype));
    check_on_both({floats({1000}, dtype), floats({1000}, dtype, 2)},
                  [](const std::vector<Variable>& v) -> std::vector<Variable> {
                    const Variable &a = v[0], &b = v[1];
                    return {a + b * a,
                            a / b,
                            exp(a),
                            log(abs(a)),
                            tanh(a),
                            erf(a),
                            sin(a) * cos(b),
                            sqrt(abs(a)),
                            maximum(a, b),
                            floor(a),
                            sigmoid(a),
                            log1p(abs(a)),
                            where(lt(a, b), a, b),
                            mod(a, b),
                            relu(a),
                            cast(a, DType::int32),
                            lt(a, b),
                            isnan(a)};
                  });
  }
}

TEST_CASE("integers wrap and divide as on the CPU", "[values]") {
  for (const DType dtype : {DType::int8, DType::int16, DType::int32, DType::int64, DType::uint8,
                            DType::uint32, DType::uint64}) {
    INFO(name_of(dtype));
    const bool negative = is_signed(dtype);
    check_on_both({integers({333}, dtype, negative ? -100 : 0, 120),
                   integers({333}, dtype, negative ? -3 : 0, 4)},
                  [](const std::vector<Variable>& v) -> std::vector<Variable> {
                    const Variable &a = v[0], &b = v[1];
                    return {a + b,
                            a * a,
                            a - b,
                            floor_divide(a, b),
                            mod(a, b),
                            bitwise_and(a, b),
                            maximum(a, b),
                            a / b,
                            cast(a, DType::float32)};
                  });
  }
}

TEST_CASE("shapes, broadcasts, transposes and slices", "[values]") {
  check_on_both({floats({17, 33}, DType::float32), floats({33}, DType::float32, 2, false),
                 floats({4, 5, 6}, DType::float64)},
                [](const std::vector<Variable>& v) -> std::vector<Variable> {
                  const Variable &a = v[0], &b = v[1], &c = v[2];
                  return {a + b,
                          transpose(a) * 2,
                          dimshuffle(c, {2, 0, 1}) + 1,
                          a(Slice(1, none, 3), Slice(none, none, -1)) + 0,
                          reshape(c, {6, 20}) * 3,
                          concatenate({a, a * 2}, 1),
                          stack({b, b + 1}),
                          broadcast_to(b, {3, 33}),
                          tile(a, 2, 1)};
                });
}

TEST_CASE("reductions agree within rounding, and exactly on integers", "[values]") {
  for (const Shape& shape : {Shape{5, 3}, Shape{64, 257}, Shape{3, 5000}, Shape{2000, 3}}) {
    INFO(shape.to_string());
    check_on_both(
        {random_uniform(shape, {.seed = 4})},
        [](const std::vector<Variable>& v) -> std::vector<Variable> {
          const Variable& a = v[0];
          return {sum(a), sum(a, 0), sum(a, 1), mean(a, 1), var(a, 0), logsumexp(a, 1)};
        },
        2e-6);
    check_on_both({integers(shape, DType::int32), floats(shape, DType::float32)},
                  [](const std::vector<Variable>& v) -> std::vector<Variable> {
                    const Variable &a = v[0], &b = v[1];
                    return {sum(a),          sum(a, 0),    sum(a, 1),    max(b, 0),
                            min(b, 1),       argmax(b, 1), argmin(b, 0), any(lt(b, 0), 1),
                            all(gt(a, -20)), max(a)};
                  });
  }
}

namespace {

/// Whole numbers of which all sums are exact.
std::vector<std::int64_t> whole_numbers(const Shape& shape) {
  std::vector<std::int64_t> v;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    v.push_back(i * 7 % 11 - 5 + (i % 997 == 500 ? 3 : 0));
  }
  return v;
}

/// Sums along an axis.
Array summed(const std::vector<std::int64_t>& v, const Shape& shape, std::size_t axis) {
  std::size_t outer = 1, inner = 1;
  Shape rest;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (k != axis) rest.push_back(shape[k]);
    if (k < axis) outer *= static_cast<std::size_t>(shape[k]);
    if (k > axis) inner *= static_cast<std::size_t>(shape[k]);
  }
  const auto length = static_cast<std::size_t>(shape[axis]);
  std::vector<std::int64_t> sums(outer * inner);
  for (std::size_t i = 0; i < v.size(); ++i) sums[i / (length * inner) * inner + i % inner] += v[i];
  return Array::from<std::int64_t>(sums, rest);
}

/// The outputs of what `build` makes of arguments whose sizes only the call tells.
std::vector<Array> outputs_of_call(const std::vector<Array>& values, const Build& build) {
  std::vector<Variable> inputs;
  for (const Array& value : values) {
    inputs.push_back(
        tensor("x", value.dtype(), Shape(std::vector<std::int64_t>(value.ndim(), -1))));
  }
  const ContextScope scope("dev0");
  Function f = function({inputs.begin(), inputs.end()}, build(inputs));
  const Outputs out = f.call(values);
  return {out.begin(), out.end()};
}

}  // namespace

TEST_CASE("reductions in several stages are exact on whole numbers", "[values]") {
  for (const Shape& shape :
       {Shape{70000}, Shape{3000, 40}, Shape{40, 3000}, Shape{2, 80, 100}, Shape{3, 5000, 7}}) {
    INFO(shape.to_string());
    const std::vector<std::int64_t> v = whole_numbers(shape);
    const auto last = static_cast<int>(shape.size()) - 1;
    const Build build = [&](const std::vector<Variable>& x) -> std::vector<Variable> {
      return {sum(x[0]), sum(x[0], 0), sum(x[0], last), max(x[0]), argmax(x[0])};
    };
    std::int64_t total = 0;
    for (const std::int64_t x : v) total += x;
    const auto largest = std::max_element(v.begin(), v.end());
    const Array wanted[] = {Array(total), summed(v, shape, 0), summed(v, shape, shape.size() - 1),
                            Array(*largest), Array(static_cast<std::int64_t>(largest - v.begin()))};
    for (const DType dtype : {DType::int32, DType::float32}) {
      INFO(name_of(dtype));
      const Array x = Array::from<std::int64_t>(v, shape).astype(dtype);
      for (const bool known : {true, false}) {
        INFO((known ? "sizes that are known" : "sizes that the call tells"));
        const std::vector<Array> got =
            known ? outputs_on("dev0", {x}, build) : outputs_of_call({x}, build);
        REQUIRE(got.size() == std::size(wanted));
        for (std::size_t k = 0; k < got.size(); ++k) {
          INFO("output " << k);
          check_close(got[k].astype(DType::int64), wanted[k], 0);
        }
      }
    }
  }
}

TEST_CASE("rows of two axes against an operand along one of them", "[values]") {
  for (const Shape& shape : {Shape{2, 80, 100}, Shape{9, 5, 30}, Shape{2, 160, 100}}) {
    INFO(shape.to_string());
    const Array x = random_uniform(shape, {.seed = 7}), b = random_uniform({shape[2]}, {.seed = 8});
    const Build build = [](const std::vector<Variable>& v) -> std::vector<Variable> {
      return {var(v[0] + v[1], {1, 2}), softmax(v[0] + v[1], -1)};
    };
    check_on_both({x, b}, build, 4e-6);
    const std::vector<Array> got = outputs_of_call({x, b}, build);
    const std::vector<Array> wanted = on_host([&] { return outputs_on("host", {x, b}, build); });
    for (std::size_t k = 0; k < got.size(); ++k) check_close(got[k], wanted[k], 4e-6);
  }
}

TEST_CASE("softmax, layer norm and cross-entropy", "[values]") {
  check_on_both(
      {floats({37, 200}, DType::float32, 5, false), floats({200}, DType::float32, 6, false),
       integers({37}, DType::int64, 0, 200)},
      [](const std::vector<Variable>& v) -> std::vector<Variable> {
        const Variable &a = v[0], &g = v[1], &labels = v[2];
        return {softmax(a, 1), log_softmax(a, 1), layer_norm(a, g, g),
                mean(cross_entropy_from_logits(a, labels)), softmax(a, 0)};
      },
      4e-6);
}

TEST_CASE("scattered values are added in their order", "[deterministic]") {
  REQUIRE(current_config().deterministic());
  const Array rows = integers({1000}, DType::int64, 0, 7);
  const Array added = random_normal({1000, 3}, {.seed = 5});
  const ContextScope on("dev0");
  Variable table = matrix("table"), i = vector("i", DType::int64), v = matrix("v");
  const Function f = function({table, i, v}, inc_subtensor(table(i), v));
  const std::vector<float> got = f(Array::zeros({7, 3}), rows, added)[0].to_vector<float>();
  std::vector<float> wanted(21);
  const std::vector<std::int64_t> row = rows.to_vector<std::int64_t>();
  const std::vector<float> value = added.to_vector<float>();
  for (std::size_t k = 0; k < value.size(); ++k) {
    wanted[static_cast<std::size_t>(3 * row[k / 3]) + k % 3] += value[k];
  }
  CHECK(got == wanted);
}

TEST_CASE("gathers and scatters", "[values]") {
  check_on_both(
      {floats({20, 7}, DType::float32), integers({50}, DType::int64, 0, 20),
       integers({50, 7}, DType::float32)},
      [](const std::vector<Variable>& v) -> std::vector<Variable> {
        const Variable &a = v[0], &i = v[1], &b = v[2];
        return {take(a, i, 0), a(i) * 2, inc_subtensor(a(i), b),
                set_subtensor(a(Slice(2, 5)), b(Slice(0, 3)))};
      },
      1e-6);
}

TEST_CASE("random numbers are those of the CPU, bit for bit", "[values]") {
  check_on_both({Array::zeros({}, DType::int64)},
                [](const std::vector<Variable>& v) -> std::vector<Variable> {
                  return {philox_uniform(v[0], {300}), philox_normal(v[0] + 7, {3, 50})};
                });
}

TEST_CASE("sizes of nothing launch nothing", "[values]") {
  check_on_both(
      {Array::zeros({0, 5}), Array::zeros({3, 0})},
      [](const std::vector<Variable>& v) -> std::vector<Variable> {
        return {v[0] + 1, sum(v[0], 0), exp(v[1]), sum(v[1]), concatenate({v[0], v[0]}, 0)};
      });
}

TEST_CASE("products of integers, and without terms", "[values][products]") {
  for (const DType dtype : {DType::int32, DType::int64, DType::uint8}) {
    INFO(name_of(dtype));
    check_on_both({integers({9, 20}, dtype, 0, 3), integers({20, 11}, dtype, 0, 3)},
                  [](const std::vector<Variable>& v) -> std::vector<Variable> {
                    return {dot(v[0], v[1]), dot(transpose(v[1]), transpose(v[0]))};
                  });
  }
  check_on_both({Array::zeros({4, 0}), Array::zeros({0, 5}), floats({5}, DType::float32, 1, false)},
                [](const std::vector<Variable>& v) -> std::vector<Variable> {
                  return {dot(v[0], v[1]), relu(dot(v[0], v[1]) + v[2])};
                });
}
