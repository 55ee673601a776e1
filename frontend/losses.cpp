#include "croton/losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "compiler/graph/node.h"
#include "config/nearest_name.h"
#include "croton/error.h"
#include "croton/indexing.h"
#include "croton/math.h"
#include "croton/reduce.h"
#include "croton/symbols.h"
#include "croton/tensor.h"
#include "frontend/row_functions.h"
#include "frontend/training.h"
#include "ops/build.h"
#include "ops/built_at.h"

namespace croton {
namespace {

constexpr std::string_view kOp = "named_losses";

std::string listed(const std::vector<std::string>& names) {
  return fmt::format("'{}'", fmt::join(names, "', '"));
}

/// Where one output stands.
struct Head {
  std::string name;
  Variable output;
  bool trained = true;
  const Loss* loss = nullptr;
  const Operand* loss_weight = nullptr;
  const Variable* given_target = nullptr;
  const Variable* sample_weights = nullptr;
  const Operand* class_weights = nullptr;
  const std::vector<Metric>* metrics = nullptr;
  Variable target;
  Variable weights;  ///< undefined: all rows count alike
};

class LossMaker {
 public:
  LossMaker(const OutputList& outputs, const NamedLossesOptions& options, const Loc& loc)
      : options_(options), loc_(loc) {
    read_outputs(outputs);
    assign("loss", options.loss, &Head::loss, "name it in `untrained` if it has none");
    assign("loss_weights", options.loss_weights, &Head::loss_weight, "1 leaves a loss as it is");
    assign("metrics", options.metrics.lists(), &Head::metrics);
    assign("targets", options.targets, &Head::given_target);
    assign("sample_weights", options.sample_weights, &Head::sample_weights);
    assign("class_weights", options.class_weights, &Head::class_weights);
  }

