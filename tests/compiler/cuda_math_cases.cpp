#include "compiler/kernel/math.h"
#include "tests/compiler/cuda_kernels.h"

namespace croton::test {
namespace {

using kernel::Builder;
using kernel::Expr;

// Every mathematical function of one operand, result k at elements k * n and on; then those of two,
// on x and its mirror.
KernelCase functions_case(DType t) {
  using Function = Expr (*)(Expr);
  constexpr Function kFunctions[] = {
      kernel::exp,    kernel::exp2,    kernel::expm1,   kernel::log,     kernel::log2,
      kernel::log10,  kernel::log1p,   kernel::sin,     kernel::cos,     kernel::tan,
      kernel::arcsin, kernel::arccos,  kernel::arctan,  kernel::sinh,    kernel::cosh,
      kernel::tanh,   kernel::arcsinh, kernel::arccosh, kernel::arctanh, kernel::erf,
      kernel::erfc,   kernel::sigmoid, kernel::softplus};
  Builder b(64);
  const int in = b.buffer(t, false), out = b.buffer(t, true), nan = b.buffer(DType::boolean, true);
  const Expr n = b.size(0);
  const Expr lanes = b.begin_lanes(n);
  const Expr x = b.load(in, b.i64(0), b.i64(1)), y = b.load(in, n - 1, b.i64(-1));
  std::int64_t count = 0;
  const auto keep = [&](Expr result) { b.store(out, n * b.i64(count++), b.i64(1), result); };
  for (const Function function : kFunctions) keep(function(x));
  keep(kernel::pow(x, y));
  keep(kernel::arctan2(x, y));
  b.store(nan, b.i64(0), b.i64(1), kernel::is_nan(x));
  b.end(lanes);
  const auto edges = edge_values(t);
  const auto elements = static_cast<std::int64_t>(edges.size());
  std::string label = "functions ";
  return {label.append(name_of(t)),
          b.finish(),
          {{1,
            {elements},
            {packed(t, edges), untouched(t, edges.size() * static_cast<std::size_t>(count)),
             untouched(DType::boolean, edges.size())}}}};
}

// The longer functions, in groups that compile side by side.
using Group = std::vector<Expr> (*)(Expr x, Expr y);
std::vector<Expr> of_errors(Expr x, Expr y) {
  return {kernel::erfcx(x),    kernel::erfinv(x),       kernel::erfcinv(x),
          kernel::cbrt(x),     kernel::hypot(x, y),     kernel::logaddexp(x, y),
          kernel::log1mexp(x), kernel::logaddexp2(x, y)};
}
std::vector<Expr> of_gamma(Expr x, Expr y) {
  return {kernel::gamma(x),        kernel::gammaln(x),      kernel::digamma(x),
          kernel::polygamma(1, x), kernel::polygamma(2, x), kernel::betaln(x, y)};
}
std::vector<Expr> of_bessel(Expr x, Expr) {
  return {kernel::i0(x), kernel::i1(x), kernel::i0e(x), kernel::i1e(x),
          kernel::j0(x), kernel::j1(x), kernel::y0(x),  kernel::y1(x)};
}
std::vector<Expr> incomplete(Expr x, Expr y) {
  return {kernel::gammainc(x, y), kernel::gammaincc(x, y), kernel::betainc(x, y, x)};
}

KernelCase special_case(DType t, const char* name, Group group) {
  Builder b(64);
  const int in = b.buffer(t, false), out = b.buffer(t, true);
  const Expr n = b.size(0);
  const Expr lanes = b.begin_lanes(n);
  const Expr x = b.load(in, b.i64(0), b.i64(1)), y = b.load(in, n - 1, b.i64(-1));
  std::int64_t count = 0;
  for (const Expr result : group(x, y)) b.store(out, n * b.i64(count++), b.i64(1), result);
  b.end(lanes);
  const auto edges = edge_values(t);
  const auto elements = static_cast<std::int64_t>(edges.size());
  return {std::string(name) + " " + std::string(name_of(t)),
          b.finish(),
          {{1,
            {elements},
            {packed(t, edges), untouched(t, edges.size() * static_cast<std::size_t>(count))}}}};
}

KernelCase philox_case() {
  Builder b(32);
  const int out = b.buffer(DType::uint32, true);
  const Expr n = b.size(0);
  const Expr lanes = b.begin_lanes(n);
  const auto key = b.integer(DType::uint64, 0x123456789abcdef),
             stream = b.integer(DType::uint64, 7);
  const kernel::PhiloxWords words = kernel::philox(key, stream, b.cast(lanes, DType::uint64));
  for (int k = 0; k < 4; ++k) b.store(out, n * k, b.i64(1), words.word[k]);
  b.end(lanes);
  return {"philox", b.finish(), {{1, {100}, {untouched(DType::uint32, 400)}}}};
}

}  // namespace

std::vector<KernelCase> math_cases() {
  std::vector<KernelCase> cases;
  cases.push_back(functions_case(DType::float32));
  cases.push_back(functions_case(DType::float64));
  for (const DType t : {DType::float32, DType::float64}) {
    cases.push_back(special_case(t, "error functions and sums", of_errors));
    cases.push_back(special_case(t, "gamma functions", of_gamma));
    cases.push_back(special_case(t, "Bessel functions", of_bessel));
    cases.push_back(special_case(t, "incomplete functions", incomplete));
  }
  cases.push_back(philox_case());
  return cases;
}

}  // namespace croton::test
