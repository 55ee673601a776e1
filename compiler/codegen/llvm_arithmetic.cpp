#include <algorithm>

#include "compiler/codegen/llvm_emitter.h"
#include "compiler/codegen/llvm_types.h"
#include "croton/error.h"

namespace croton::codegen::llvm_ir {

using kernel::Binary;
using kernel::Op;
using kernel::Unary;

std::string Emitter::constant_of(DType t, int width, std::uint64_t bits) {
  std::string text = literal(t, bits);
  return width == 0 ? text : splat_literal(element(t), text);
}

std::string Emitter::integer(DType t, int width, std::int64_t value) {
  return constant_of(t, width, static_cast<std::uint64_t>(value));
}

std::string Emitter::simple(std::string_view instruction, DType t, int width, const std::string& a,
                            const std::string& b) {
  return op("{} {} {}, {}", instruction, type(t, width), a, b);
}

std::string Emitter::intrinsic(std::string_view name, DType t, int width, const std::string& x,
                               std::string_view more) {
  std::string full = type(t, width);
  return op("call {} @llvm.{}.{}({} {}{})", full, name, suffix(mangled(t), width), full, x, more);
}

std::string Emitter::select(DType t, int width, const std::string& condition, const std::string& a,
                            const std::string& b) {
  std::string full = type(t, width);
  return op("select {} {}, {} {}, {} {}", type("i1", width), condition, full, a, full, b);
}

std::string Emitter::unary(Unary operation, DType t, int width, const std::string& x) {
  bool is_float = is_llvm_float(t);
  switch (operation) {
    case Unary::neg:
      if (is_float) return op("fneg {} {}", type(t, width), x);
      return simple("sub", t, width, integer(t, width, 0), x);
    case Unary::abs:
      if (is_float) return intrinsic("fabs", t, width, x);
      return is_signed(t) ? intrinsic("abs", t, width, x, ", i1 false") : x;
    case Unary::logical_not:
      return simple("xor", t, width, x, constant_of(t, width, 1));
    case Unary::sqrt:
      return intrinsic("sqrt", t, width, x);
    case Unary::floor:
      return intrinsic("floor", t, width, x);
    case Unary::ceil:
      return intrinsic("ceil", t, width, x);
    case Unary::trunc:
      return intrinsic("trunc", t, width, x);
    case Unary::round:
      return intrinsic("roundeven", t, width, x);
    case Unary::any_lane:
      break;  // from a vector: any_lane below
  }
  return {};
}

std::string Emitter::binary(Binary operation, DType t, int width, const std::string& a,
                            const std::string& b) {
  bool is_float = is_llvm_float(t);
  bool sign = is_signed(t);
  switch (operation) {
    case Binary::add:
      return simple(is_float ? "fadd" : "add", t, width, a, b);
    case Binary::sub:
      return simple(is_float ? "fsub" : "sub", t, width, a, b);
    case Binary::mul:
      return simple(is_float ? "fmul" : "mul", t, width, a, b);
    case Binary::div:
      return is_float ? simple("fdiv", t, width, a, b) : divide(false, t, width, a, b);
    case Binary::rem:
      return is_float ? simple("frem", t, width, a, b) : divide(true, t, width, a, b);
    case Binary::min:
      return minimum(false, t, width, a, b);
    case Binary::max:
      return minimum(true, t, width, a, b);
    case Binary::bit_and:
      return simple("and", t, width, a, b);
    case Binary::bit_or:
      return simple("or", t, width, a, b);
    case Binary::bit_xor:
      return simple("xor", t, width, a, b);
    case Binary::shl:
      return shift(true, t, width, a, b);
    case Binary::shr:
      return shift(false, t, width, a, b);
    case Binary::mul_hi: {
      DType wide = DType::uint64;
      std::string wide_a = convert("zext", t, wide, width, a);
      std::string wide_b = convert("zext", t, wide, width, b);
      std::string product = simple("mul", wide, width, wide_a, wide_b);
      std::string high = simple("lshr", wide, width, product, integer(wide, width, 32));
      return convert("trunc", wide, t, width, high);
    }
    case Binary::eq:
      return compare(is_float ? "oeq" : "eq", t, width, a, b);
    case Binary::ne:
      return compare(is_float ? "une" : "ne", t, width, a, b);
    case Binary::lt:
      return compare(is_float ? "olt" : sign ? "slt" : "ult", t, width, a, b);
    case Binary::le:
      return compare(is_float ? "ole" : sign ? "sle" : "ule", t, width, a, b);
  }
  return {};
}

std::string Emitter::compare(std::string_view predicate, DType t, int width, const std::string& a,
                             const std::string& b) {
  return op("{} {} {} {}, {}", is_llvm_float(t) ? "fcmp" : "icmp", predicate, type(t, width), a, b);
}

/// The second operand of a fold is the running value: the processor's own minimum gives it back
/// when the first is a NaN, which a test of the first alone then mends, so that only one
/// instruction and the blend lie on the path from one element to the next.
std::string Emitter::minimum(bool max, DType t, int width, const std::string& a,
                             const std::string& b) {
  if (!is_llvm_float(t)) {
    std::string_view name = is_signed(t) ? (max ? "smax" : "smin") : (max ? "umax" : "umin");
    return intrinsic(name, t, width, a, ", " + type(t, width) + " " + b);
  }
  std::string better = compare(max ? "ogt" : "olt", t, width, a, b);
  std::string number = select(t, width, better, a, b);
  return select(t, width, compare("uno", t, width, a, a), a, number);
}

std::string Emitter::shift_by(bool left, DType t, int width, const std::string& a,
                              std::uint64_t amount) {
  auto bits = static_cast<std::uint64_t>(bits_of(t));
  bool sign = is_signed(t);
  if (amount >= bits && (left || !sign)) return integer(t, width, 0);
  std::string by = integer(t, width, static_cast<std::int64_t>(std::min(amount, bits - 1)));
  return simple(left ? "shl" : sign ? "ashr" : "lshr", t, width, a, by);
}

std::string Emitter::shift(bool left, DType t, int width, const std::string& a,
                           const std::string& b) {
  int bits = bits_of(t);
  if (!left && is_signed(t)) {
    // Arithmetic shifts by more than bits - 1 give the same as by bits - 1; a negative amount is
    // a large one.
    std::string amount =
        intrinsic("umin", t, width, b, ", " + type(t, width) + " " + integer(t, width, bits - 1));
    return simple("ashr", t, width, a, amount);
  }
  std::string shifted = simple(left ? "shl" : "lshr", t, width, a, b);
  std::string fits = compare("ult", t, width, b, integer(t, width, bits));
  return select(t, width, fits, shifted, integer(t, width, 0));
}

/// Vectors have no integer division; of integers up to 32 bits the quotient in float64, truncated,
/// is exact.
std::string Emitter::divide_in_float64(bool remainder, DType t, int width, const std::string& a,
                                       const std::string& b) {
  bool sign = is_signed(t);
  std::string_view widen = sign ? "sitofp" : "uitofp";
  DType wide = DType::float64;
  std::string wide_a = convert(widen, t, wide, width, a);
  std::string wide_b = convert(widen, t, wide, width, b);
  std::string ratio = simple("fdiv", wide, width, wide_a, wide_b);
  std::string quotient = convert(sign ? "fptosi" : "fptoui", wide, t, width, ratio);
  if (!remainder) return quotient;
  return simple("sub", t, width, a, simple("mul", t, width, quotient, b));
}

std::string Emitter::divide(bool remainder, DType t, int width, const std::string& a,
                            const std::string& b) {
  bool sign = is_signed(t);
  std::string zero = integer(t, width, 0);
  std::string is_zero = compare("eq", t, width, b, zero);
  std::string unsafe = is_zero;
  std::string minus;
  if (sign) {
    minus = compare("eq", t, width, b, integer(t, width, -1));
    unsafe = simple("or", DType::boolean, width, is_zero, minus);
  }
  std::string divisor = select(t, width, unsafe, integer(t, width, 1), b);
  std::string result;
  if (width > 0 && size_of(t) <= 4) {
    result = divide_in_float64(remainder, t, width, a, divisor);
  } else {
    std::string_view name = sign ? (remainder ? "srem" : "sdiv") : (remainder ? "urem" : "udiv");
    result = simple(name, t, width, a, divisor);
  }
  // Divided by 1 instead of -1: the remainder is 0 already, the quotient wants its sign turned.
  if (sign && !remainder) {
    std::string negated = simple("sub", t, width, zero, a);
    result = select(t, width, minus, negated, result);
  }
  // The remainder by the 1 that stands for 0 is 0 as well.
  return remainder ? result : select(t, width, is_zero, zero, result);
}

std::string Emitter::emit_call(const Node& n, int width) {
  const std::string& base = kernel_.names[n.index];
  std::string name = n.dtype == DType::float32 ? base + "f" : base;
  std::string_view e = element(n.dtype);
  int arity = n.in[1] == kernel::kNone ? 1 : 2;
  std::string types = arity == 2 ? fmt::format("{0}, {0}", e) : std::string(e);
  module_.declarations.insert(fmt::format("declare {} @{}({}) nounwind\n", e, name, types));
  std::string full = type(n.dtype, width);
  std::string callee = width == 0 ? name : fmt::format("{}.{}", name, width);
  std::string arguments = fmt::format("{} {}", full, operand(n.in[0], width));
  if (arity == 2) arguments += fmt::format(", {} {}", full, operand(n.in[1], width));
  std::string result = op("call {} @{}({})", full, callee, arguments);
  if (width == 0 || module_.functions.contains(callee)) return result;
  // One call a lane, in a function of its own, so that the loop stays short.
  std::string body = fmt::format("define internal {0} @{1}({0} %a{2}) noinline nounwind {{\n", full,
                                 callee, arity == 2 ? ", " + full + " %b" : "");
  std::string last = "poison";
  for (int i = 0; i < width; ++i) {
    body += fmt::format("  %a{0} = extractelement {1} %a, i32 {0}\n", i, full);
    if (arity == 2) body += fmt::format("  %b{0} = extractelement {1} %b, i32 {0}\n", i, full);
    std::string second = arity == 2 ? fmt::format(", {} %b{}", e, i) : "";
    body += fmt::format("  %c{0} = call {1} @{2}({1} %a{0}{3})\n", i, e, name, second);
    body += fmt::format("  %r{0} = insertelement {1} {2}, {3} %c{0}, i32 {0}\n", i, full, last, e);
    last = fmt::format("%r{}", i);
  }
  module_.functions[callee] = body + fmt::format("  ret {} {}\n}}\n", full, last);
  return result;
}

/// Whether a bool of a vector is true.
std::string Emitter::any_lane(Id id) {
  int width = lanes_.width;
  std::string bits = op("bitcast {} {} to i{}", type("i1", width), operand(id, width), width);
  return op("icmp ne i{} {}, 0", width, bits);
}

void Emitter::emit_value(Id id) {
  const Node& n = node(id);
  int width = n.varying ? lanes_.width : 0;
  at_ = operand_depth(n);
  int place = at_;
  auto in = [&](int i) { return operand(n.in[i], width); };
  std::string text;
  switch (n.op) {
    case Op::unary:
      text = static_cast<Unary>(n.sub) == Unary::any_lane
                 ? any_lane(n.in[0])
                 : unary(static_cast<Unary>(n.sub), n.dtype, width, in(0));
      break;
    case Op::binary: {
      std::string a = in(0);
      auto operation = static_cast<Binary>(n.sub);
      std::int64_t amount = 0;
      bool shifts = operation == Binary::shl || operation == Binary::shr;
      if (shifts && constant(n.in[1], &amount)) {
        // Zero-extended, a negative amount is one out of range like any other.
        text = shift_by(operation == Binary::shl, n.dtype, width, a,
                        static_cast<std::uint64_t>(amount));
        break;
      }
      std::string b = in(1);
      text = binary(operation, node(n.in[0]).dtype, width, a, b);
      break;
    }
    case Op::fma: {
      std::string a = in(0), b = in(1), c = in(2), full = type(n.dtype, width);
      text = op("call {0} @llvm.fma.{1}({0} {2}, {0} {3}, {0} {4})", full,
                suffix(mangled(n.dtype), width), a, b, c);
      break;
    }
    case Op::select: {
      std::string c = in(0), a = in(1), b = in(2);
      text = select(n.dtype, width, c, a, b);
      break;
    }
    case Op::cast:
      text = cast(node(n.in[0]).dtype, n.dtype, width, in(0));
      break;
    case Op::bitcast: {
      DType from = node(n.in[0]).dtype;
      std::string x = in(0);
      text = element(from) == element(n.dtype) ? x : convert("bitcast", from, n.dtype, width, x);
      break;
    }
    case Op::call:
      text = emit_call(n, width);
      break;
    default:
      internal_check(false, "a kernel node is no arithmetic");
  }
  set(id, text, place);
}

}  // namespace croton::codegen::llvm_ir
