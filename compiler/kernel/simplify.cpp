// The builder's rules on arithmetic. Each is exact under the rules of kernel.h, NaN payloads and
// the signs of NaNs aside.
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/kernel/builder.h"
#include "compiler/kernel/evaluate.h"

namespace croton::kernel {
namespace {

bool commutes(Binary op) {
  switch (op) {
    case Binary::add:
    case Binary::mul:
    case Binary::min:
    case Binary::max:
    case Binary::bit_and:
    case Binary::bit_or:
    case Binary::bit_xor:
    case Binary::mul_hi:
    case Binary::eq:
    case Binary::ne:
      return true;
    default:
      return false;
  }
}

bool is(const Node& n, Unary op) {
  return n.op == Op::unary && n.sub == static_cast<std::uint8_t>(op);
}

bool is(const Node& n, Binary op) {
  return n.op == Op::binary && n.sub == static_cast<std::uint8_t>(op);
}

std::uint64_t ones(DType t) {
  if (is_bool(t)) return 1;
  return size_of(t) == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * size_of(t))) - 1;
}

// Bits of an integer magnitude or of a significand.
int digits(DType t) {
  switch (t) {
    case DType::boolean:
      return 1;
    case DType::float16:
      return 11;
    case DType::bfloat16:
      return 8;
    case DType::float32:
      return 24;
    case DType::float64:
      return 53;
    default:
      return static_cast<int>(8 * size_of(t)) - (is_unsigned(t) ? 0 : 1);
  }
}

// Every value of `from` is a value of `to`.
bool holds(DType from, DType to) {
  if (from == to || is_bool(from)) return true;
  if (is_bool(to)) return false;
  if (is_float(from)) {
    if (to == DType::float64) return true;
    return to == DType::float32 && from != DType::float64;
  }
  if (to == DType::float16 && digits(from) > 8) return false;
  if (is_integer(to) && is_signed(from) && !is_signed(to)) return false;
  return digits(from) <= digits(to);
}

// A power of two whose reciprocal is normal too, so that multiplying by it is exact.
bool has_exact_reciprocal(DType t, double value) {
  int exponent = 0;
  if (!std::isfinite(value) || std::fabs(std::frexp(value, &exponent)) != 0.5) return false;
  return std::abs(exponent) <= (t == DType::float32 ? 125 : 1021);
}

}  // namespace

bool Builder::integer_constant(Id id, std::int64_t* value) const {
  const Node& n = node(id);
  if (n.op != Op::constant || is_float(n.dtype)) return false;
  *value = as_integer(n.dtype, n.bits);
  return true;
}

// Turns a node whose operands are constants into one.
bool Builder::fold(Node& n) const {
  std::uint64_t bits[3] = {0, 0, 0};
  for (int i = 0; i < 3; ++i) {
    if (n.in[i] == kNone) continue;
    if (node(n.in[i]).op != Op::constant) return false;
    bits[i] = node(n.in[i]).bits;
  }
  const auto result = evaluate(n, node(n.in[0]).dtype, bits);
  if (!result) return false;
  Node constant;
  constant.op = Op::constant;
  constant.dtype = n.dtype;
  constant.bits = *result;
  n = std::move(constant);
  return true;
}

Id Builder::simplify(Node& n) {
  if (fold(n)) return kNone;
  const auto expr = [this](Id id) { return Expr{this, id}; };
  switch (n.op) {
    case Op::unary:
      return simplify_unary(n);
    case Op::binary:
      return simplify_binary(n);
    case Op::cast:
      return simplify_cast(n);
    case Op::bitcast: {
      const Node& x = node(n.in[0]);
      if (x.dtype == n.dtype) return n.in[0];
      if (x.op == Op::bitcast) return bitcast(expr(x.in[0]), n.dtype).id;
      return kNone;
    }
    case Op::select: {
      const Node& condition = node(n.in[0]);
      if (condition.op == Op::constant) return condition.bits ? n.in[1] : n.in[2];
      if (n.in[1] == n.in[2]) return n.in[1];
      if (is(condition, Unary::logical_not)) {
        return select(expr(condition.in[0]), expr(n.in[2]), expr(n.in[1])).id;
      }
      return kNone;
    }
    case Op::fma: {
      if (node(n.in[0]).op == Op::constant) std::swap(n.in[0], n.in[1]);
      const Expr a = expr(n.in[0]);
      const Expr b = expr(n.in[1]);
      const Expr c = expr(n.in[2]);
      if (is_constant(b, 1)) return (a + c).id;
      if (is_constant(b, -1)) return (c - a).id;
      if (is_constant(c, -0.0)) return (a * b).id;
      return kNone;
    }
    default:
      return kNone;
  }
}

Id Builder::simplify_unary(Node& n) {
  const Node& x = node(n.in[0]);
  switch (static_cast<Unary>(n.sub)) {
    case Unary::neg:
      if (is(x, Unary::neg)) return x.in[0];
      return kNone;
    case Unary::abs:
      if (is_unsigned(n.dtype)) return n.in[0];
      if (is(x, Unary::abs) && is_float(n.dtype)) return n.in[0];
      if (is(x, Unary::neg)) n.in[0] = x.in[0];
      return kNone;
    case Unary::logical_not: {
      if (is(x, Unary::logical_not)) return x.in[0];
      const Expr a{this, x.in[0]};
      const Expr b{this, x.in[1]};
      if (is(x, Binary::eq)) return (a != b).id;
      if (is(x, Binary::ne)) return (a == b).id;
      return kNone;
    }
    case Unary::any_lane:
      return x.varying ? kNone : n.in[0];
    default:
      return kNone;
  }
}

