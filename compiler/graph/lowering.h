#pragma once

#include <span>
#include <utility>
#include <vector>

#include "compiler/graph/infer.h"
#include "compiler/kernel/builder.h"
#include "runtime/dim.h"

namespace croton {

/// A position along an axis, inside a kernel: the sum of loop counters times sizes, a size, and
/// perhaps a computed value. The affine part stays visible so that the scheduler can merge loops
/// and find strides; `computed` (int64) holds anything else, such as an index read from memory.
struct Position {
  std::vector<std::pair<int, Dim>> terms;  ///< loop of the kernel's domain, coefficient
  Dim offset = 0;
  kernel::Expr computed = {};

  bool affine() const { return computed.id == kernel::kNone; }
};

Position operator+(Position a, const Position& b);
Position operator+(Position a, Dim b);
Position operator-(Position a, Dim b);
/// a times a size; `by_value` is the size as an int64 value, used when `a` has a computed part.
Position scaled(Position a, Dim by, kernel::Expr by_value);

/// For the checks of a node's kernel.
kernel::CheckPlace check_place(const Node& node);

/// What a loops op sees while one element of its output becomes kernel code.
class Lowering {
 public:
  Lowering(kernel::Builder& builder, const Node& node, std::span<const DimType> in,
           std::span<const DimType> out)
      : b(builder), node(node), in(in), out(out) {}
  virtual ~Lowering() = default;

  /// The element of an input at a position; 0 where the mask (bool) is false.
  virtual kernel::Expr read(int input, std::vector<Position> at, kernel::Expr mask = {}) = 0;
  /// The position as an int64 value.
  virtual kernel::Expr value(const Position& position) = 0;
  /// A size as an int64 value.
  virtual kernel::Expr value(Dim dim) = 0;
  /// A position from an int64 value.
  Position computed(kernel::Expr value) const { return {{}, 0, value}; }

  kernel::Builder& b;
  const Node& node;
  std::span<const DimType> in;
  std::span<const DimType> out;
};

/// A whole kernel of an op's own: buffers are the outputs, then the inputs (0-d ones included).
struct KernelLowering {
  kernel::Builder& b;
  const Node& node;
  std::span<const DimType> in;
  std::span<const DimType> out;
  std::function<kernel::Expr(Dim)> value;  ///< a size as an int64 value
  Dim blocks = 1;                          ///< set by the op: size of the grid
  Dim work = 0;                            ///< set by the op: estimate in scalar operations
  bool atomics = false;                    ///< the kernel may add to memory in any order
  int launch = 0;     ///< which of several kernels this is, one after the other
  bool more = false;  ///< set by the op: another one follows
};

}  // namespace croton
