#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "croton/array.h"
#include "croton/variable.h"
#include "runtime/attrs.h"

namespace croton {

struct OpDef;
struct SharedState;
class Graph;

/// dtype and static sizes of a value.
struct Type {
  DType dtype = DType::float32;
  Shape shape;
  bool operator==(const Type&) const = default;
  /// "float32 matrix (?, 784)"
  std::string to_text() const;
};

/// One application of an op. Immutable once made, reference-counted, released iteratively; inputs
/// are always older than the node, so `id` orders any graph topologically.
class Node {
 public:
  std::uint64_t id = 0;
  const OpDef* op = nullptr;
  std::vector<Variable> inputs;
  std::vector<Type> outputs;
  std::shared_ptr<const Attrs> attributes;  ///< never null
  const std::string* context = nullptr;     ///< interned; never null; empty: left to placement
  /// Interned, or null: where placement puts a node that it is left to, before it looks at inputs.
  /// Nodes of gradients lie beside those of the forward pass.
  const std::string* beside = nullptr;
  const std::string* name = nullptr;  ///< interned; never null
  Loc loc;                            ///< the user's line

  // Only for the ops "constant", "shared" and those that hold a graph.
  Array value;
  std::shared_ptr<SharedState> shared;
  std::shared_ptr<const Graph> graph;
  /// "shared": what a call adds to the value unless an update says otherwise; undefined: nothing.
  Variable increment;

  const Attrs& attrs() const { return *attributes; }
  Variable out(int k = 0) const { return Variable(this, k); }

 private:
  friend class Variable;
  friend void release(const Node* node);
  mutable std::atomic<std::int32_t> references_{0};
};

/// The one copy of that text for the life of the process.
const std::string* intern(std::string_view text);

/// Settings in force where a graph is being built; frontend/default_runtime.cpp defines it.
struct BuildSettings {
  DType float_x = DType::float32;
  bool numpy_policy = false;
  const std::string* context = nullptr;  ///< of the innermost ContextScope; null: none
};
BuildSettings build_settings();

/// A new node of `op` on `inputs`. Checks operands by the op's rule: GraphError in the user's
/// words. The node lives on the context of the innermost ContextScope, if any.
Variable apply(const OpDef& op, std::vector<Variable> inputs, Attrs attrs, const Loc& loc);
Variable apply(std::string_view op, std::vector<Variable> inputs, Attrs attrs, const Loc& loc);

/// The same application on other inputs: attributes, context, name and place stay, the types are
/// inferred again.
Variable with_inputs(const Node& node, std::vector<Variable> inputs);

// Leaves.
Variable make_input(Type type, std::string_view name, const Loc& loc);
Variable make_constant(const Array& value, const Loc& loc);
/// A 0-d constant; the value must fit the dtype (GraphError).
Variable make_scalar(DType dtype, const LiteralValue& value, const Loc& loc);
Variable make_shared_node(std::shared_ptr<SharedState> state, Type type, std::string_view name,
                          const Loc& loc);

/// The value of the shared variable `shared` in memory of another context, which the runtime keeps
/// there as long as it is the latest one. Default updates stay with `shared` itself.
Variable shared_on(const Variable& shared, const std::string* context);

/// Operands as variables of the dtypes that they have after literals took theirs from the others:
/// a literal never widens; one that does not fit is a GraphError naming `op`.
std::vector<Variable> resolve(std::string_view op, std::span<const Operand> operands);

/// The number of the next node; with `relocate`, gives all nodes below `variable` made since then
/// the place of the user's line `loc`.
std::uint64_t next_node_id();
void relocate(const Variable& variable, std::uint64_t since, const Loc& loc);

bool is_op(const Variable& variable, std::string_view op);
/// The array when `variable` is a constant, else null.
const Array* constant_value(const Variable& variable);
/// A 0-d or broadcast-constant value equal to `value` everywhere.
bool is_constant(const Variable& variable, double value);

/// "file.cpp:12"
std::string to_text(const Loc& loc);

}  // namespace croton
