#include "croton/optimizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "compiler/graph/node.h"
#include "croton/context.h"
#include "croton/error.h"
#include "croton/math.h"
#include "croton/reduce.h"
#include "croton/tensor.h"
#include "frontend/default_runtime.h"
#include "frontend/training.h"
#include "ops/build.h"
#include "ops/built_at.h"
#include "runtime/runtime.h"
#include "runtime/shared_state.h"

namespace croton {
namespace {

/// What steps are worked out in.
DType wide_dtype(const Variable& x) { return is_narrow(x.dtype()) ? DType::float32 : x.dtype(); }

/// Ops built while it lives go to `context`: where no ContextScope is in force and that is the
/// default one, they go there anyway.
class OnContext {
 public:
  explicit OnContext(const std::string& context) {
    if (build_settings().context != nullptr || default_runtime()->default_context() != context) {
      scope_.emplace(context);
    }
  }

 private:
  std::optional<ContextScope> scope_;
};

struct Bounds {
  double low, high;  ///< high is excluded
};

/// One optimizer under way.
class Rule {
 public:
  Rule(std::string_view op, const std::vector<Variable>& gradients,
       const std::vector<Shared>& parameters, const Operand& rate, const Loc& loc)
      : op_(op), loc_(loc.named(op)), parameters_(parameters) {
    check_parameters(op, parameters, loc_);
    check_gradients(gradients);
    result_.gradients = gradients;
    rate_ = checked_rate(rate);
  }

  [[noreturn]] void fail(const std::string& message) const { graph_error(op_, message, loc_); }

  void check_option(std::string_view name, double value, Bounds bounds) const {
    if (value >= bounds.low && value < bounds.high) return;
    fail(fmt::format("{} is {}: expected {}", name, value,
                     std::isinf(bounds.high)
                         ? fmt::format("a finite number, at least {}", bounds.low)
                         : fmt::format("at least {} and below {}", bounds.low, bounds.high)));
  }
  void check_fraction(std::string_view name, double value) const {
    check_option(name, value, {0, 1});
  }
  void check_not_negative(std::string_view name, double value) const {
    check_option(name, value, {0, INFINITY});
  }

  /// The step counter; its new value is what `corrected` goes by.
  void count_steps(const std::string& name) {
    const std::string& context = context_of(parameters_[0]);
    const OnContext on(context);
    const Shared steps =
        shared(Array(std::int64_t{0}), {.name = name + ".step", .target = context}, loc_);
    count_ = built_at(loc_, [&] { return steps + 1; });
    result_.state.push_back(steps);
    result_.updates.push_back({steps, Operand(count_, loc_)});
  }

  /// Updates all parameters; `step(r)` is what the current one loses.
  template <class Step>
  Optimizer run(Step step) {
    std::vector<Update> moved;
    for (; at_ < parameters_.size(); ++at_) {
      const Shared& p = parameters_[at_];
      const OnContext on(context_of(p));
      const Variable next =
          built_at(loc_, [&] { return cast_to(value() - step(*this), p.dtype(), loc_); });
      moved.push_back({p, Operand(next, loc_)});
    }
    result_.updates.insert(result_.updates.end(), moved.begin(), moved.end());
    return std::move(result_);
  }

  // Of the current parameter, in the dtype that its step is worked out in:
  const Shared& parameter() const { return parameters_[at_]; }
  DType dtype() const { return wide_dtype(parameter()); }
  Variable value() const { return cast_to(parameter(), dtype(), loc_); }
  Variable g() const { return cast_to(result_.gradients[at_], dtype(), loc_); }
  Variable rate() const { return cast_to(here(rate_), dtype(), loc_); }

  /// A state that starts with `start` everywhere.
  Shared state(std::string_view suffix, double start = 0) {
    const Shared& p = parameter();
    const SharedState& of = *p.node()->shared;
    const std::string& name = of.name.empty() ? fmt::format("parameter{}", at_) : of.name;
    const Shape shape = of.resizable ? p.get_value().shape() : p.static_shape();
    Shared made = shared(Array::full(shape, start, dtype()),
                         {.name = fmt::format("{}.{}", name, suffix),
                          .target = of.context,
                          .resizable = of.resizable},
                         loc_);
    result_.state.push_back(made);
    return made;
  }
  /// What a state is after the call.
  Variable becomes(const Shared& state, const Variable& next) {
    result_.updates.push_back({state, Operand(next, loc_)});
    return next;
  }
  /// A state that follows `x`: decay times itself plus (1 - decay) x.
  Variable average(const Shared& state, double decay, const Variable& x) {
    return becomes(state, decay * state + (1 - decay) * x);
  }
  /// 1 / (1 - beta^k) at the k-th step, what an average that began with 0 lacks.
  Variable corrected(double beta) const {
    std::optional<OnContext> on(std::in_place, context_of(parameters_[0]));
    const Variable lacks =
        reciprocal(-expm1(cast_to(count_, DType::float64, loc_) * std::log(beta)));
    on.reset();
    return cast_to(here(lacks), dtype(), loc_);
  }

