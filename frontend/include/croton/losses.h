#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "croton/export.h"
#include "croton/function.h"
#include "croton/variable.h"

// Training of models with several outputs, each with a name, a loss, metrics and weights of its
// own.
namespace croton {

/// A loss or metric: of a target and an output, in this order. The result has the rows (axis 0) of
/// the output and any further axes, over which it is averaged; a result without rows, such as a
/// mean over the batch, is a GraphError: it could neither be weighted nor summed in parts.
using RowFunction = std::function<Variable(const Variable& target, const Variable& output)>;

template <class F>
concept RowCallable = std::is_invocable_r_v<Variable, F, const Variable&, const Variable&>;

/// A loss, by name or as a function. The names, with Keras's formulas but no clipping (give softmax
/// and sigmoid themselves as outputs, and losses are computed from their operands):
///   "mse", "mean_squared_error"       (target - output)^2
///   "mae", "mean_absolute_error"      |target - output|
///   "binary_crossentropy"             -(t log(o) + (1 - t) log(1 - o))
///   "categorical_crossentropy"        -sum(t log(o)) along the last axis; t has o's shape
///   "sparse_categorical_crossentropy" -log(o[class]); t holds integers, has one axis less
struct CROTON_API Loss {
  Loss(const char* name) : name(name) {}
  Loss(std::string name) : name(std::move(name)) {}
  template <RowCallable F>
  Loss(F function) : function(std::move(function)) {}
  std::string name;
  RowFunction function;
};

/// A metric, by name or as a function with the name that it is reported by. Names are those of the
/// losses, and "binary_accuracy" (both on the same side of 1/2), "categorical_accuracy" (the same
/// argmax along the last axis), "sparse_categorical_accuracy" (argmax is the target), and
/// "accuracy": the one of these three that fits. That is sparse where the target has one axis less
/// than the output, binary where the loss is binary_crossentropy, the output has one axis or its
/// last one is known to have size 1, else categorical.
struct CROTON_API Metric {
  Metric(const char* name) : name(name) {}
  Metric(std::string name) : name(std::move(name)) {}
  Metric(std::string name, RowFunction function)
      : name(std::move(name)), function(std::move(function)) {}
  std::string name;
  RowFunction function;
};

/// Something for each output: none, one for all, a list in the order of the outputs (those that
/// `untrained` does not name), or pairs of names and things.
template <class T>
class PerOutput {
 public:
  enum class Form : std::uint8_t { none, one, list, named };

  PerOutput() = default;
  template <std::convertible_to<T> U>
  PerOutput(const U& one) : form_(Form::one), items_{{std::string(), T(one)}} {}
  PerOutput(std::initializer_list<T> list) : PerOutput(std::vector<T>(list)) {}
  PerOutput(std::initializer_list<std::pair<std::string, T>> named)
      : form_(Form::named), items_(named.begin(), named.end()) {}
  PerOutput(const std::vector<T>& list) : form_(Form::list) {
    for (const T& item : list) items_.emplace_back(std::string(), item);
  }
  PerOutput(const std::map<std::string, T>& named)
      : form_(Form::named), items_(named.begin(), named.end()) {}

  Form form() const { return form_; }
  const std::vector<std::pair<std::string, T>>& items() const { return items_; }

 private:
  Form form_ = Form::none;
  std::vector<std::pair<std::string, T>> items_;
};

/// Metrics for each output: `{"accuracy"}` for all of them, `{{"a", {"mae", "mse"}}}` by name, or a
/// vector of lists in the order of the outputs.
class CROTON_API MetricsPerOutput {
 public:
  MetricsPerOutput() = default;
  MetricsPerOutput(std::initializer_list<Metric> all) : lists_(std::vector<Metric>(all)) {}
  MetricsPerOutput(std::initializer_list<std::pair<std::string, std::vector<Metric>>> named)
      : lists_(named) {}
  MetricsPerOutput(const std::vector<std::vector<Metric>>& lists) : lists_(lists) {}
  MetricsPerOutput(const std::map<std::string, std::vector<Metric>>& named) : lists_(named) {}
  const PerOutput<std::vector<Metric>>& lists() const { return lists_; }

