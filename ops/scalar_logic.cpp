// logical_and, logical_or, logical_xor, logical_not; bitwise_and, bitwise_or, bitwise_xor,
// bitwise_not; left_shift, right_shift.
#include "croton/math.h"
#include "ops/registry.h"
#include "ops/scalar.h"

namespace croton {

using namespace scalar;

namespace {

#define CROTON_LOGICAL(op_name, text, symbol, reference)                                  \
  {                                                                                       \
    .name = op_name, .doc = text, .commutative = true, .infer = rule<2, Accept::boolean>, \
    .scalar = [](Builder&, Args x, const Node&) { return x[0] symbol x[1]; },             \
    .scalar_reference = {.boolean = [](const bool* x) { return x[0] reference x[1]; }},   \
    .examples = {example(2, 0, 2)},                                                       \
  }

#define CROTON_BITWISE(op_name, text, symbol, reference)                                     \
  {                                                                                          \
    .name = op_name, .doc = text, .commutative = true, .infer = rule<2, Accept::bits>,       \
    .scalar = [](Builder&, Args x, const Node&) { return x[0] symbol x[1]; },                \
    .scalar_reference = {.integer = [](const std::int64_t* x) { return x[0] symbol x[1]; },  \
                         .natural = [](const std::uint64_t* x) { return x[0] symbol x[1]; }, \
                         .boolean = [](const bool* x) { return x[0] reference x[1]; }},      \
    .examples = {example(2, -100, 100), example(2, 0, 100)},                                 \
  }

OpDef logical_not_op() {
  return {
      .name = "logical_not",
      .doc = "Whether x is false.",
      .infer = rule<1, Accept::boolean>,
      .scalar = [](Builder&, Args x, const Node&) { return !x[0]; },
      .scalar_reference = {.boolean = [](const bool* x) { return !x[0]; }},
      .examples = {example(1, 0, 2)},
  };
}

OpDef bitwise_not_op() {
  return {
      .name = "bitwise_not",
      .doc = "All bits of an integer flipped; logical_not of bools.",
      .infer = rule<1, Accept::bits>,
      .scalar =
          [](Builder& b, Args x, const Node&) {
            return is_bool(x[0].dtype()) ? !x[0] : x[0] ^ b.integer(x[0].dtype(), -1);
          },
      .scalar_reference = {.integer = [](const std::int64_t* x) { return ~x[0]; },
                           .natural = [](const std::uint64_t* x) { return ~x[0]; },
                           .boolean = [](const bool* x) { return !x[0]; }},
      .examples = {example(1, -100, 100), example(1, 0, 100)},
  };
}

OpDef left_shift_op() {
  return {
      .name = "left_shift",
      .doc = "a * 2^b; 0 for b < 0 and for shifts by all bits and more.",
      .infer = rule<2, Accept::integer>,
      .scalar = [](Builder&, Args x, const Node&) { return x[0] << x[1]; },
      .scalar_reference = {.integer = [](const std::int64_t* x) -> std::int64_t {
                             if (x[1] < 0 || x[1] >= 64) return 0;
                             return static_cast<std::int64_t>(static_cast<std::uint64_t>(x[0])
                                                              << x[1]);
                           },
                           .natural = [](const std::uint64_t* x) -> std::uint64_t {
                             return x[1] >= 64 ? 0 : x[0] << x[1];
                           }},
      .examples = {example({{-9, 9}, {0, 4}}), example({{0, 9}, {0, 4}})},
  };
}

OpDef right_shift_op() {
  return {
      .name = "right_shift",
      .doc =
          "a / 2^b rounded down; 0, or -1 for negative a, for b < 0 and for shifts by all bits "
          "and more.",
      .infer = rule<2, Accept::integer>,
      .scalar = [](Builder&, Args x, const Node&) { return x[0] >> x[1]; },
      .scalar_reference = {.integer = [](const std::int64_t* x) -> std::int64_t {
                             if (x[1] < 0 || x[1] >= 64) return x[0] < 0 ? -1 : 0;
                             return x[0] >> x[1];
                           },
                           .natural = [](const std::uint64_t* x) -> std::uint64_t {
                             return x[1] >= 64 ? 0 : x[0] >> x[1];
                           }},
      .examples = {example({{-100, 100}, {0, 6}}), example({{0, 100}, {0, 6}})},
  };
}

}  // namespace

void register_scalar_logic_ops(OpRegistry& registry) {
  registry.add(CROTON_LOGICAL("logical_and", "Whether both hold.", &, &&));
  registry.add(CROTON_LOGICAL("logical_or", "Whether one holds, or both.", |, ||));
  registry.add(CROTON_LOGICAL("logical_xor", "Whether exactly one holds.", ^, !=));
  registry.add(logical_not_op());
  registry.add(CROTON_BITWISE("bitwise_and", "The bits set in both.", &, &&));
  registry.add(CROTON_BITWISE("bitwise_or", "The bits set in one, or both.", |, ||));
  registry.add(CROTON_BITWISE("bitwise_xor", "The bits set in exactly one.", ^, !=));
  registry.add(bitwise_not_op());
  registry.add(left_shift_op());
  registry.add(right_shift_op());
}

Variable logical_and(const Operand& a, const Operand& b) {
  return make("logical_and", Promotion::truth, a, b);
}
Variable logical_or(const Operand& a, const Operand& b) {
  return make("logical_or", Promotion::truth, a, b);
}
Variable logical_xor(const Operand& a, const Operand& b) {
  return make("logical_xor", Promotion::truth, a, b);
}
Variable logical_not(const Operand& x) { return make("logical_not", Promotion::truth, x); }

Variable bitwise_and(const Operand& a, const Operand& b) {
  return make("bitwise_and", Promotion::common, a, b);
}
Variable bitwise_or(const Operand& a, const Operand& b) {
  return make("bitwise_or", Promotion::common, a, b);
}
Variable bitwise_xor(const Operand& a, const Operand& b) {
  return make("bitwise_xor", Promotion::common, a, b);
}
Variable bitwise_not(const Operand& x) { return make("bitwise_not", Promotion::common, x); }
Variable left_shift(const Operand& a, const Operand& b) {
  return make("left_shift", Promotion::common, a, b);
}
Variable right_shift(const Operand& a, const Operand& b) {
  return make("right_shift", Promotion::common, a, b);
}

}  // namespace croton
