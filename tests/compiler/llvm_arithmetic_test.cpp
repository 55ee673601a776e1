// Each arithmetic node on each dtype: as vectors, as the masked rest of one, and as scalars,
// against what the kernel language says of constants.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <string>

#include "compiler/kernel/builder.h"
#include "compiler/kernel/evaluate.h"
#include "tests/compiler/jit_kernel.h"

using namespace croton;
using namespace croton::kernel;
using croton::test::element;
using croton::test::JitModule;
using croton::test::pack;

namespace {

using Bits = std::vector<std::uint64_t>;

constexpr std::size_t kCount = 1003;  // whole vectors and a rest, whatever the width

std::vector<DType> all_dtypes() {
  std::vector<DType> all;
  for (int i = 0; i < kDTypeCount; ++i) all.push_back(static_cast<DType>(i));
  return all;
}

/// Edge cases first, each next to each other in some pair, then random bits.
Bits interesting(DType t, unsigned seed) {
  std::mt19937_64 random(seed);
  Bits edges;
  for (double x : {0.0,
                   -0.0,
                   1.0,
                   -1.0,
                   2.0,
                   3.0,
                   -5.0,
                   0.5,
                   -0.5,
                   1.5,
                   2.5,
                   1e-40,
                   1e30,
                   -1e30,
                   127.0,
                   128.0,
                   -128.0,
                   -129.0,
                   255.0,
                   256.0,
                   32767.5,
                   65504.0,
                   65520.0,
                   2147483647.0,
                   2147483648.0,
                   -2147483648.0,
                   4294967295.0,
                   4294967296.0,
                   9.2233720368547758e18,
                   1.8446744073709552e19,
                   -9.2233720368547758e18,
                   1.0 + 0x1p-24,
                   1.0 + 0x1p-24 + 0x1p-50,
                   1.0 + 0x1p-8,
                   1.0 + 0x1p-8 + 0x1p-40,
                   1.0 + 0x1p-11,
                   1.0 + 0x1p-11 + 0x1p-45,
                   double(INFINITY),
                   -double(INFINITY),
                   double(NAN)}) {
    edges.push_back(bits_of(t, x));
  }
  for (std::int64_t x :
       {std::int64_t{7}, std::int64_t{31}, std::int64_t{32}, std::int64_t{63}, std::int64_t{64},
        INT64_MIN, INT64_MAX, (std::int64_t{257} << 46) + 1, std::int64_t{0x4040000000000001}}) {
    edges.push_back(bits_of_integer(t, x));
  }
  Bits values;
  for (std::size_t i = 0; i < kCount; ++i) {
    std::uint64_t r = random();
    std::uint64_t bits = r >> (64 - 8 * size_of(t));
    if (is_bool(t)) bits &= 1;
    if (i % 3 == 0) bits = bits_of(t, static_cast<double>(r >> 40) / 1e4 - 800);
    if (i % 3 == 1 || i < 60) bits = edges[random() % edges.size()];
    values.push_back(bits);
  }
  return values;
}

bool is_nan(DType t, std::uint64_t bits) { return is_float(t) && std::isnan(as_double(t, bits)); }

/// One kernel: out[i] = f(in...[i]) for all i < size 0, by lanes or by a loop.
template <class F>
Kernel elementwise(const std::vector<DType>& in, DType out, bool lanes, F&& f) {
  Builder b;
  std::vector<int> inputs;
  for (DType t : in) inputs.push_back(b.buffer(t, false));
  int output = b.buffer(out, true);
  Expr n = b.size(0);
  Expr i = lanes ? b.begin_lanes(n) : b.begin_loop(n);
  std::vector<Expr> x;
  for (int input : inputs) {
    x.push_back(lanes ? b.load(input, b.i64(0), b.i64(1)) : b.load(input, i, b.i64(0)));
  }
  Expr y = f(b, x);
  if (lanes) {
    b.store(output, b.i64(0), b.i64(1), y);
  } else {
    b.store(output, i, b.i64(0), y);
  }
  b.end(i);
  return b.finish();
}

/// A node to test: how to build it, and the same as data for evaluate().
struct Case {
  std::string name;
  std::vector<DType> in;
  Node node;
};

Expr build(Builder& b, const Case& c, const std::vector<Expr>& x) {
  switch (c.node.op) {
    case Op::unary:
      return b.unary(static_cast<Unary>(c.node.sub), x[0]);
    case Op::binary:
      return b.binary(static_cast<Binary>(c.node.sub), x[0], x[1]);
    case Op::fma:
      return b.fma(x[0], x[1], x[2]);
    case Op::select:
      return b.select(x[0], x[1], x[2]);
    case Op::cast:
      return b.cast(x[0], c.node.dtype);
    default:
      return b.bitcast(x[0], c.node.dtype);
  }
}

Case make_case(Op op, int sub, std::vector<DType> in, DType out, std::string_view name) {
  Case c;
  c.node.op = op;
  c.node.sub = static_cast<std::uint8_t>(sub);
  c.node.dtype = out;
  c.in = std::move(in);
  c.name = std::string(name_of(op)) + " " + std::string(name) + " " +
           std::string(croton::name_of(c.in.back())) + " -> " + std::string(croton::name_of(out));
  return c;
}

bool has_arithmetic(DType t) { return t != DType::float16 && t != DType::bfloat16 && !is_bool(t); }

std::vector<Case> arithmetic_cases() {
  std::vector<Case> cases;
  for (DType t : all_dtypes()) {
    for (int op = 0; op <= static_cast<int>(Unary::round); ++op) {
      bool fits = has_arithmetic(t);
      if (op == static_cast<int>(Unary::logical_not)) fits = is_bool(t);
      if (op >= static_cast<int>(Unary::sqrt)) fits = has_arithmetic(t) && is_float(t);
      if (fits) cases.push_back(make_case(Op::unary, op, {t}, t, name_of(static_cast<Unary>(op))));
    }
    for (int op = 0; op <= static_cast<int>(Binary::le); ++op) {
      Binary b = static_cast<Binary>(op);
      bool fits = has_arithmetic(t);
      if (b >= Binary::bit_and && b <= Binary::bit_xor) fits = is_integer(t) || is_bool(t);
      if (b == Binary::shl || b == Binary::shr) fits = is_integer(t);
      if (b == Binary::mul_hi) fits = t == DType::uint32;
      if (b == Binary::eq || b == Binary::ne) fits = has_arithmetic(t) || is_bool(t);
      DType out = b >= Binary::eq ? DType::boolean : t;
      if (fits) cases.push_back(make_case(Op::binary, op, {t, t}, out, name_of(b)));
    }
    if (has_arithmetic(t) && is_float(t)) {
      cases.push_back(make_case(Op::fma, 0, {t, t, t}, t, ""));
    }
    cases.push_back(make_case(Op::select, 0, {DType::boolean, t, t}, t, ""));
    for (DType to : all_dtypes()) {
      if (to != t) cases.push_back(make_case(Op::cast, 0, {t}, to, ""));
      bool same_size = size_of(to) == size_of(t) && !is_bool(t) && !is_bool(to);
      if (to != t && same_size) cases.push_back(make_case(Op::bitcast, 0, {t}, to, ""));
    }
  }
  return cases;
}

/// NaNs compare equal, as do zeros of either sign from min and max.
bool agree(const Case& c, DType t, std::uint64_t got, std::uint64_t expected) {
  if (got == expected) return true;
  if (c.node.op == Op::bitcast) return false;
  if (is_nan(t, got) && is_nan(t, expected)) return true;
  Binary op = static_cast<Binary>(c.node.sub);
  if (c.node.op != Op::binary || (op != Binary::min && op != Binary::max)) return false;
  return is_float(t) && as_double(t, got) == 0 && as_double(t, expected) == 0;
}

void check_case(const JitModule& module, std::size_t which, const Case& c) {
  std::vector<Bits> in;
  std::vector<std::vector<std::uint8_t>> bytes;
  std::vector<void*> buffers;
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    in.push_back(interesting(c.in[k], static_cast<unsigned>(17 * k + 5)));
    bytes.push_back(pack(in.back(), size_of(c.in[k])));
  }
  DType out_type = c.node.dtype;
  std::vector<std::uint8_t> out(kCount * size_of(out_type) + 1, 0xa5);
  for (auto& b : bytes) buffers.push_back(b.data());
  buffers.push_back(out.data());
  module.run(which, buffers, {kCount});
  CHECK(out.back() == 0xa5);
  int wrong = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    std::uint64_t operands[3] = {};
    for (std::size_t k = 0; k < in.size(); ++k) operands[k] = in[k][i];
    DType operand = c.node.op == Op::select ? c.in[1] : c.in[0];
    auto expected = evaluate(c.node, operand, operands);
    REQUIRE(expected);
    std::uint64_t got = element(out, size_of(out_type), i);
    if (agree(c, out_type, got, *expected)) continue;
    if (++wrong > 3) break;
    UNSCOPED_INFO(c.name << " at " << i << ": " << std::hex << operands[0] << " " << operands[1]
                         << " " << operands[2] << " gave " << got << ", expected " << *expected);
  }
  CHECK(wrong == 0);
}

void check_all(bool lanes, const TargetInfo& target) {
  std::vector<Case> cases = arithmetic_cases();
  for (std::size_t first = 0; first < cases.size(); first += 32) {
    std::size_t last = std::min(cases.size(), first + 32);
    std::vector<Kernel> kernels;
    for (std::size_t i = first; i < last; ++i) {
      kernels.push_back(elementwise(
          cases[i].in, cases[i].node.dtype, lanes,
          [&](Builder& b, const std::vector<Expr>& x) { return build(b, cases[i], x); }));
    }
    JitModule module(kernels, target);
    for (std::size_t i = first; i < last; ++i) check_case(module, i - first, cases[i]);
  }
}

}  // namespace

TEST_CASE("arithmetic of all dtypes in lanes") {
  for (const TargetInfo& target : croton::test::targets()) check_all(true, target);
}

TEST_CASE("arithmetic of all dtypes in a loop") { check_all(false, host_target()); }