 private:
  PerOutput<std::vector<Metric>> lists_;
};

/// What the weighted sum of a loss is divided by.
enum class WeightedMean : std::uint8_t {
  by_weights,  ///< the sum of the weights: a mean, whatever their size
  by_rows,     ///< the number of rows, as Keras 2.3 and 3 do: weights scale the loss
};

struct NamedLossesOptions {
  /// Required for each output that is not untrained.
  PerOutput<Loss> loss = {};
  /// Factors of the losses in the total; float scalars, 1 when none are given. All or none.
  PerOutput<Operand> loss_weights = {};
  /// Symbols or other values; where none is given a symbol is made, called "<output>_target": of
  /// the output's type, or int64 with one axis less for sparse_categorical_crossentropy.
  PerOutput<Variable> targets = {};
  /// Weights of rows, of rank 1, or of the first k axes of the loss, of rank k. A row of weight 0
  /// counts nothing, also where its loss is not finite; its gradient is 0 where the loss's own is
  /// finite.
  PerOutput<Variable> sample_weights = {};
  /// A vector with a factor for each class: of the integer in the target, or of the largest element
  /// along the last axis where the target has several there. Multiplies sample_weights. A class
  /// outside the vector is a CallError.
  PerOutput<Operand> class_weights = {};
  MetricsPerOutput metrics = {};
  /// Metrics are weighted as the losses are; else all rows count alike.
  bool weighted_metrics = false;
  WeightedMean mean = WeightedMean::by_weights;
  /// Scalars that are added to the total, once, whatever the rows.
  std::vector<Variable> regularisation = {};
  /// Outputs without a loss. Leaving an output out of `loss` without saying so is an error.
  std::vector<std::string> untrained = {};
};

/// A reported average in two parts, each a scalar. Sums of both over parts of the rows, whatever
/// their numbers, give the average over all of them.
struct CROTON_API NamedValue {
  std::string name;
  Variable sum;     ///< of the weighted values
  Variable weight;  ///< what they are divided by
  /// sum / weight; 0 where the weight is 0.
  Variable value(Loc loc = Loc::current()) const;
};

/// What named_losses made.
struct CROTON_API NamedLosses {
  /// sum_i loss_weights[i] * losses[i].value() + regularisation: what is differentiated.
  Variable total;
  /// "<output>_loss" for each trained output, in order.
  std::vector<NamedValue> losses;
  /// One for each of `losses`.
  std::vector<Variable> loss_weights;
  /// The sum of the regularisation terms; empty when there are none.
  Variable regularisation;
  /// "<output>_<metric>", in the order of outputs and of each one's metrics.
  std::vector<NamedValue> metrics;
  /// Of each output that has a loss or metrics, in order: what was given, or the symbol made. The
  /// names are those of the outputs.
  std::vector<std::pair<std::string, Variable>> targets;

  /// The target of an output. UserError when there is none.
  Variable target(const std::string& output) const;
  /// What a training function reports: "loss" (the total), the losses, the metrics.
  OutputList reported() const;
};

/// Puts a loss on each named output of a model. Losses and metrics are means over the rows of each
/// output (over the elements, where rows have several), weighted if weights are given, and summed
/// in float32 for narrower outputs. GraphError, with the user's line: for outputs without a name or
/// of equal names; names in the options that no output has (and what was probably meant), outputs
/// that `loss` or `loss_weights` leave out, lists of another length than the outputs; unknown names
/// of losses and metrics; targets of other ranks than a named loss takes; equal names of reported
/// values. The maps that are given are never changed.
CROTON_API NamedLosses named_losses(const OutputList& outputs, const NamedLossesOptions& options,
                                    Loc loc = Loc::current());

}  // namespace croton
