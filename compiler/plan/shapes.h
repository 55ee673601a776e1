#pragma once

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/infer.h"
#include "runtime/dim.h"
#include "runtime/plan.h"

namespace croton {

/// The shared variables that a function reads or updates, each once.
std::vector<Variable> shareds_of(const FunctionGraph& function);

/// The sizes of every value of a graph as terms over the sizes of the function's inputs, and the
/// equalities that each call must satisfy.
class Shapes {
 public:
  /// Works out all sizes. Shared variables are numbered after the inputs in the terms of `dims`, in
  /// the order of `shareds`. GraphError where sizes clash.
  /// What must be equal is first asked of `written`, the graph that the user wrote, when there is
  /// one: so it does not depend on rewrites, and is said of the ops that the user knows.
  Shapes(const Graph& graph, std::span<const Variable> shareds, DimTable& dims,
         const Graph* written = nullptr);

  const std::vector<DimType>& of(const Node* node) const { return types_.at(node); }
  const DimType& of(const Variable& v) const { return of(v.node())[v.output()]; }
  /// Product of the sizes.
  Dim numel(const Variable& v) const;

  /// Integer scalars that the graph itself computes and that sizes depend on. In the terms they are
  /// numbered after the shared variables, as if they were inputs: they are, of a later plan.
  const std::vector<Variable>& computed() const { return computed_; }
  /// The scalars whose values the type rule of a node asked for.
  const std::vector<std::pair<const Node*, Variable>>& asked() const { return asked_; }

  DimTable& dims() const { return dims_; }
  std::vector<PlanCheck> checks() const { return checks_; }

 private:
  /// Whether all sizes of the graph are to be found, or only what must be equal.
  enum class Sweep : std::uint8_t { sizes, equalities };
  void infer_all(const Graph& graph, Sweep sweep);
  void infer_node(const Node& node, Sweep sweep);
  void require(PlanCheck check);
  std::vector<DimType> leaf_type(const Node& node);
  std::vector<DimType> infer_types(const Node& node);
  Dim assumed(const Variable& v);
  Dim element(const Variable& v, std::int64_t k);
  Dim compute_element(const Variable& v, std::int64_t k);
  Dim element_of_source(const Variable& v, std::int64_t k);
  Dim element_of_arithmetic(const Variable& v, std::int64_t k);
  Dim element_of_fold(const Variable& v);
  std::int64_t length(const Variable& v) const;
  /// -1 for none.
  int leaf_number(const Node& leaf) const;

  DimTable& dims_;
  /// Input, or state of a shared variable, -> number in the terms.
  std::unordered_map<const void*, int> leaves_;
  std::unordered_map<const Node*, std::vector<DimType>> types_;
  std::unordered_map<const Node*, std::map<std::int64_t, Dim>> values_;  ///< of first outputs
  std::vector<PlanCheck> checks_;
  int first_computed_ = 0;
  std::vector<Variable> computed_;
  std::vector<std::pair<const Node*, Variable>> asked_;
  /// What is not known is assumed to be an input.
  bool assuming_ = false;
};

}  // namespace croton
