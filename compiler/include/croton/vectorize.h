#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "croton/variable.h"

// Graphs written for one element, on a whole batch at once: each node is replaced by one that works
// along more axes, so that nothing is looped over or unrolled.
namespace croton {

/// `outputs` with values replaced by others that have more axes in front; results have these axes
/// in front, too, where they depend on such a value, and are what they were where not. Batches of
/// several axes are aligned at the values' own axes. Dtype and own sizes of a replaced value must
/// be the same. GraphError where they are not, where sizes of batches clash, and where an op on the
/// way has no rule for a batch. As PyTensor's function of this name.
CROTON_API std::vector<Variable> vectorize_graph(
    const std::vector<Variable>& outputs, const std::vector<std::pair<Variable, Variable>>& replace,
    Loc loc = Loc::current());

/// The same for one output.
template <Symbol T>
Variable vectorize_graph(const T& output, const std::vector<std::pair<Variable, Variable>>& replace,
                         Loc loc = Loc::current()) {
  return vectorize_graph(std::vector<Variable>{output}, replace, loc)[0];
}

struct VmapOptions {
  /// The axis of the batch in each input; nullopt for one that is the same for all elements.
  /// Empty: axis 0 of each.
  std::vector<std::optional<int>> in_axes = {};
  /// The axis of the batch in each output; nullopt for one that does not depend on the batch.
  /// Empty: axis 0 of each.
  std::vector<std::optional<int>> out_axes = {};
};

/// f, which is written for one element, on all elements of a batch. It is called once, with symbols
/// of the inputs' types without the batch's axis. GraphError as for vectorize_graph. As JAX's
/// function of this name.
CROTON_API std::vector<Variable> vmap(
    const std::function<std::vector<Variable>(const std::vector<Variable>&)>& f,
    const std::vector<Variable>& inputs, const VmapOptions& options = {}, Loc loc = Loc::current());

/// f, which is written for the cores of its inputs, on arrays that have more axes in front; those
/// broadcast together as in NumPy. The signature names the axes of each core, "(m,n),(n)->(m)": the
/// same name stands for the same size. f is called once. GraphError where an input has fewer axes
/// than its core, where f gives other numbers of outputs or axes, and as for vectorize_graph. As
/// numpy.vectorize and PyTensor's function of this name.
CROTON_API std::vector<Variable> vectorize(
    const std::function<std::vector<Variable>(const std::vector<Variable>&)>& f,
    const std::vector<Variable>& inputs, std::string_view signature, Loc loc = Loc::current());

}  // namespace croton
