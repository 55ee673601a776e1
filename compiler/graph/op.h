#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/infer.h"
#include "compiler/graph/lowering.h"
#include "compiler/graph/node.h"
#include "compiler/kernel/builder.h"

namespace croton {

enum class OpForm : std::uint8_t {
  leaf,     ///< input, constant, shared
  scalar,   ///< elementwise over broadcast operands
  loops,    ///< index maps, reductions, gathers: lowers itself to kernel code
  library,  ///< a function of the backend's libraries
  move,     ///< transfer between contexts
};

class ReverseMode;

/// The gradient rule's view: forward node, gradients of its outputs (undefined where none flows).
struct GradArgs {
  const Node& node;
  std::span<const Variable> grads;
  std::span<const bool> needed = {};  ///< inputs whose gradient will be used; empty: all of them
  ReverseMode* walk = nullptr;        ///< for rules that walk back through a part themselves

  bool wants(int k) const { return needed.empty() || needed[k]; }
  const Variable& in(int k) const { return node.inputs[k]; }
  Variable out(int k = 0) const { return node.out(k); }
  const Variable& g(int k = 0) const { return grads[k]; }
};

/// Reference values of a scalar op, one function for each class of numbers; null where the class
/// does not apply. The class is that of the last operand's dtype; `x` holds the operands, converted
/// to it; the result is converted to the output's dtype (comparisons give 0 or 1).
struct ScalarReference {
  double (*real)(const double* x) = nullptr;
  std::int64_t (*integer)(const std::int64_t* x) = nullptr;
  std::uint64_t (*natural)(const std::uint64_t* x) = nullptr;
  bool (*boolean)(const bool* x) = nullptr;
};

/// Inputs on which an op is tried by the conformance tests.
struct Example {
  std::vector<Shape> shapes;                     ///< one an input
  std::vector<std::pair<double, double>> range;  ///< one an input; values are drawn from it
  Attrs attrs;
};

/// The one definition of an op. Which members are set follows from the form:
///   scalar   `scalar`
///   loops    one of `element`, `fold`, `expand`, `kernel`
///   library  nothing more: the backend's table has a function of the op's name
struct OpDef {
  std::string name;
  std::string doc;
  OpForm form = OpForm::scalar;
  bool commutative = false;  ///< the first two operands
  bool view = false;         ///< the output is the input's memory under another shape
  int cost = 1;              ///< scalar operations an element, roughly
  bool random = false;       ///< equal inputs do not make equal nodes

  /// dtype and shape rule.
  void (*infer)(Infer&) = nullptr;

  /// Body of a scalar op. Operands have the dtypes of the inputs, except that float16 and bfloat16
  /// come as float32; the result must have the output's dtype, or be a float32 to be rounded to it.
  kernel::Expr (*scalar)(kernel::Builder&, std::span<const kernel::Expr> x, const Node&) = nullptr;
  /// The output's element at a position, from elements of the inputs.
  kernel::Expr (*element)(Lowering&, std::span<const Position> at) = nullptr;
  /// A reduction of input 0 over the attribute "axes" (sorted, not negative), "keepdims" 0 or 1.
  std::optional<kernel::Fold> fold = {};
  /// The same value from smaller ops.
  std::vector<Variable> (*expand)(const Node&) = nullptr;
  /// A kernel of its own.
  void (*kernel)(KernelLowering&) = nullptr;

  /// Gradients for each input; undefined where none flows. Null: no gradient flows at all.
  std::vector<Variable> (*grad)(const GradArgs&) = nullptr;

  // The reference evaluator; that of a scalar op is the first, but the second where it has one.
  ScalarReference scalar_reference = {};
  std::vector<Array> (*reference)(const Node&, std::span<const Array> inputs) = nullptr;
  std::vector<Example> examples = {};
};

/// All ops by name; filled once, from the explicit list in ops/registry.cpp.
class OpRegistry {
 public:
  static const OpRegistry& instance();
  const OpDef& at(std::string_view name) const;  ///< InternalError when there is none
  const OpDef* find(std::string_view name) const;
  std::vector<const OpDef*> all() const;  ///< by name

  void add(OpDef op);

 private:
  std::vector<std::unique_ptr<OpDef>> ops_;
  std::unordered_map<std::string_view, const OpDef*> index_;
};

/// Adds every op; ops/registry.cpp.
void register_ops(OpRegistry& registry);

}  // namespace croton
