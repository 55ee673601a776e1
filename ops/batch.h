// How ops take a batch: each operand may have one more axis in front, along which the op works on
// one element after the other. Most ops follow from their form; the others have a rule each.
#pragma once

#include <vector>

#include "compiler/graph/op.h"

namespace croton {

/// A value of a batch: with the batch's axis in front of its own, or the same for all elements.
struct Lane {
  Variable value;
  bool batched = true;
};

/// What a rule sees: a node for one element, and lanes in place of its inputs, at least one of
/// which is batched.
class BatchArgs {
 public:
  BatchArgs(const Node& node, std::vector<Lane> in);

  const Node& node;
  const std::vector<Lane> in;
  const Loc loc;  ///< for the nodes that a rule makes

  int count() const { return static_cast<int>(in.size()); }
  bool batched(int k) const { return in[k].batched; }
  int rank(int k) const { return node.inputs[k].ndim(); }  ///< without the batch's axis
  /// The number of elements.
  Size size() const;
  /// With the batch's axis, repeated along it where the input is the same for all.
  Variable full(int k) const;
  /// With axes of size 1 behind the batch's axis, so that `rank` others follow it; as it is where
  /// the input is the same for all, since that broadcasts.
  Variable aligned(int k, int rank) const;
  /// The inputs from `first` on, which must be the same for all: GraphError, `what` says what for.
  std::vector<Variable> constant_from(int first, std::string_view what) const;
  /// The node's op on other operands, on the node's context.
  Lane again(std::vector<Variable> inputs, Attrs attrs) const;
};

/// The results for a batch, one an output.
using BatchRule = std::vector<Lane> (*)(const BatchArgs&);

/// The rule of an op; null where there is none. Ops that expand need none.
BatchRule batch_rule(const OpDef& op);

}  // namespace croton