 private:
  static const std::string& context_of(const Shared& p) { return p.node()->shared->context; }

  /// A scalar on the context of the current parameter.
  Variable here(const Variable& x) const {
    const std::string& context = context_of(parameter());
    if (x.context().empty() || x.context() == context) return x;
    return x.transfer(context, loc_);
  }

  Variable checked_rate(const Operand& rate) const {
    if (rate.is_literal()) {
      const double value = rate.literal().real;
      check_not_negative("learning_rate", value);
      return make_scalar(DType::float64, value, loc_);
    }
    const Variable x = rate.variable();
    if (x.ndim() != 0 || !is_float(x.dtype())) {
      fail(fmt::format("learning_rate is {}: expected a float scalar", text_of(x)));
    }
    return x;
  }

  void check_gradients(const std::vector<Variable>& gradients) const {
    if (gradients.size() != parameters_.size()) {
      fail(fmt::format("{} gradients came for {} parameters: expected one for each",
                       gradients.size(), parameters_.size()));
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Variable& g = gradients[i];
      const std::string title = parameters_[i].node()->shared->title();
      if (!g.defined()) {
        fail(
            fmt::format("the gradient of {} is an empty Variable: leave out the parameters that "
                        "the cost does not depend on",
                        title));
      }
      bool fits = is_float(g.dtype()) && g.ndim() == parameters_[i].ndim();
      for (int axis = 0; fits && axis < g.ndim(); ++axis) {
        const std::int64_t a = g.static_shape()[axis], b = parameters_[i].static_shape()[axis];
        fits = a == b || a == kAnyDim || b == kAnyDim;
      }
      if (!fits) {
        fail(
            fmt::format("the gradient of {} has another type: got {}, expected a float of "
                        "shape {}",
                        title, text_of(g), parameters_[i].static_shape().to_string()));
      }
    }
  }

