// Where sizes come from: two values whose unknown sizes have one source have the same size in every
// call.
#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/graph/graph.h"

namespace croton {

/// A size: a number, or the size of a value along an axis.
struct SizeSource {
  std::int64_t number = kAnyDim;
  const Node* node = nullptr;
  int output = 0;
  int axis = 0;

  bool operator==(const SizeSource&) const = default;
};

/// Follows sizes through ops to the values that determine them. Iterative; each node once.
class SizeSources {
 public:
  /// The source of a size if the equalities on the way hold by construction: where operands of an
  /// op only have to agree in the call, the size is the op's own.
  SizeSource proven(const Variable& v, int axis) { return of(v, axis, 0); }
  /// The source of a size in calls that succeed: of operands that have to agree, the first.
  SizeSource assumed(const Variable& v, int axis) { return of(v, axis, 1); }

 private:
  struct Entry {
    Variable keep;
    std::vector<SizeSource> sources[2];  ///< proven, assumed
  };
  SizeSource of(const Variable& v, int axis, int kind);
  SizeSource known(const Variable& v, int axis, int kind) const;
  SizeSource value_of(const Variable& size, int kind) const;
  void compute(const Node& node);
  void compute_elementwise(const Node& node, Entry& entry);
  void compute_sizes(const Node& node, Entry& entry, std::size_t first);
  void compute_gemm(const Node& node, Entry& entry);
  static bool is_entry_needed(const Node& node);

  std::unordered_map<const Node*, Entry> entries_;
};

}  // namespace croton
