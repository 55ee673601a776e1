#include <cmath>
#include <limits>

#include "compiler/kernel/evaluate.h"
#include "tests/compiler/cuda_kernels.h"

namespace croton::test {
namespace {

using kernel::Binary;
using kernel::Builder;
using kernel::Expr;
using kernel::Unary;

constexpr DType kDTypes[] = {DType::boolean, DType::int8,    DType::int16,    DType::int32,
                             DType::int64,   DType::uint8,   DType::uint16,   DType::uint32,
                             DType::uint64,  DType::float16, DType::bfloat16, DType::float32,
                             DType::float64};

constexpr std::int64_t kChunk = 200;

bool computes_in_float(DType t) { return t == DType::float32 || t == DType::float64; }
bool has_arithmetic(DType t) { return is_integer(t) || computes_in_float(t); }

// A kernel over size 0 elements, kChunk a block: `body(i)` gets the position of the first element
// of the block; loads and stores in it take the counter as stride 1.
template <class Body>
void elementwise(Builder& b, Body&& body) {
  const Expr base = b.block() * b.i64(kChunk);
  const Expr rest = b.size(0) - base;
  const Expr lanes = b.begin_lanes(b.binary(Binary::min, rest, b.i64(kChunk)));
  body(base);
  b.end(lanes);
}

Launch launch_over(std::int64_t n, std::vector<Bytes> buffers) {
  return {(n + kChunk - 1) / kChunk, {n}, std::move(buffers)};
}

// All pairs of edge values.
std::pair<Bytes, Bytes> pairs(DType dtype) {
  const auto edges = edge_values(dtype);
  std::vector<std::uint64_t> left, right;
  for (const auto a : edges) {
    for (const auto b : edges) {
      left.push_back(a);
      right.push_back(b);
    }
  }
  return {packed(dtype, left), packed(dtype, right)};
}

std::vector<Unary> unaries(DType t) {
  if (is_bool(t)) return {Unary::logical_not};
  if (is_integer(t)) return {Unary::neg, Unary::abs};
  if (!computes_in_float(t)) return {};
  return {Unary::neg,  Unary::abs,   Unary::sqrt, Unary::floor,
          Unary::ceil, Unary::trunc, Unary::round};
}

std::vector<Binary> binaries(DType t) {
  if (is_bool(t)) {
    return {Binary::bit_and, Binary::bit_or, Binary::bit_xor, Binary::eq, Binary::ne};
  }
  if (!has_arithmetic(t)) return {};
  std::vector<Binary> list = {Binary::add, Binary::sub, Binary::mul, Binary::div,
                              Binary::rem, Binary::min, Binary::max, Binary::eq,
                              Binary::ne,  Binary::lt,  Binary::le};
  if (is_integer(t)) {
    list.insert(list.end(),
                {Binary::bit_and, Binary::bit_or, Binary::bit_xor, Binary::shl, Binary::shr});
  }
  if (t == DType::uint32) list.push_back(Binary::mul_hi);
  return list;
}

// Every operation of the dtype on a and b; result k goes to elements k * n and on.
KernelCase operations_case(DType t) {
  Builder b(64);
  const int a_buffer = b.buffer(t, false), b_buffer = b.buffer(t, false);
  const int out = b.buffer(t, true), truths = b.buffer(DType::boolean, true);
  int values = 0, comparisons = 0;
  elementwise(b, [&](Expr base) {
    const Expr x = b.load(a_buffer, base, b.i64(1)), y = b.load(b_buffer, base, b.i64(1));
    const auto keep = [&](Expr result) {
      const bool truth = result.dtype() == DType::boolean && t != DType::boolean;
      int& index = truth ? comparisons : values;
      b.store(truth ? truths : out, b.size(0) * b.i64(index++) + base, b.i64(1), result);
    };
    for (const Unary op : unaries(t)) keep(b.unary(op, x));
    for (const Binary op : binaries(t)) keep(b.binary(op, x, y));
    if (computes_in_float(t)) keep(b.fma(x, y, b.constant(t, -1.75)));
    if (is_integer(t)) {  // constants may take other ways
      for (const int c : {7, 1, 0, -1, -3}) {
        keep(b.binary(Binary::div, x, b.integer(t, c)));
        keep(b.binary(Binary::rem, x, b.integer(t, c)));
        keep(b.binary(Binary::shl, x, b.integer(t, c)));
        keep(b.binary(Binary::shr, x, b.integer(t, c)));
      }
    }
    const Expr condition = t == DType::boolean ? x : b.cast(x, DType::boolean);
    keep(b.select(condition, y, x));
  });
  auto [left, right] = pairs(t);
  const std::size_t n = left.size() / size_of(t);
  std::vector<Bytes> buffers = {
      left, right, untouched(t, n * static_cast<std::size_t>(values)),
      untouched(DType::boolean, n * static_cast<std::size_t>(comparisons))};
  return {"operations " + std::string(name_of(t)),
          b.finish(),
          {launch_over(static_cast<std::int64_t>(n), std::move(buffers))}};
}

// A dtype cast to every other, and its bits taken for those of every other of its size.
KernelCase casts_case(DType from) {
  Builder b(128);
  const int in = b.buffer(from, false);
  std::vector<int> cast, bits;
  std::vector<DType> same_size;
  for (const DType to : kDTypes) cast.push_back(b.buffer(to, true));
  for (const DType to : kDTypes) {
    if (is_bool(from) || is_bool(to) || size_of(to) != size_of(from)) continue;
    same_size.push_back(to);
    bits.push_back(b.buffer(to, true));
  }
  elementwise(b, [&](Expr base) {
    const Expr x = b.load(in, base, b.i64(1));
    for (std::size_t k = 0; k < cast.size(); ++k) {
      b.store(cast[k], base, b.i64(1), b.cast(x, kDTypes[k]));
    }
    for (std::size_t k = 0; k < bits.size(); ++k) {
      b.store(bits[k], base, b.i64(1), b.bitcast(x, same_size[k]));
    }
  });
  const auto edges = edge_values(from);
  std::vector<Bytes> buffers = {packed(from, edges)};
  for (const DType to : kDTypes) buffers.push_back(untouched(to, edges.size()));
  for (const DType to : same_size) buffers.push_back(untouched(to, edges.size()));
  return {"casts " + std::string(name_of(from)),
          b.finish(),
          {launch_over(static_cast<std::int64_t>(edges.size()), std::move(buffers))}};
}

// Constants of a dtype, stored.
KernelCase constants_case(DType t) {
  Builder b(32);
  const int out = b.buffer(t, true);
  const auto edges = edge_values(t);
  std::int64_t position = 0;
  for (const auto bits : edges) b.store(out, b.i64(position++), b.i64(0), b.bits(t, bits));
  return {
      "constants " + std::string(name_of(t)), b.finish(), {{1, {}, {untouched(t, edges.size())}}}};
}

KernelCase calls_case(DType t) {
  Builder b(32);
  const int in = b.buffer(t, false), out = b.buffer(t, true);
  const Expr n = b.size(0);
  elementwise(b, [&](Expr base) {
    const Expr x = b.load(in, base, b.i64(1));
    int k = 0;
    for (const char* name : {"lgamma", "tgamma", "cbrt"}) {
      b.store(out, n * b.i64(k++) + base, b.i64(1), b.call(name, x));
    }
    b.store(out, n * b.i64(k++) + base, b.i64(1), b.call("hypot", x, b.constant(t, 3.0)));
  });
  std::vector<std::uint64_t> bits;
  for (const double x : {0.25, 0.5, 1.0, 1.5, 2.25, 4.0, 7.5}) {
    bits.push_back(kernel::bits_of(t, x));
  }
  const Bytes values = packed(t, bits);
  return {"calls " + std::string(name_of(t)),
          b.finish(),
          {launch_over(static_cast<std::int64_t>(bits.size()),
                       {values, untouched(t, 4 * bits.size())})},
          false};
}

}  // namespace

std::vector<std::uint64_t> edge_values(DType dtype) {
  // Some of them are rounded wrongly to 16 bits by way of float32.
  const double inf = std::numeric_limits<double>::infinity();
  const double reals[] = {0.0,
                          -0.0,
                          1.0,
                          -1.0,
                          0.5,
                          1.5,
                          2.5,
                          -2.5,
                          3.0,
                          -7.25,
                          1e-3,
                          0.1,
                          100.0,
                          127.5,
                          -128.75,
                          255.5,
                          256.5,
                          1e-45,
                          1e-40,
                          6e-8,
                          65504.,
                          65519.,
                          65520.,
                          -32768.5,
                          16777217.,
                          2147483648.,
                          -2147483648.,
                          -2147483649.,
                          4294967296.,
                          4294967040.,
                          9.3e18,
                          1.8446744073709552e19,
                          3.3895e38,
                          3.4e38,
                          1e300,
                          -1e30,
                          inf,
                          -inf,
                          std::nan(""),
                          1.00390625,
                          1.00390625000001,
                          1.00048828125001,
                          1.01171875,
                          5e-324};
  const std::int64_t integers[] = {0,
                                   1,
                                   -1,
                                   2,
                                   -2,
                                   3,
                                   5,
                                   -7,
                                   7,
                                   8,
                                   15,
                                   16,
                                   31,
                                   32,
                                   33,
                                   63,
                                   64,
                                   65,
                                   100,
                                   127,
                                   128,
                                   -128,
                                   -129,
                                   255,
                                   256,
                                   32767,
                                   32768,
                                   -32768,
                                   65535,
                                   65536,
                                   16777217,
                                   16777219,
                                   INT32_MAX,
                                   INT32_MIN,
                                   0xffffffff,
                                   4311744513,
                                   1077936129,
                                   4629700416936869889,
                                   INT64_MAX,
                                   INT64_MIN,
                                   INT64_MAX - 511,
                                   9007199254740993,
                                   -9007199254740993,
                                   0x5555555555555555};
  std::vector<std::uint64_t> bits;
  if (is_float(dtype)) {
    for (const double value : reals) bits.push_back(kernel::bits_of(dtype, value));
  } else {
    for (const auto value : integers) bits.push_back(kernel::bits_of_integer(dtype, value));
  }
  return bits;
}

Bytes packed(DType dtype, const std::vector<std::uint64_t>& bits) {
  Bytes bytes(bits.size() * size_of(dtype));
  for (std::size_t i = 0; i < bits.size(); ++i) {
    std::memcpy(bytes.data() + i * size_of(dtype), &bits[i], size_of(dtype));
  }
  return bytes;
}

Bytes untouched(DType dtype, std::size_t count) {
  return Bytes(count * size_of(dtype), std::byte{0xff});
}

std::vector<KernelCase> arithmetic_cases() {
  std::vector<KernelCase> cases;
  for (const DType t : kDTypes) {
    if (has_arithmetic(t) || is_bool(t)) cases.push_back(operations_case(t));
    cases.push_back(casts_case(t));
    cases.push_back(constants_case(t));
    if (computes_in_float(t)) cases.push_back(calls_case(t));
  }
  return cases;
}

}  // namespace croton::test
