// Shapes of numbers and symbols as ops carry them: the attribute "sizes" holds a number an axis,
// and kSymbolSize where the next of the node's symbolic inputs (int64 scalars) gives it.
#pragma once

#include <span>
#include <vector>

#include "compiler/graph/infer.h"
#include "compiler/graph/node.h"

namespace croton {

inline constexpr std::int64_t kSymbolSize = -2;
/// In a reshape: what is left.
inline constexpr std::int64_t kInferredSize = -1;

struct SizeList {
  std::vector<std::int64_t> numbers;
  std::vector<Variable> symbols;
};

/// Sizes as the op carries them; constants become numbers. A GraphError in the op's name when a
/// Variable is not an integer scalar, or a vector's length is not known; numbers must not be
/// negative, except -1 where `inferred`.
SizeList size_list(std::string_view op, const Sizes& sizes, const Loc& loc, bool inferred = false);
SizeList size_list(std::string_view op, std::span<const Size> sizes, const Loc& loc,
                   bool inferred = false);

/// The entries of an integer vector as sizes, each worked out from what the vector is made of; a
/// scalar is one size. GraphError in the op's name when the length is not known.
std::vector<Size> vector_sizes(std::string_view op, const Variable& vector, const Loc& loc);

/// The attribute "sizes" as Dims; symbolic ones are the inputs from `first` on. -1 gives unknown.
std::vector<Dim> size_dims(const Infer& infer, int first);

/// The attribute "sizes" as numbers, for reference evaluators; -1 stays.
Shape size_numbers(const Attrs& attrs, std::span<const Array> symbols);

/// x broadcast to these sizes; itself when static shapes say that nothing changes.
Variable broadcast_sizes(const Variable& x, std::span<const Size> sizes, const Loc& loc);

}  // namespace croton