Id Builder::simplify_cast(const Node& n) {
  const Node& x = node(n.in[0]);
  if (x.dtype == n.dtype) return n.in[0];
  if (x.op == Op::cast && holds(node(x.in[0]).dtype, x.dtype)) {
    // Integers wrap around, floats go to the nearest integer that there is.
    const DType from = node(x.in[0]).dtype;
    const bool through_float = is_float(x.dtype) && !is_float(from) && is_integer(n.dtype);
    if (through_float && !holds(from, n.dtype)) return kNone;
    return cast({this, x.in[0]}, n.dtype).id;
  }
  return kNone;
}

Id Builder::simplify_binary(Node& n) {
  const auto op = static_cast<Binary>(n.sub);
  if (commutes(op)) {
    const bool left = node(n.in[0]).op == Op::constant;
    const bool right = node(n.in[1]).op == Op::constant;
    if (left != right ? left : n.in[0] > n.in[1]) std::swap(n.in[0], n.in[1]);
  }
  if (n.in[0] == n.in[1]) {
    if (const Id id = simplify_same(n); id != kNone) return id;
  }
  return is_float(node(n.in[0]).dtype) ? simplify_float(n) : simplify_integer(n);
}

// x - x, x <= x and the like.
Id Builder::simplify_same(const Node& n) {
  const DType t = node(n.in[0]).dtype;
  const auto op = static_cast<Binary>(n.sub);
  if (op == Binary::min || op == Binary::max) return n.in[0];
  if (op == Binary::lt) return integer(DType::boolean, 0).id;
  if (is_float(t)) return kNone;
  switch (op) {
    case Binary::bit_and:
    case Binary::bit_or:
      return n.in[0];
    case Binary::sub:
    case Binary::rem:
    case Binary::bit_xor:
      return integer(t, 0).id;
    case Binary::eq:
    case Binary::le:
      return integer(DType::boolean, 1).id;
    case Binary::ne:
      return integer(DType::boolean, 0).id;
    default:
      return kNone;
  }
}

Id Builder::simplify_integer(Node& n) {
  const auto op = static_cast<Binary>(n.sub);
  const DType t = node(n.in[0]).dtype;
  const Expr x{this, n.in[0]};
  std::int64_t c = 0;
  if (op == Binary::sub && integer_constant(n.in[0], &c) && c == 0) {
    return (-Expr{this, n.in[1]}).id;
  }
  if (!integer_constant(n.in[1], &c)) return kNone;
  const bool all_ones = node(n.in[1]).bits == ones(t);
  switch (op) {
    case Binary::sub:
      return (x + integer(t, -c)).id;
    case Binary::add:
    case Binary::mul: {
      if (c == (op == Binary::mul ? 1 : 0)) return x.id;
      if (c == 0) return n.in[1];
      const Node inner = node(n.in[0]);
      std::int64_t unused = 0;
      if (is(inner, op) && integer_constant(inner.in[1], &unused)) {
        return binary(op, {this, inner.in[0]}, binary(op, {this, inner.in[1]}, {this, n.in[1]})).id;
      }
      return kNone;
    }
    case Binary::div:
      if (c == 0) return n.in[1];
      return c == 1 ? x.id : kNone;
    case Binary::rem:
      return c == 0 || c == 1 || c == -1 ? integer(t, 0).id : kNone;
    case Binary::shl:
    case Binary::shr:
    case Binary::bit_xor:
      return c == 0 ? x.id : kNone;
    case Binary::bit_and:
      if (c == 0) return n.in[1];
      return all_ones ? x.id : kNone;
    case Binary::bit_or:
      if (c == 0) return x.id;
      return all_ones ? n.in[1] : kNone;
    case Binary::eq:
    case Binary::ne:
      if (!is_bool(t)) return kNone;
      return (op == Binary::eq) == (c != 0) ? x.id : (!x).id;
    default:
      return kNone;
  }
}

Id Builder::simplify_float(Node& n) {
  const auto op = static_cast<Binary>(n.sub);
  const Expr x{this, n.in[0]};
  const Expr y{this, n.in[1]};
  const Node& right = node(y.id);
  if (right.op == Op::constant) {
    const double c = as_double(right.dtype, right.bits);
    if (op == Binary::add && is_constant(y, -0.0)) return x.id;
    if (op == Binary::sub && is_constant(y, 0.0)) return x.id;
    if ((op == Binary::mul || op == Binary::div) && c == 1) return x.id;
    if ((op == Binary::mul || op == Binary::div) && c == -1) return (-x).id;
    if (op == Binary::div && has_exact_reciprocal(right.dtype, c)) {
      return (x * constant(right.dtype, 1 / c)).id;
    }
  }
  if (op == Binary::sub && is(right, Unary::neg)) return (x + Expr{this, right.in[0]}).id;
  if (op == Binary::add && is(right, Unary::neg)) return (x - Expr{this, right.in[0]}).id;
  if (op == Binary::add && is(node(x.id), Unary::neg)) return (y - Expr{this, node(x.id).in[0]}).id;
  return kNone;
}

}  // namespace croton::kernel
