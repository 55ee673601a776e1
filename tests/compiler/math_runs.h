// Mathematical functions of kernels on lists of numbers, and how far results are off.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "compiler/kernel/math.h"
#include "tests/compiler/cuda_kernels.h"
#include "tests/compiler/kernel_interpreter.h"

namespace croton::test {

using Wide = long double;
using MathBody = std::function<kernel::Expr(std::span<const kernel::Expr>)>;

/// build(x...) for each row of the columns, interpreted.
template <class T>
std::vector<T> run_math(const MathBody& build, const std::vector<std::vector<T>>& columns) {
  kernel::Builder b;
  std::vector<int> in;
  for (std::size_t k = 0; k < columns.size(); ++k) in.push_back(b.buffer(dtype_of<T>, false));
  const int out = b.buffer(dtype_of<T>, true);
  const kernel::Expr zero = b.i64(0);
  const kernel::Expr one = b.i64(1);
  const kernel::Expr lanes = b.begin_lanes(b.size(0));
  std::vector<kernel::Expr> x;
  for (const int buffer : in) x.push_back(b.load(buffer, zero, one));
  b.store(out, zero, one, build(x));
  b.end(lanes);
  const kernel::Kernel kernel = b.finish();
  std::vector<Bytes> buffers;
  for (const std::vector<T>& column : columns) buffers.push_back(bytes_of(column));
  buffers.push_back(bytes_of(columns[0]));
  const std::int64_t size = static_cast<std::int64_t>(columns[0].size());
  std::int64_t error[3] = {};
  interpret(kernel, buffers, std::span(&size, 1), 1, error);
  return values_of<T>(buffers.back());
}

/// The same for two operands.
template <class T>
std::vector<T> run_math(kernel::Expr (*build)(kernel::Expr, kernel::Expr), const std::vector<T>& x,
                        const std::vector<T>& y) {
  return run_math<T>([build](std::span<const kernel::Expr> e) { return build(e[0], e[1]); },
                     {x, y});
}

/// The distance in units in the last place of the exact value's binade, or of that of `least` if
/// that is larger, subnormals included; huge where one is NaN, infinite, or a zero of the other
/// sign.
template <class T>
double error_in_ulp(T got, Wide exact, Wide least = 0) {
  using Limits = std::numeric_limits<T>;
  constexpr double kWrong = 1e9;
  if (std::isnan(exact) || std::isnan(got))
    return std::isnan(exact) == std::isnan(got) ? 0 : kWrong;
  const T rounded = static_cast<T>(exact);
  if (got == rounded) return got != 0 || std::signbit(got) == std::signbit(rounded) ? 0.5 : kWrong;
  const bool edge = std::fabs(got) == Limits::max() || std::fabs(rounded) == Limits::max();
  if (std::isinf(got) || std::isinf(rounded)) return edge ? 0.5 : kWrong;
  int exponent = 0;
  std::frexp(std::max(std::fabs(exact), least), &exponent);
  const int last = std::max(exponent - Limits::digits, Limits::min_exponent - Limits::digits);
  return static_cast<double>(std::ldexp(std::fabs(static_cast<Wide>(got) - exact), -last));
}

}  // namespace croton::test
