// Cuts a function along the first axis of some of its inputs, so that several contexts compute it
// together. The function that comes out has the values of the one that goes in, up to the rounding
// of sums that are now made in parts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "croton/combine.h"

namespace croton {

struct PartitionRequest {
  /// The context of each shard, in the order of the rows; neighbours may have the same one.
  std::vector<std::string> contexts;
  /// For each input whether it is cut along axis 0; each context gets all of the others.
  std::vector<bool> scattered;
  /// For each output of the user; Combine::whole where it is shorter.
  std::vector<Combine> combine = {};
  /// Where it is set, every context is a rank with values of its own: shards compute all from their
  /// own rows and from what this gives for a shared variable and a context (counted in the order of
  /// `contexts`), nothing is Combine::whole, and each context updates its own.
  std::function<Variable(const Variable& shared, int context)> replica = {};
  /// With `replica`, for each update: what becomes of the values of several shards of one context.
  std::vector<Combine> combine_updates = {};
  /// With `replica`: shared variables of which a shard gets some rows. For each shard there are
  /// more inputs: where the rows start and stop, or with `listed` the vector of their numbers.
  std::vector<Variable> sliced = {};
  bool listed = false;
  /// Takes what is computed by every context because no rule cuts it: the op, the user's line.
  std::function<void(const Node& node)> note_whole = {};
};

/// The function of the shards. A scattered input becomes as many inputs as there are shards, side
/// by side, with any number of rows; an updated shared variable gets its new value on each of the
/// contexts. GraphError where an output cannot be combined as asked.
FunctionGraph partition(const FunctionGraph& function, const PartitionRequest& request);

}  // namespace croton