  const std::string_view op_;
  const Loc loc_;
  const std::vector<Shared>& parameters_;
  Variable rate_, count_;
  std::size_t at_ = 0;
  Optimizer result_;
};

/// The step of adam and adamw without decay.
Variable adam_step(Rule& r, double beta1, double beta2, double epsilon) {
  const Variable m = r.average(r.state("mean"), beta1, r.g());
  const Variable v = r.average(r.state("mean_square"), beta2, square(r.g()));
  return m * (r.rate() * r.corrected(beta1)) / (sqrt(v * r.corrected(beta2)) + epsilon);
}

void check_moments(const Rule& r, double beta1, double beta2, double epsilon) {
  r.check_fraction("beta1", beta1);
  r.check_fraction("beta2", beta2);
  r.check_not_negative("epsilon", epsilon);
}

}  // namespace

Optimizer sgd(const std::vector<Variable>& gradients, const std::vector<Shared>& parameters,
              const SgdOptions& options, Loc loc) {
  return Rule("sgd", gradients, parameters, options.learning_rate, loc).run([](Rule& r) {
    return r.rate() * r.g();
  });
}

Optimizer momentum(const std::vector<Variable>& gradients, const std::vector<Shared>& parameters,
                   const MomentumOptions& options, Loc loc) {
  Rule rule("momentum", gradients, parameters, options.learning_rate, loc);
  rule.check_fraction("momentum", options.momentum);
  return rule.run([&](Rule& r) {
    const Shared v = r.state("velocity");
    return -r.becomes(v, options.momentum * v - r.rate() * r.g());
  });
}

Optimizer nesterov_momentum(const std::vector<Variable>& gradients,
                            const std::vector<Shared>& parameters, const MomentumOptions& options,
                            Loc loc) {
  Rule rule("nesterov_momentum", gradients, parameters, options.learning_rate, loc);
  rule.check_fraction("momentum", options.momentum);
  return rule.run([&](Rule& r) {
    const Shared v = r.state("velocity");
    const Variable step = r.rate() * r.g();
    return step - options.momentum * r.becomes(v, options.momentum * v - step);
  });
}

Optimizer adagrad(const std::vector<Variable>& gradients, const std::vector<Shared>& parameters,
                  const AdagradOptions& options, Loc loc) {
  Rule rule("adagrad", gradients, parameters, options.learning_rate, loc);
  rule.check_not_negative("initial_accumulator", options.initial_accumulator);
  rule.check_not_negative("epsilon", options.epsilon);
  return rule.run([&](Rule& r) {
    const Shared s = r.state("squares", options.initial_accumulator);
    return r.rate() * r.g() / sqrt(r.becomes(s, s + square(r.g())) + options.epsilon);
  });
}

Optimizer rmsprop(const std::vector<Variable>& gradients, const std::vector<Shared>& parameters,
                  const RmspropOptions& options, Loc loc) {
  Rule rule("rmsprop", gradients, parameters, options.learning_rate, loc);
  rule.check_fraction("rho", options.rho);
  rule.check_not_negative("epsilon", options.epsilon);
  return rule.run([&](Rule& r) {
    const Variable s = r.average(r.state("mean_square"), options.rho, square(r.g()));
    return r.rate() * r.g() / sqrt(s + options.epsilon);
  });
}

Optimizer adadelta(const std::vector<Variable>& gradients, const std::vector<Shared>& parameters,
                   const AdadeltaOptions& options, Loc loc) {
  Rule rule("adadelta", gradients, parameters, options.learning_rate, loc);
  rule.check_fraction("rho", options.rho);
  rule.check_not_negative("epsilon", options.epsilon);
  return rule.run([&](Rule& r) {
    const Variable s = r.average(r.state("mean_square"), options.rho, square(r.g()));
    const Shared t = r.state("mean_square_step");
    const Variable d = r.g() * sqrt(t + options.epsilon) / sqrt(s + options.epsilon);
    r.average(t, options.rho, square(d));
    return r.rate() * d;
  });
}

Optimizer adam(const std::vector<Variable>& gradients, const std::vector<Shared>& parameters,
               const AdamOptions& options, Loc loc) {
  Rule rule("adam", gradients, parameters, options.learning_rate, loc);
  check_moments(rule, options.beta1, options.beta2, options.epsilon);
  rule.count_steps(options.name);
  return rule.run(
      [&](Rule& r) { return adam_step(r, options.beta1, options.beta2, options.epsilon); });
}

Optimizer adamax(const std::vector<Variable>& gradients, const std::vector<Shared>& parameters,
                 const AdamaxOptions& options, Loc loc) {
  Rule rule("adamax", gradients, parameters, options.learning_rate, loc);
  check_moments(rule, options.beta1, options.beta2, options.epsilon);
  rule.count_steps(options.name);
  return rule.run([&](Rule& r) {
    const Variable m = r.average(r.state("mean"), options.beta1, r.g());
    const Shared norm = r.state("norm");
    const Variable u = r.becomes(norm, maximum(options.beta2 * norm, abs(r.g())));
    return m * (r.rate() * r.corrected(options.beta1)) / (u + options.epsilon);
  });
}

Optimizer adamw(const std::vector<Variable>& gradients, const std::vector<Shared>& parameters,
                const AdamwOptions& options, Loc loc) {
  Rule rule("adamw", gradients, parameters, options.learning_rate, loc);
  check_moments(rule, options.beta1, options.beta2, options.epsilon);
  rule.check_not_negative("weight_decay", options.weight_decay);
  const auto is_in = [](const Shared& p, const std::vector<Shared>& list) {
    return std::any_of(list.begin(), list.end(), [&](const Shared& q) { return q.same(p); });
  };
  for (const Shared& p : options.without_decay) {
    if (p.defined() && is_in(p, parameters)) continue;
    rule.fail(fmt::format("without_decay has {}, which is not among the parameters",
                          p.defined() ? p.node()->shared->title() : "an empty Shared"));
  }
  rule.count_steps(options.name);
  return rule.run([&](Rule& r) {
    const Variable step = adam_step(r, options.beta1, options.beta2, options.epsilon);
    if (is_in(r.parameter(), options.without_decay)) return step;
    return step + r.rate() * options.weight_decay * r.value();
  });
}

void check_parameters(std::string_view op, const std::vector<Shared>& parameters, const Loc& loc) {
  if (parameters.empty()) graph_error(op, "there are no parameters", loc);
  std::unordered_set<const Node*> seen;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Shared& p = parameters[i];
    if (!p.defined()) graph_error(op, fmt::format("parameter {} is an empty Shared", i), loc);
    const std::string title = p.node()->shared->title();
    if (!is_float(p.dtype())) {
      graph_error(op,
                  fmt::format("{} is {}: expected a float; leave out what is not trained", title,
                              name_of(p.dtype())),
                  loc);
    }
    if (!seen.insert(p.node()).second) graph_error(op, title + " is given twice", loc);
  }
}

std::vector<Variable> parameter_gradients(const Variable& cost,
                                          const std::vector<Shared>& parameters, Loc loc) {
  check_parameters("parameter_gradients", parameters, loc);
  return grad(cost, std::vector<Variable>(parameters.begin(), parameters.end()), {}, loc);
}

}  // namespace croton
