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

/// The product of two matrices, in double.
Array product_of(const Array& a, const Array& b) {
  const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  const auto x = a.to_host().astype(DType::float64).to_vector<double>();
  const auto y = b.to_host().astype(DType::float64).to_vector<double>();
  std::vector<double> sums(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m * n; ++i) {
    double& sum = sums[static_cast<std::size_t>(i)];
    for (std::int64_t p = 0; p < k; ++p) {
      sum +=
          x[static_cast<std::size_t>(i / n * k + p)] * y[static_cast<std::size_t>(p * n + i % n)];
    }
  }
  return Array::from<double>(sums, {m, n}).astype(a.dtype());
}

/// The largest difference of two arrays of floats.
double distance(const Array& a, const Array& b) {
  const auto x = a.astype(DType::float64).to_vector<double>();
  const auto y = b.astype(DType::float64).to_vector<double>();
  REQUIRE(x.size() == y.size());
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(x[i] - y[i]));
  return most;
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

TEST_CASE("relu over a product keeps NaN, and takes what is below zero", "[products]") {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
    INFO(name_of(dtype));
    const Array a = Array::from<double>({1, nan, -2, inf, -inf, 3}, {6, 1}).astype(dtype);
    const Array b = Array::from<double>({1, -1, 0}, {1, 3}).astype(dtype);
    const Array bias = Array::from<double>({0.5, 0.5, nan}, {3}).astype(dtype);
    const std::vector<Array> out =
        outputs_on("dev0", {a, b, bias}, [](const std::vector<Variable>& v) {
          return std::vector<Variable>{relu(dot(v[0], v[1])), relu(dot(v[0], v[1]) + v[2])};
        });
    const auto want = [&](const std::vector<double>& values) {
      return Array::from<double>(values, {6, 3}).astype(dtype);
    };
    check_close(out[0], want({1, 0, 0, nan, nan, nan, 0, 2, 0, inf, 0, nan, 0, inf, nan, 3, 0, 0}),
                1e-9);
    check_close(
        out[1],
        want({1.5, 0, nan, nan, nan, nan, 0, 2.5, nan, inf, 0, nan, 0, inf, nan, 3.5, 0, nan}),
        1e-9);
  }
}

TEST_CASE("products without terms are zeros, with what is added", "[products]") {
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                            DType::int8, DType::int64, DType::uint16}) {
    INFO(name_of(dtype));
    const Array none = Array::zeros({5, 0}).astype(dtype),
                nothing = Array::zeros({0, 3}).astype(dtype);
    const Array bias = Array({3.0, 0.0, 7.0}).astype(dtype);
    const Array c = Array::full({5, 3}, 2.0f).astype(dtype);
    const std::vector<Array> out =
        outputs_on("dev0", {none, nothing, bias, c}, [](const std::vector<Variable>& v) {
          const Variable p = dot(v[0], v[1]);
          return std::vector<Variable>{p, p + v[2], relu(p + v[2]), relu(p - v[2]), p + v[3]};
        });
    const auto rows = [&](const std::vector<double>& row) {
      std::vector<double> all;
      for (int i = 0; i < 5; ++i) all.insert(all.end(), row.begin(), row.end());
      return Array::from<double>(all, {5, 3}).astype(dtype);
    };
    check_close(out[0], rows({0, 0, 0}), 1e-9);
    check_close(out[1], rows({3, 0, 7}), 1e-9);
    check_close(out[2], rows({3, 0, 7}), 1e-9);
    if (dtype != DType::uint16) check_close(out[3], rows({0, 0, 0}), 1e-9);
    check_close(out[4], rows({2, 2, 2}), 1e-9);
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
  const Array ab = product_of(a, b), ba = product_of(b, a);
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
  const Array values = floats({64, 64}, DType::float32, 1, false);
  const Array wanted = product_of(values, values);
  Shared a = shared(values, {.target = "dev0"});
  const Config allowed = current_config().with("allow_tf32", "on");
  check_close(function({}, dot(a, a))()[0], wanted, 1e-5);
  const Array rounded = function({}, dot(a, a), {.config = allowed})()[0];
  check_close(rounded, wanted, 2e-2);
  // Factors of 10 bits: sums of 64 terms are further off than any of 23 bits.
  CHECK(distance(rounded, wanted) > 1e-4);
}

TEST_CASE("a view that is not aligned as memory from the pool is", "[products]") {
  Variable x = matrix("x");
  const Array weights = floats({8, 8}, DType::float32, 2, false);
  Shared w = shared(weights, {.target = "dev0"});
  Variable y = dot(x, w);
  Function f = function({x}, y);
  Variable u, v;
  {
    ContextScope on("dev0");
    u = matrix("u");
    v = u * 2;
  }
  Function kept = function({u}, v, {.keep_on_device = true});
  const Array values = floats({9, 8}, DType::float32, 5, false);
  const Array there = kept(values)[0], twice = there.to_host();
  CHECK(there.context() == "dev0");
  const Array part = there.slice(0, 1, std::nullopt);
  check_close(f(part)[0], product_of(twice.slice(0, 1, std::nullopt), weights), 1e-5);
}

TEST_CASE("a view that begins at an odd place is copied on its device", "[products]") {
  Variable x, y, z;
  {
    ContextScope on("dev0");
    x = vector("x");
    y = x * 2 + 1;
    z = x * 2;
  }
  Function f = function({x}, y), kept = function({x}, z, {.keep_on_device = true});
  const std::int64_t n = 4097;
  const Array there = kept(Array::arange(n).astype(DType::float32))[0];
  CHECK(there.context() == "dev0");
  for (const std::int64_t begin : {1, 2, 4, 3}) {
    const auto out = f(there.slice(0, begin, n - 4 + begin))[0].to_vector<float>();
    REQUIRE(out.size() == static_cast<std::size_t>(n - 4));
    int wrong = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      wrong += out[i] != 4 * static_cast<float>(i + static_cast<std::size_t>(begin)) + 1;
    }
    CHECK(wrong == 0);
  }
}