  NamedLosses make() {
    for (Head& head : heads_) {
      if (head.loss == nullptr && (head.metrics == nullptr || head.metrics->empty())) {
        check_unused(head);
        continue;
      }
      head.target = target_of(head);
      result_.targets.emplace_back(head.name, head.target);
      head.weights = weights_of(head);
    }
    for (const Head& head : heads_) {
      if (head.loss != nullptr) add_loss(head);
    }
    for (const Head& head : heads_) {
      if (head.metrics == nullptr) continue;
      for (const Metric& metric : *head.metrics) add_metric(head, metric);
    }
    add_up();
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { graph_error(kOp, message, loc_); }

  void read_outputs(const OutputList& outputs) {
    if (outputs.list.empty()) fail("there are no outputs");
    for (const Output& output : outputs.list) {
      if (output.name.empty()) {
        fail(fmt::format("output {} has no name: write {{\"name\", value}}", heads_.size()));
      }
      if (std::count(names_.begin(), names_.end(), output.name) > 0) {
        fail(fmt::format("two outputs are called '{}'", output.name));
      }
      if (!output.value.defined())
        fail(fmt::format("output '{}' is an empty Variable", output.name));
      if (output.value.ndim() == 0) {
        fail(fmt::format("output '{}' is a scalar: expected rows along axis 0", output.name));
      }
      names_.push_back(output.name);
      Head& head = heads_.emplace_back();
      head.name = output.name;
      head.output = output.value;
    }
    for (const std::string& name : options_.untrained) head_of("untrained", name).trained = false;
  }

  void check_unused(const Head& head) const {
    const char* const option = head.given_target != nullptr     ? "targets"
                               : head.sample_weights != nullptr ? "sample_weights"
                               : head.class_weights != nullptr  ? "class_weights"
                                                                : nullptr;
    if (option == nullptr) return;
    fail(fmt::format("{} has '{}', an output without loss and metrics", option, head.name));
  }

  Head& head_of(std::string_view option, const std::string& name) {
    for (Head& head : heads_) {
      if (head.name == name) return head;
    }
    fail(fmt::format("{} has '{}', and the outputs are {}{}", option, name, listed(names_),
                     did_you_mean(name, names_)));
  }

  /// Gives each output its item of an option. With `hint`, an option about losses: outputs that are
  /// not trained have none, all others must.
  template <class T>
  void assign(std::string_view option, const PerOutput<T>& given, const T* Head::*member,
              const char* hint = nullptr) {
    using Form = typename PerOutput<T>::Form;
    const auto& items = given.items();
    std::vector<Head*> heads;
    for (Head& head : heads_) {
      if (head.trained) heads.push_back(&head);
    }
    if (given.form() == Form::list && items.size() != heads.size()) {
      fail(fmt::format("{} has {} entries for {} {}outputs: {}", option, items.size(), heads.size(),
                       heads.size() < heads_.size() ? "trained " : "", listed(names_)));
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      const T* item = &items[i].second;
      if (given.form() == Form::list) {
        heads[i]->*member = item;
      } else if (given.form() == Form::one) {
        for (Head* head : heads) head->*member = item;
      } else {
        Head& head = head_of(option, items[i].first);
        if (hint != nullptr && !head.trained) {
          fail(fmt::format("{} has '{}', which `untrained` names, too", option, head.name));
        }
        if (head.*member != nullptr) fail(fmt::format("{} has '{}' twice", option, head.name));
        head.*member = item;
      }
    }
    if (hint == nullptr || (given.form() == Form::none && option != "loss")) return;
    for (const Head* head : heads) {
      if (head->*member == nullptr) {
        fail(fmt::format("{} has nothing for the output '{}': {}", option, head->name, hint));
      }
    }
  }

  const RowFormula& formula(std::string_view option, const std::string& name, bool losses) const {
    const RowFormula* found = row_formula(name);
    if (found != nullptr && (found->loss || !losses)) return *found;
    const std::vector<std::string> known = row_formula_names(losses);
    fail(fmt::format("{} '{}' is unknown: expected a function or one of {}{}", option, name,
                     listed(known), did_you_mean(name, known)));
  }

  const RowFormula* loss_formula(const Head& head) const {
    if (head.loss == nullptr || head.loss->function) return nullptr;
    return &formula("loss", head.loss->name, true);
  }

  Variable target_of(const Head& head) const {
    if (head.given_target != nullptr) {
      if (!head.given_target->defined()) {
        fail(fmt::format("the target of '{}' is an empty Variable", head.name));
      }
      return *head.given_target;
    }
    const RowFormula* formula = loss_formula(head);
    const std::string name = head.name + "_target";
    Shape shape = head.output.static_shape();
    if (formula == nullptr || formula->axes_less == 0) {
      return tensor(name, head.output.dtype(), shape, loc_);
    }
    shape.pop_back();
    return tensor(name, DType::int64, shape, loc_);
  }

  DType wide(const Head& head) const {
    const DType dtype = head.output.dtype();
    return dtype == DType::float64 ? dtype : DType::float32;
  }

  /// The class of each row, of the target's rank or, where classes lie along its last axis, one
  /// less.
  Variable classes_of(const Head& head) const {
    const Variable& t = head.target;
    if (!is_float(t.dtype()) && t.ndim() < head.output.ndim())
      return cast_to(t, DType::int64, loc_);
    if (t.ndim() == 1) return cast_to(is_float(t.dtype()) ? round(t) : t, DType::int64, loc_);
    if (t.static_shape()[t.ndim() - 1] == 1) {
      const Variable flat = squeeze(t, -1);
      return cast_to(is_float(t.dtype()) ? round(flat) : flat, DType::int64, loc_);
    }
    return argmax(t, -1);
  }

  Variable weights_of(const Head& head) const {
    Variable result;
    const auto check = [&](const Variable& w, std::string_view option, bool fits) {
      if (fits && !is_bool(w.dtype())) return;
      fail(fmt::format(
          "{} of '{}' is {}: expected {}", option, head.name, text_of(w),
          option == "class_weights" ? "a vector of numbers" : "numbers, one for each row"));
    };
    if (head.sample_weights != nullptr) {
      result = Operand(*head.sample_weights, loc_).variable();
      check(result, "sample_weights", result.ndim() >= 1 && result.ndim() <= head.output.ndim());
      result = cast_to(result, wide(head), loc_);
    }
    if (head.class_weights == nullptr) return result;
    const Variable factors = head.class_weights->variable();
    check(factors, "class_weights", factors.ndim() == 1);
    return built_at(loc_, [&] {
      const Variable w = cast_to(take(Operand(factors, loc_), Operand(classes_of(head), loc_), 0),
                                 wide(head), loc_);
      return result.defined() ? padded(result, w.ndim()) * padded(w, result.ndim()) : w;
    });
  }

  /// With axes of size 1 behind, up to a rank.
  static Variable padded(const Variable& x, int rank) {
    return x.ndim() < rank ? shape_padright(x, rank - x.ndim()) : x;
  }

  void check_new(const std::string& name) {
    if (!reported_.insert(name).second)
      fail(fmt::format("two reported values are called '{}'", name));
  }

  /// The parts of a mean over rows.
  NamedValue mean_of(const Head& head, std::string name, const RowFunction& function,
                     bool weighted) const {
    Variable value = function(head.target, head.output);
    if (!value.defined() || value.ndim() == 0) {
      fail(
          fmt::format("'{}' is {}: expected one value for each row of '{}', without a mean over "
                      "them",
                      name, value.defined() ? "a scalar" : "an empty Variable", head.name));
    }
    // What the user's function built keeps its places.
    const std::uint64_t since = next_node_id();
    value = cast_to(value, value.dtype() == DType::float64 ? DType::float64 : wide(head), loc_);
    Variable w;
    if (weighted) w = cast_to(head.weights, value.dtype(), loc_);
    const int rank = weighted ? w.ndim() : 1;
    if (rank > value.ndim()) {
      fail(fmt::format("the weights of '{}' have {} axes, and '{}' has {}", head.name, rank, name,
                       value.ndim()));
    }
    std::vector<int> rest;
    for (int axis = rank; axis < value.ndim(); ++axis) rest.push_back(axis);
    if (!rest.empty()) value = mean(value, rest);
    const Variable count = cast_to(value.size(loc_), value.dtype(), loc_);
    NamedValue result{std::move(name), {}, count};
    if (weighted) {
      // Losses need not be finite where they count nothing.
      value = where(eq(w, 0), 0, w * value);
      if (options_.mean == WeightedMean::by_weights) result.weight = sum(w * ones_like(value));
    }
    result.sum = sum(value);
    relocate(result.sum, since, loc_);
    relocate(result.weight, since, loc_);
    return result;
  }

  void check_ranks(const Head& head, const RowFormula& formula) const {
    const int wanted = head.output.ndim() - formula.axes_less;
    const bool whole = formula.axes_less == 0 || !is_float(head.target.dtype());
    if (head.target.ndim() == wanted && whole && (formula.axes_less == 0 || wanted > 0)) return;
    fail(fmt::format(
        "the target of '{}' is {}, and '{}' of an output of {} axes takes {} of {} axes", head.name,
        text_of(head.target), formula.name, head.output.ndim(),
        formula.axes_less == 0 ? "a target" : "integers", wanted));
  }

  void add_loss(const Head& head) {
    const RowFormula* formula = loss_formula(head);
    if (formula != nullptr) check_ranks(head, *formula);
    const std::string name = head.name + "_loss";
    check_new(name);
    if (!is_float(head.output.dtype()) && formula != nullptr) {
      fail(fmt::format("the output '{}' is {}: expected a float", head.name, text_of(head.output)));
    }
    const RowFunction function = formula != nullptr ? placed(*formula) : head.loss->function;
    result_.losses.push_back(mean_of(head, name, function, head.weights.defined()));
  }

  const RowFormula& accuracy_of(const Head& head) const {
    const RowFormula* loss = loss_formula(head);
    const int rank = head.output.ndim();
    const char* kind = "categorical_accuracy";
    if (head.target.ndim() == rank - 1) {
      kind = "sparse_categorical_accuracy";
    } else if ((loss != nullptr && loss->name == "binary_crossentropy") || rank == 1 ||
               head.output.static_shape()[rank - 1] == 1) {
      kind = "binary_accuracy";
    }
    return *row_formula(kind);
  }

  void add_metric(const Head& head, const Metric& metric) {
    const std::string name = head.name + '_' + metric.name;
    check_new(name);
    const bool weighted = options_.weighted_metrics && head.weights.defined();
    if (metric.function) {
      result_.metrics.push_back(mean_of(head, name, metric.function, weighted));
      return;
    }
    const RowFormula& known =
        metric.name == "accuracy" ? accuracy_of(head) : formula("metric", metric.name, false);
    check_ranks(head, known);
    result_.metrics.push_back(mean_of(head, name, placed(known), weighted));
  }

  /// The function of a name, which builds in the place of the user's line.
  RowFunction placed(const RowFormula& formula) const {
    return [this, &formula](const Variable& target, const Variable& output) {
      return built_at(loc_, [&] { return formula.function(target, output); });
    };
  }

  Variable checked_scalar(const std::string& what, const Variable& x) const {
    if (!x.defined()) fail(what + " is an empty Variable");
    if (x.ndim() == 0 && is_float(x.dtype())) return x;
    fail(fmt::format("{} is {}: expected a float scalar", what, text_of(x)));
  }

  void add_up() {
    if (result_.losses.empty()) fail("no output has a loss");
    Variable total;
    const auto add = [&](const Variable& term) { total = total.defined() ? total + term : term; };
    for (const Variable& term : options_.regularisation) {
      add(checked_scalar("a regularisation term", term));
    }
    result_.regularisation = total;
    total = {};
    std::size_t i = 0;
    for (const Head& head : heads_) {
      if (head.loss == nullptr) continue;
      const NamedValue& loss = result_.losses[i++];
      const Variable factor = factor_of(head, loss.sum.dtype());
      result_.loss_weights.push_back(factor);
      add(head.loss_weight == nullptr ? loss.value(loc_)
                                      : built_at(loc_, [&] { return factor * loss.value(loc_); }));
    }
    if (result_.regularisation.defined()) add(result_.regularisation);
    result_.total = total;
  }

  Variable factor_of(const Head& head, DType dtype) const {
    if (head.loss_weight == nullptr) return make_scalar(dtype, 1.0, loc_);
    if (head.loss_weight->is_literal()) {
      return make_scalar(dtype, head.loss_weight->literal().real, loc_);
    }
    return checked_scalar(fmt::format("the weight of the loss of '{}'", head.name),
                          head.loss_weight->variable());
  }

  const NamedLossesOptions& options_;
  const Loc loc_;
  std::vector<Head> heads_;
  std::vector<std::string> names_;
  std::unordered_set<std::string> reported_{"loss"};
  NamedLosses result_;
};

}  // namespace

Variable NamedValue::value(Loc loc) const {
  return built_at(loc, [&] {
    const Variable none = eq(weight, 0);
    return where(none, 0, sum / where(none, 1, weight));
  });
}

Variable NamedLosses::target(const std::string& output) const {
  std::vector<std::string> names;
  for (const auto& [name, value] : targets) {
    if (name == output) return value;
    names.push_back(name);
  }
  throw UserError(fmt::format("[named_losses] there is no target for '{}': there are {}{}", output,
                              listed(names), did_you_mean(output, names)));
}

OutputList NamedLosses::reported() const {
  std::vector<Output> all{{"loss", total}};
  for (const NamedValue& loss : losses) all.emplace_back(loss.name, loss.value());
  for (const NamedValue& metric : metrics) all.emplace_back(metric.name, metric.value());
  return all;
}

NamedLosses named_losses(const OutputList& outputs, const NamedLossesOptions& options, Loc loc) {
  return LossMaker(outputs, options, loc.named(kOp)).make();
}

}  // namespace croton
