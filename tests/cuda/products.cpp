// Products of matrices by cuBLASLt against those of the CPU.
#include "tests/cuda/both.h"

using namespace croton;
using namespace croton::test;

namespace {

double bound(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return 1e-13;
    case DType::float16:
      return 2e-3;
    case DType::bfloat16:
      return 2e-2;
    default:
      return 1e-5;
  }
}

}  // namespace

TEST_CASE("products of floats, transposed and scaled", "[products]") {
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
    INFO(name_of(dtype));
    check_on_both(
        {floats({33, 20}, dtype, 1, false), floats({20, 17}, dtype, 2, false),
         floats({33, 17}, dtype, 3, false), floats({17}, dtype, 4, false)},
        [](const std::vector<Variable>& v) -> std::vector<Variable> {
          const Variable &a = v[0], &b = v[1], &c = v[2], &bias = v[3];
          return {dot(a, b),
                  dot(transpose(b), transpose(a)),
                  dot(transpose(a), c),
                  dot(c, transpose(b)),
                  2.0f * dot(a, b) + c,
                  dot(a, b) + bias,
                  relu(dot(a, b) + bias),
                  relu(dot(a, b))};
        },
        bound(dtype));
  }
}

TEST_CASE("batches of products, broadcast and not", "[products]") {
  check_on_both(
      {floats({3, 4, 5, 6}, DType::float32, 1, false), floats({4, 6, 7}, DType::float32, 2, false),
       floats({3, 1, 6, 7}, DType::float32, 3, false), floats({6, 7}, DType::float32, 4, false)},
      [](const std::vector<Variable>& v) -> std::vector<Variable> {
        return {matmul(v[0], v[1]), matmul(v[0], v[2]), matmul(v[0], v[3]),
                matmul(transpose(v[3]), swapaxes(v[0], 2, 3))};
      },
      1e-5);
}

TEST_CASE("products of vectors and of one row or column", "[products]") {
  check_on_both(
      {floats({64}, DType::float32, 1, false), floats({64, 5}, DType::float32, 2, false),
       floats({1, 64}, DType::float32, 3, false), floats({64, 1}, DType::float32, 4, false)},
      [](const std::vector<Variable>& v) -> std::vector<Variable> {
        return {dot(v[0], v[0]), dot(v[0], v[1]), dot(v[2], v[1]), dot(v[3], v[2]),
                outer(v[0], v[0])};
      },
      1e-5);
}

TEST_CASE("the two products of two contexts", "[products]") {
  const Array a = random_uniform({96, 96}, {.seed = 1}), b = random_uniform({96, 96}, {.seed = 2});
  auto v01 = shared(a, {.target = "dev0"});
  auto v02 = shared(b, {.target = "dev0"});
  auto v11 = shared(b, {.target = "dev1"});
  auto v12 = shared(a, {.target = "dev1"});
  auto f = function({}, {dot(v01, v02), dot(v11, v12)});
  Variable x = matrix("x"), y = matrix("y");
  const Array ab = function({x, y}, dot(x, y))(a, b)[0], ba = function({x, y}, dot(x, y))(b, a)[0];
  for (int i = 0; i < 3; ++i) {
    const Outputs out = f();
    check_close(out[0], ab, 1e-5);
    check_close(out[1], ba, 1e-5);
  }
}

TEST_CASE("a network of two layers trains as on the CPU", "[products]") {
  const Array xs = random_normal({48, 12}, {.seed = 1});
  const Array ys = integers({48}, DType::int64, 0, 4);
  const auto train = [&](const char* where) {
    ContextScope on(where);
    Variable x = matrix("x"), y = vector("y", DType::int64);
    Shared w1 = shared(random_normal({12, 24}, {.seed = 3}));
    Shared b1 = shared(Array::zeros({24}));
    Shared w2 = shared(random_normal({24, 4}, {.seed = 4}));
    Variable h = relu(dot(x, w1) + b1);
    Variable cost = mean(cross_entropy_from_logits(dot(h, w2), y));
    const std::vector<Variable> g = grad(cost, {w1, b1, w2});
    Function f = function(
        {x, y}, cost,
        {.updates = {{w1, w1 - 0.05f * g[0]}, {b1, b1 - 0.05f * g[1]}, {w2, w2 - 0.05f * g[2]}}});
    std::vector<float> costs;
    for (int i = 0; i < 15; ++i) costs.push_back(f(xs, ys)[0].item<float>());
    CHECK(costs.back() < costs.front());
    return std::vector<Array>{Array::from<float>(costs), w1.get_value()};
  };
  const std::vector<Array> gpu = train("dev0"), cpu = on_host([&] { return train("host"); });
  for (std::int64_t i = 0; i < gpu[0].size(); ++i) {
    CHECK(gpu[0].at<float>({i}) == Approx(cpu[0].at<float>({i})).epsilon(1e-3));
  }
  check_close(gpu[1], cpu[1], 1e-3);
}

TEST_CASE("products with rounded factors only by the flag", "[products]") {
  Shared a = shared(floats({64, 64}, DType::float32, 1, false), {.target = "dev0"});
  const Config allowed = current_config().with("allow_tf32", "on");
  const Array exact = function({}, dot(a, a))()[0];
  const Array rounded = function({}, dot(a, a), {.config = allowed})()[0];
  check_close(rounded, exact, 2e-2);
}

TEST_CASE("a view that is not aligned as memory from the pool is", "[products]") {
  Variable x = matrix("x");
  Shared w = shared(floats({8, 8}, DType::float32, 2, false), {.target = "dev0"});
  Variable y = dot(x, w);
  Function f = function({x}, y);
  Variable u = matrix("u");
  {
    ContextScope on("dev0");
    u = matrix("u");
  }
  Function kept = function({u}, u.transfer("dev0") + 0, {.keep_on_device = true});
  const Array there = kept(floats({9, 8}, DType::float32, 5, false))[0];
  const Array part = there.slice(0, 1, std::nullopt);
  check_close(f(part)[0], f(part.to_host())[0], 1e-6);
}
