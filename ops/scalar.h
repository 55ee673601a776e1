// What the families of scalar ops share: type rules, promotion of operands, gradients.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compiler/graph/op.h"
#include "compiler/kernel/builder.h"
#include "croton/dtype.h"
#include "croton/variable.h"
#include "ops/build.h"

namespace croton::scalar {

using kernel::Builder;
using kernel::Expr;
using Args = std::span<const Expr>;

/// dtypes that an op takes.
enum class Accept : std::uint8_t {
  any,
  number,  ///< integers and floats
  bits,    ///< integers and bools
  integer,
  floating,
  boolean,
};

enum class Result : std::uint8_t { same, boolean };

/// The type rule of an elementwise op of `count` operands of one dtype.
void elementwise(Infer& infer, int count, Accept accept, Result result);

template <int kCount, Accept kAccept, Result kResult = Result::same>
void rule(Infer& infer) {
  elementwise(infer, kCount, kAccept, kResult);
}

/// What operands become before the node is made.
enum class Promotion : std::uint8_t {
  common,    ///< their promoted dtype
  integral,  ///< the same, with bools as int8
  floating,  ///< the same, with integers and bools as floats
  division,  ///< the same, by the rule of `/`
  truth,     ///< bool: whether they are not 0
};

/// A node of `op` on operands promoted so; casts are nodes of their own. Its place is that of the
/// first operand.
Variable make(std::string_view op, Promotion promotion, const Operand& a);
Variable make(std::string_view op, Promotion promotion, const Operand& a, const Operand& b);
Variable make(std::string_view op, Promotion promotion, const Operand& a, const Operand& b,
              const Operand& c);

/// The dtype of a function that gives floats, of an operand of that dtype.
DType float_result(DType dtype);

/// g where the condition holds, else 0.
///
/// A masked gradient stays masked: rules work on what is below the mask, and the mask is put on
/// their result. A product with the slope of the branch that was not taken, which may be infinite
/// there, would give 0 * inf = NaN instead of 0.
Variable only(const Variable& condition, const Variable& g);

/// The gradient below the mask that `only` put on it, and the mask; undefined without one.
struct Masked {
  Variable condition;
  Variable below;
};
Masked unmask(const Variable& g);

/// The gradients of a scalar op from one rule an operand, which must be linear in the gradient that
/// it is given. Each runs only where its result is wanted and can be (the operand is a float), and
/// is summed over the axes along which the operand was stretched.
template <class... Rule>
std::vector<Variable> gradients(const GradArgs& args, Rule... rules) {
  std::vector<Variable> result(args.node.inputs.size());
  const Masked mask = unmask(args.g());
  int k = 0;
  const auto one = [&](auto& rule) {
    const Variable& input = args.in(k);
    if (args.wants(k) && is_float(input.dtype())) {
      Variable slope = rule(mask.below);
      if (mask.condition.defined()) {
        slope = slope.same(mask.below) ? args.g() : only(mask.condition, slope);
      }
      result[k] = sum_like(slope, input, args.node.loc);
    }
    ++k;
  };
  (one(rules), ...);
  return result;
}

/// Zeros of the operand's type: the gradient of ops that are flat almost everywhere.
std::vector<Variable> zero_gradients(const GradArgs& args);

/// Inputs for the conformance tests: `count` operands of one shape, in one range.
Example example(int count, double low, double high);
Example example(std::vector<std::pair<double, double>> ranges);

/// The entry of a function of one float; kGradient gives the operand's gradient from that of the
/// result, the operand and the result.
template <Variable (*kGradient)(const Variable& g, const Variable& x, const Variable& y)>
OpDef float_function(const char* name, const char* doc, int cost,
                     Expr (*body)(Builder&, Args, const Node&), double (*real)(const double*),
                     std::vector<Example> examples) {
  return {
      .name = name,
      .doc = doc,
      .cost = cost,
      .infer = rule<1, Accept::floating>,
      .scalar = body,
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [&](const Variable& g) { return kGradient(g, args.in(0), args.out()); });
          },
      .scalar_reference = {.real = real},
      .examples = std::move(examples),
  };
}

/// 0 and 1 of the operand's dtype.
inline Expr zero(Expr x) { return x.builder->integer(x.dtype(), 0); }
inline Expr one(Expr x) { return x.builder->integer(x.dtype(), 1); }

}  // namespace croton::scalar
