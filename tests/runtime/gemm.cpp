#include "runtime/cpu/gemm.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "croton/array.h"
#include "runtime/cpu/cpu_device.h"

using namespace croton;

namespace {

struct Case {
  DType dtype = DType::float32;
  std::vector<std::int64_t> a_lead, b_lead, out_lead;
  std::int64_t m = 0, n = 0, k = 0;
  bool ta = false, tb = false;
  double alpha = 1, beta = 0;
  std::string epilogue = {};
};

Shape shape_of(std::vector<std::int64_t> lead, std::int64_t rows, std::int64_t columns) {
  lead.push_back(rows);
  lead.push_back(columns);
  return Shape(lead);
}

/// Values that are exact in every dtype.
Array small_integers(const Shape& shape, DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> v(static_cast<std::size_t>(shape.numel()));
  const bool positive = !is_signed(dtype);
  for (double& x : v) x = static_cast<double>(random() % 5) - (positive ? 0 : 2);
  return Array::from<double>(v, shape).astype(dtype);
}

struct Operands {
  Array out, a, b, c, bias;
  std::vector<OperandType> types;
  std::vector<void*> pointers;
  Attrs attrs;
};

Operands operands_of(const Case& t) {
  Operands o;
  o.a = small_integers(t.ta ? shape_of(t.a_lead, t.k, t.m) : shape_of(t.a_lead, t.m, t.k), t.dtype,
                       1);
  o.b = small_integers(t.tb ? shape_of(t.b_lead, t.n, t.k) : shape_of(t.b_lead, t.k, t.n), t.dtype,
                       2);
  // Not zeros, so that what is not written shows.
  o.out = Array::ones(shape_of(t.out_lead, t.m, t.n), t.dtype);
  std::vector<Array> all = {o.out, o.a, o.b};
  if (t.beta != 0) all.push_back(o.c = small_integers(o.out.shape(), t.dtype, 3));
  if (t.epilogue.starts_with("bias")) all.push_back(o.bias = small_integers({t.n}, t.dtype, 4));
  for (const Array& x : all) {
    o.types.push_back({x.dtype(), x.shape()});
    o.pointers.push_back(const_cast<void*>(x.raw_data()));
  }
  o.attrs = {{"transpose_a", std::int64_t(t.ta)},
             {"transpose_b", std::int64_t(t.tb)},
             {"alpha", t.alpha},
             {"beta", t.beta},
             {"epilogue", t.epilogue}};
  return o;
}

void run(const Operands& o, int threads = 2) {
  REQUIRE(cpu::kGemm.unsupported(o.attrs, o.types) == "");
  const auto device = make_cpu_device(threads);
  const auto call = cpu::kGemm.prepare(*device, o.attrs, o.types);
  std::vector<float> workspace(call->workspace() / 4 + 16);
  auto address = reinterpret_cast<std::uintptr_t>(workspace.data());
  call->run(o.pointers.data(), reinterpret_cast<void*>((address + 63) / 64 * 64), threads, nullptr);
}

/// Element (row, column) of the product of member `i`, by the definition.
std::vector<double> expected(const Case& t, const Operands& o) {
  const auto a = o.a.astype(DType::float64).to_vector<double>();
  const auto b = o.b.astype(DType::float64).to_vector<double>();
  std::vector<double> c, bias;
  if (t.beta != 0) c = o.c.astype(DType::float64).to_vector<double>();
  if (o.bias.has_value()) bias = o.bias.astype(DType::float64).to_vector<double>();
  std::vector<double> out;
  const std::size_t rank = t.out_lead.size();
  std::vector<std::int64_t> index(rank, 0);
  std::int64_t members = 1;
  for (const std::int64_t s : t.out_lead) members *= s;
  for (std::int64_t i = 0; i < members; ++i) {
    const auto offset = [&](const std::vector<std::int64_t>& lead) {
      std::int64_t at = 0;
      for (std::size_t d = 0; d < lead.size(); ++d) {
        const std::size_t axis = rank - lead.size() + d;
        at = at * lead[d] + (lead[d] == 1 ? 0 : index[axis]);
      }
      return at;
    };
    const std::int64_t a0 = offset(t.a_lead) * t.m * t.k, b0 = offset(t.b_lead) * t.k * t.n;
    for (std::int64_t r = 0; r < t.m; ++r) {
      for (std::int64_t col = 0; col < t.n; ++col) {
        double sum = 0;
        for (std::int64_t p = 0; p < t.k; ++p) {
          sum += a[std::size_t(a0 + (t.ta ? p * t.m + r : r * t.k + p))] *
                 b[std::size_t(b0 + (t.tb ? col * t.k + p : p * t.n + col))];
        }
        sum *= t.alpha;
        if (!c.empty()) sum += t.beta * c[out.size()];
        if (!bias.empty()) sum += bias[std::size_t(col)];
        if (t.epilogue.ends_with("relu")) sum = std::max(sum, 0.0);
        out.push_back(sum);
      }
    }
    for (std::size_t d = rank; d-- > 0;) {
      if (++index[d] < t.out_lead[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

void check(const Case& t) {
  const Operands o = operands_of(t);
  run(o);
  INFO("m " << t.m << " n " << t.n << " k " << t.k << " ta " << t.ta << " tb " << t.tb << " alpha "
            << t.alpha << " beta " << t.beta << " " << t.epilogue << " " << name_of(t.dtype));
  const std::vector<double> want = expected(t, o);
  const Array got = o.out.astype(DType::float64);
  const auto g = got.to_vector<double>();
  REQUIRE(g.size() == want.size());
  for (std::size_t i = 0; i < g.size(); ++i) REQUIRE(g[i] == want[i]);
}

}  // namespace

TEST_CASE("gemm agrees with its definition in every form") {
  const std::int64_t sizes[][3] = {{3, 4, 5}, {1, 7, 1}, {33, 17, 40}, {64, 64, 64}, {5, 200, 31}};
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (const auto& s : sizes) {
      for (int form = 0; form < 4; ++form) {
        for (const char* epilogue : {"", "bias", "relu", "bias_relu"}) {
          for (const auto& [alpha, beta] :
               {std::pair{1.0, 0.0}, {2.0, 0.0}, {1.0, 1.0}, {-0.5, 2.0}}) {
            check({dtype,
                   {},
                   {},
                   {},
                   s[0],
                   s[1],
                   s[2],
                   (form & 1) != 0,
                   (form & 2) != 0,
                   alpha,
                   beta,
                   epilogue});
          }
        }
      }
    }
  }
}

TEST_CASE("gemm has every dtype") {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::boolean) continue;
    check({dtype, {}, {}, {}, 9, 11, 7});
    check({dtype, {}, {}, {}, 40, 35, 6, true, true});
    check({dtype, {3}, {3}, {3}, 20, 21, 8, false, true});
  }
  Case t{DType::boolean, {}, {}, {}, 6, 5, 4};
  const Operands o = operands_of(t);
  run(o);
  const std::vector<double> want = expected(t, o);
  const auto got = o.out.to_vector<bool>();
  for (std::size_t i = 0; i < want.size(); ++i) CHECK(got[i] == (want[i] != 0));
}

TEST_CASE("integers wrap") {
  Case t{DType::int8, {}, {}, {}, 1, 1, 2};
  Operands o = operands_of(t);
  o.a.mutable_data<std::int8_t>()[0] = 100;
  o.a.mutable_data<std::int8_t>()[1] = 100;
  o.b.mutable_data<std::int8_t>()[0] = 1;
  o.b.mutable_data<std::int8_t>()[1] = 1;
  o.pointers[1] = o.a.mutable_data<std::int8_t>();
  o.pointers[2] = o.b.mutable_data<std::int8_t>();
  run(o);
  CHECK(o.out.item<std::int8_t>() == static_cast<std::int8_t>(200 - 256));
}

TEST_CASE("gemm works over batches, and broadcasts them") {
  for (const DType dtype : {DType::float32, DType::float64, DType::int32}) {
    check({dtype, {4}, {4}, {4}, 20, 30, 25});
    check({dtype, {4}, {}, {4}, 20, 30, 25});
    check({dtype, {}, {4}, {4}, 20, 30, 25, true, true});
    check({dtype, {1}, {4}, {4}, 20, 30, 25});
    check({dtype, {2, 1}, {1, 3}, {2, 3}, 18, 19, 20, false, true, 1, 1, "bias_relu"});
    check({dtype, {2, 3}, {3}, {2, 3}, 2, 3, 4});
    check({dtype, {0}, {0}, {0}, 2, 3, 4});
  }
}

TEST_CASE("empty products are zeros, or C") {
  for (const DType dtype : {DType::float32, DType::float64, DType::int64, DType::bfloat16}) {
    check({dtype, {}, {}, {}, 3, 4, 0});
    check({dtype, {}, {}, {}, 0, 4, 3});
    check({dtype, {}, {}, {}, 4, 0, 3});
    check({dtype, {}, {}, {}, 3, 4, 0, false, false, 1, 2, "bias_relu"});
  }
}

TEST_CASE("NaN and infinity go through products") {
  for (const std::int64_t n : {4, 64}) {
    for (const char* epilogue : {"", "relu", "bias_relu"}) {
      for (const DType dtype : {DType::float32, DType::float64}) {
        Case t{dtype, {}, {}, {}, n, n, n, false, false, 1, 0, epilogue};
        Operands o = operands_of(t);
        // What lies in the output before the call is not read.
        if (dtype == DType::float32) {
          for (float& x : std::span(o.out.mutable_data<float>(), std::size_t(n * n))) x = NAN;
          o.a.mutable_data<float>()[0] = NAN;
          o.a.mutable_data<float>()[n] = INFINITY;
          for (float& x : std::span(o.b.mutable_data<float>(), std::size_t(n))) x = 1;
        } else {
          for (double& x : std::span(o.out.mutable_data<double>(), std::size_t(n * n))) x = NAN;
          o.a.mutable_data<double>()[0] = NAN;
          o.a.mutable_data<double>()[n] = INFINITY;
          for (double& x : std::span(o.b.mutable_data<double>(), std::size_t(n))) x = 1;
        }
        for (std::size_t i = 0; i < 3; ++i) {
          const Array& x = i == 0 ? o.out : i == 1 ? o.a : o.b;
          o.pointers[i] = const_cast<void*>(x.raw_data());
        }
        run(o);
        const Array got = o.out.astype(DType::float64);
        INFO(name_of(dtype) << " " << n << " " << epilogue);
        for (std::int64_t j = 0; j < n; ++j) {
          CHECK(std::isnan(got.at<double>({0, j})));
          CHECK(std::isinf(got.at<double>({1, j})));
          CHECK(std::isfinite(got.at<double>({2, j})));
        }
      }
    }
  }
}

TEST_CASE("operands that do not fit are refused") {
  Operands o = operands_of({DType::float32, {}, {}, {}, 3, 4, 5});
  o.types[1].shape = {3, 6};
  CHECK(cpu::kGemm.unsupported(o.attrs, o.types) ==
        "[gemm] shapes do not fit: (3, 4) from (3, 6) and (5, 4)");
  o = operands_of({DType::float32, {}, {}, {}, 3, 4, 5});
  o.attrs.set("epilogue", std::string("swish"));
  CHECK(cpu::kGemm.unsupported(o.attrs, o.types).starts_with("[gemm] unknown epilogue"));
}
