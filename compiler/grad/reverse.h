// The walk back through a graph, on which all derivatives are built.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/location.h"

namespace croton {

/// The variable in a message about `loc`, which is not said twice.
std::string variable_title(const Variable& v, const Loc& loc);

/// Gradients by reverse mode: begin at some values, run, read. Each node's gradient comes from the
/// rule of its op, and has the place of the node: its line, and its context, whatever ContextScope
/// is in force.
class ReverseMode {
 public:
  /// No gradient flows through `constants`.
  explicit ReverseMode(std::span<const Variable> constants);

  /// Begins at a value; what flows into it from others adds to that.
  void start(const Variable& v, const Variable& gradient);
  /// Begins at a value whose whole gradient this is.
  void fix(const Variable& v, const Variable& gradient);

  /// Once: walks back from where it begins to `wrt`.
  void run(std::span<const Variable> wrt);

  /// The gradient with respect to a value; empty where nothing flows into it.
  Variable of(const Variable& v) const;
  /// Why the gradient with respect to a value is not defined; null where it is.
  const std::string* undefined(const Variable& v) const;
  /// Whether what it begins at was computed from a value, by whatever ops. Only for `wrt`.
  bool reaches(const Variable& v) const { return reached_.contains(v.node()); }

  // For rules that walk back through a part of the graph themselves.

  /// Whether the walk may not just go through a value: it is a constant, has a known gradient, or
  /// is asked for.
  bool stops_at(const Variable& v) const;
  /// Whether a gradient that flows into a value is of use.
  bool passes(const Variable& v) const;
  /// A gradient that flows into a value older than the node of the rule.
  void add(const Variable& v, const Variable& gradient);
  /// The gradient with respect to such a value is not defined.
  void mark_undefined(const Variable& v, const std::string& why);

 private:
  /// Gradients that flow into one value, summed on each context, null: those left open.
  using Pieces = std::vector<std::pair<const std::string*, Variable>>;

  void join(const Variable& v);
  Variable sum(const Variable& a, const Variable& b, const std::string* where, const Loc& loc);
  void backward(const Node& node);
  void follow_rule(const Node& node, const std::vector<Variable>& gradients,
                   std::span<const bool> needed);

  VariableSet constants_;
  VariableSet targets_;
  VariableSet fixed_;
  std::vector<Variable> ends_;
  std::unordered_set<const Node*> depends_;  ///< nodes made of one of the targets
  std::unordered_set<const Node*> reached_;
  VariableMap<Variable> gradients_;
  std::optional<Locations> locations_;
  VariableMap<Pieces> pieces_;  ///< where the graph is on several contexts
  VariableMap<std::string> undefined_;
};

}  // namespace croton
