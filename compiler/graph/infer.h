#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/node.h"
#include "croton/dtype.h"
#include "runtime/dim.h"

namespace croton {

/// dtype and sizes as a type rule sees them.
struct DimType {
  DType dtype = DType::float32;
  std::vector<Dim> shape;
};

/// Why two sizes must be equal.
enum class SizeRule : std::uint8_t {
  equal,
  broadcast,  ///< they would not have to be if one of them were known to be 1
};

/// The op that a message about a node names: what the user asked for at its place, else its own.
inline std::string_view title_of(const Loc& loc, std::string_view op) {
  return loc.op.empty() ? op : loc.op;
}

/// The place of nodes that stand for `node` or derive from it: they speak in its name.
Loc place_of(const Node& node);

/// What an op's type rule reads and writes. The rule is written once; it runs when the user builds
/// a node (sizes are numbers or unknown) and when the compiler works out sizes (numbers or terms).
class Infer {
 public:
  /// Gives the value of an integer scalar, or an unknown Dim.
  using ValueOf = std::function<Dim(const Variable&)>;
  /// Takes an equality that must hold in each call, and what to say where it does not.
  using Require = std::function<void(Dim, Dim, std::string message, SizeRule)>;

  Infer(const OpDef& op, std::span<const Variable> inputs, const Attrs& attrs, const Loc& loc,
        std::vector<DimType> types, ValueOf value_of = {}, Require require = {});

  int inputs() const { return static_cast<int>(types_.size()); }
  DType dtype(int input) const { return types_[input].dtype; }
  const std::vector<Dim>& shape(int input) const { return types_[input].shape; }
  int ndim(int input) const { return static_cast<int>(types_[input].shape.size()); }
  const Attrs& attrs() const { return attrs_; }
  const Variable& variable(int input) const { return inputs_[input]; }
  /// Value of an integer scalar input: a number for constants, else a term or unknown.
  Dim value(int input) const;

  /// Result sizes of NumPy broadcasting over all inputs (aligned at the right). A size known to be
  /// 1 broadcasts; an unknown size does not: in a call it must equal the others.
  std::vector<Dim> broadcast() const;
  /// Two sizes that must be equal; gives the better known one. `what` completes "[op] ..."; {a} and
  /// {b} in it stand for the sizes, which otherwise follow it.
  Dim equal(Dim a, Dim b, const std::string& what, SizeRule rule = SizeRule::equal) const;

  /// Throws a GraphError: "[op] message", the operands' types and the user's line.
  [[noreturn]] void fail(const std::string& message) const;
  /// fail() unless there are `count` inputs.
  void expect_inputs(int count) const;

  void out(DType dtype, std::vector<Dim> shape) { results_.push_back({dtype, std::move(shape)}); }
  const std::vector<DimType>& results() const { return results_; }

 private:
  const OpDef& op_;
  std::span<const Variable> inputs_;
  const Attrs& attrs_;
  const Loc& loc_;
  std::vector<DimType> types_;
  ValueOf value_of_;
  Require require_;
  std::vector<DimType> results_;
};

/// Axis in [0, rank) from one that may count from the end; GraphError in the op's name.
int normalize_axis(const Infer& infer, std::int64_t axis, int rank);

}  // namespace croton
