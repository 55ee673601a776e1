// How values are cut: the state of a partition, and what the rules of ops are written with.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/op.h"
#include "compiler/partition/partition.h"

namespace croton {

/// How the contexts hold a value.
struct Held {
  static constexpr int kWhole = -1;
  int axis = kWhole;            ///< along which it is cut; kWhole: each context has all of it
  std::vector<Variable> parts;  ///< one a shard; of a whole value one a context
  /// Of a cut value the size of each part along the axis. Of a whole integer scalar that is the
  /// size of a cut value along its axis: that of each part. Else empty.
  std::vector<Variable> sizes = {};

  bool cut() const { return axis != kWhole; }
  bool counts_rows() const { return !cut() && !sizes.empty(); }
};

class Partitioner {
 public:
  explicit Partitioner(const PartitionRequest& request);

  int shards() const { return static_cast<int>(context_of_.size()); }
  int contexts() const { return static_cast<int>(names_.size()); }
  int context_of(int shard) const { return context_of_[static_cast<std::size_t>(shard)]; }
  const std::string* name(int context) const { return names_[static_cast<std::size_t>(context)]; }

  void hold(const Variable& v, Held held) { held_[v] = std::move(held); }
  const Held& held(const Variable& v) const { return held_.at(v); }
  /// Works out all that `v` needs, and `v`.
  const Held& find(const Variable& v);
  void find_all(std::span<const Variable> values);

  /// What a shard has of a value.
  const Variable& part(const Held& held, int shard) const;
  /// The value on each context, gathered where it is cut.
  Held whole(const Held& held, const Loc& loc);
  /// A whole value cut along `axis` into parts of these sizes; the value's size must be their sum.
  Held cut(const Held& held, int axis, const std::vector<Variable>& sizes, const Loc& loc);
  /// The same, but itself where the axis has size 1 and is stretched, and cut again where it is cut
  /// along another axis.
  Held aligned(const Held& held, int axis, const std::vector<Variable>& sizes, const Loc& loc);
  /// What the partial results of all shards give together, on each context: added (multiplied ...)
  /// in the order of the shards, in float32 where they are narrower floats.
  Held all_reduce(const std::vector<Variable>& partials, kernel::Fold fold, const Loc& loc);

  /// Likewise of partial results that are all on one context, in the dtype they are added in.
  Variable reduce_on(int context, const std::vector<Variable>& partials, kernel::Fold fold,
                     const Loc& loc) const;

  /// The nodes that `build` makes live on that context.
  Variable on(int context, const std::function<Variable()>& build) const;
  /// `v` on a context that may be another than its own.
  Variable moved(const Variable& v, int context, const Loc& loc);
  /// The sum of sizes [0, shards), of those before `shard`, on a context.
  Variable total(const std::vector<Variable>& sizes, int context);
  Variable start(const std::vector<Variable>& sizes, int shard);

  /// One application of the node's op a shard (or a context), on these inputs.
  using Inputs = std::function<std::vector<Variable>(int shard)>;
  std::vector<Held> each_shard(const Node& node, int axis, std::vector<Variable> sizes,
                               const Inputs& inputs) const;
  std::vector<Held> each_context(const Node& node);
  /// The first results of one application a shard, which are still to be combined.
  std::vector<Variable> partials(const Node& node, const Inputs& inputs) const;
  /// The inputs of a shard as they are held.
  std::vector<Variable> parts_of(const Node& node, int shard) const;

 private:
  void process(const Node& node);
  std::vector<Held> results_of(const Node& node);
  Variable again_on(const Variable& scalar, int context);
  Variable sum_of(const std::vector<Variable>& sizes, int count, int context);

  std::vector<int> context_of_;
  std::vector<const std::string*> names_;
  const std::function<void(const Node&)>& note_whole_;
  VariableMap<Held> held_;
  std::map<std::pair<std::string, int>, Variable> moved_;
  std::map<std::pair<std::string, int>, Variable> scalars_;
};

/// How the results of a node are held that has a cut input, or one that counts rows; nothing where
/// all that it reads must be whole.
using PartitionRule = std::optional<std::vector<Held>> (*)(const Node& node, Partitioner& p);
/// The rule of an op, null where there is none.
PartitionRule partition_rule(const OpDef& op);

/// The rules of ops that take sizes; see rules_sizes.cpp.
std::optional<std::vector<Held>> cut_reshape(const Node& node, Partitioner& p);
std::optional<std::vector<Held>> cut_broadcast(const Node& node, Partitioner& p);
std::optional<std::vector<Held>> cut_specify_shape(const Node& node, Partitioner& p);
std::optional<std::vector<Held>> cut_iota(const Node& node, Partitioner& p);
std::optional<std::vector<Held>> cut_philox(const Node& node, Partitioner& p);
std::optional<std::vector<Held>> cut_pick_grad(const Node& node, Partitioner& p);
std::optional<std::vector<Held>> cut_size_of(const Node& node, Partitioner& p);
std::optional<std::vector<Held>> cut_shape_of(const Node& node, Partitioner& p);
/// Those of products and indices; see rules_products.cpp.
std::optional<std::vector<Held>> cut_gemm(const Node& node, Partitioner& p);
std::optional<std::vector<Held>> cut_take(const Node& node, Partitioner& p);
std::optional<std::vector<Held>> cut_inc_take(const Node& node, Partitioner& p);

}  // namespace croton
