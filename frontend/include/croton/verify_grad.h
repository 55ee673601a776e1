#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "croton/array.h"
#include "croton/config.h"
#include "croton/error.h"
#include "croton/shape.h"
#include "croton/variable.h"

// Gradients against finite differences.
namespace croton {

/// A gradient and its finite difference that differ by more than both tolerances: the place at
/// which they differ most.
class CROTON_API GradientError : public Error {
 public:
  struct Place {
    std::size_t argument = 0;  ///< from 0 on
    Shape index;               ///< of the element in it
    double analytic = 0;
    double numeric = 0;
    double absolute_error = 0;
    double relative_error = 0;
    double absolute_tolerance = 0;
    double relative_tolerance = 0;
  };
  explicit GradientError(const Place& place);
  ~GradientError() override;
  const Place& place() const { return place_; }

 private:
  Place place_;
};

struct VerifyGradOptions {
  /// How many random weights of the results are tried; at least 1.
  int tests = 2;
  /// Of the weights, which lie in [0.5, 1.5).
  std::uint64_t seed = 1;
  /// Of the step: 1e-7 for float64, 3e-4 for float32, 1e-1 for narrower ones, unless given.
  std::optional<double> eps = {};
  /// Tolerances: 1e-4 for float64, 1e-2 for float32, 5e-2 for narrower ones, unless given;
  /// at least 0.
  std::optional<double> absolute_tolerance = {};
  std::optional<double> relative_tolerance = {};
  /// The dtype that decides about step and tolerances; else the narrowest of the points'.
  std::optional<DType> dtype = {};
  /// Flags of the compiled functions.
  std::optional<Config> config = {};
};

/// Checks the gradients of a function at a point: f gets symbols of the points' types and gives a
/// float value of any shape; the sum of its elements, with random weights, is differentiated by
/// `grad` and by finite differences, (cost(x + step) - cost(x)) / step in one element after the
/// other. The step is eps * max(1, |x|) as the point's dtype has it: more where that would leave x
/// as it is, negative where it would make x infinite. GradientError where an element differs by
/// more than the absolute tolerance and, relative to |a| + |b|, by more than the relative one.
/// Points must be floats; one that f does not use has gradient 0. GraphError for options out of
/// range.
CROTON_API void verify_grad(const std::function<Variable(const std::vector<Variable>&)>& f,
                            const std::vector<Array>& points, const VerifyGradOptions& options = {},
                            Loc loc = Loc::current());

}  // namespace croton
