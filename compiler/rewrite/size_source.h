// Where sizes come from: two values whose unknown sizes have one source have the same size in every
// call.
#pragma once

#include <optional>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/node_map.h"

namespace croton {

/// A size: a number, or the size of a value along an axis.
struct SizeSource {
  std::int64_t number = kAnyDim;
  const Node* node = nullptr;
  int output = 0;
  int axis = 0;

  bool operator==(const SizeSource&) const = default;
};

/// Sizes that are equal in every call in which some value is computed.
struct EqualSizes {
  std::vector<SizeSource> sources;  ///< never empty
  bool complete = true;             ///< these are all that the value depends on

  void add(const SizeSource& source);
  void add(const EqualSizes& other);
  bool has(const SizeSource& source) const;
};

/// Follows sizes through ops to the values that determine them. Iterative; each node once.
class SizeSources {
 public:
  /// What a size is equal to. Operands that have to agree contribute each.
  EqualSizes of(const Variable& v, int axis);
  /// One of them.
  SizeSource one_of(const Variable& v, int axis) { return of(v, axis).sources[0]; }
  /// The only one, if there is no more than one: then nothing has to agree.
  std::optional<SizeSource> only(const Variable& v, int axis);
  /// Whether a value that stays checks all that one checks which goes: everything that `gone` is
  /// equal to, `kept` is equal to as well.
  bool implied(const Variable& kept, int kept_axis, const Variable& gone, int gone_axis);

 private:
  struct Entry {
    Variable keep;
    std::vector<EqualSizes> axes;
  };
  EqualSizes known(const Variable& v, int axis) const;
  SizeSource value_of(const Variable& size) const;
  void compute(const Node& node);
  void compute_elementwise(const Node& node, Entry& entry);
  void compute_sizes(const Node& node, Entry& entry, std::size_t first);
  void compute_gemm(const Node& node, Entry& entry);
  void compute_fold(const Node& node, Entry& entry);
  static bool is_entry_needed(const Node& node);

  NodeMap<Entry> entries_;
};

}  // namespace croton
