#include "frontend/function_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "compiler/graph/gradient_ops.h"
#include "compiler/graph/op.h"
#include "croton/error.h"
#include "croton/tensor.h"
#include "runtime/log.h"
#include "runtime/runtime.h"
#include "runtime/shared_state.h"

namespace croton {
namespace {

std::string title(const Variable& v, std::size_t position) {
  return v.name().empty() ? fmt::format("input {}", position)
                          : fmt::format("input {} (\"{}\")", position, v.name());
}

}  // namespace

FunctionMaker::FunctionMaker(const std::vector<Variable>& inputs, const OutputList& outputs,
                             const FunctionOptions& options, const Config& config, const Loc& loc)
    : inputs_(inputs),
      options_(options),
      on_unused_(options.on_unused.value_or(config.on_unused_input())),
      loc_(loc) {
  graph.name = options.name.empty() ? to_text(loc) : options.name;
  graph.keep_on_device = options.keep_on_device;
  check_inputs();
  graph.graph.inputs = inputs;
  add_outputs(outputs);
  add_updates();
  apply_givens();
  graph.graph = without_rules(graph.graph);
  if (!options.no_default_updates) add_default_updates();
  check_reachable();
}

void FunctionMaker::fail(const std::string& message) const {
  throw GraphError(fmt::format("[function] {}; at {}", message, to_text(loc_)));
}

void FunctionMaker::check_inputs() {
  std::unordered_set<const Node*> seen;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Variable& input = inputs_[i];
    if (!input.defined()) fail(fmt::format("input {} is an empty Variable", i));
    if (input.node()->shared) {
      fail(
          fmt::format("{} is a shared variable, which a function reads without being passed it: "
                      "leave it out, or replace it with .givens",
                      title(input, i)));
    }
    if (is_op(input, "constant")) fail(fmt::format("{} is a constant", title(input, i)));
    if (!is_op(input, "input")) {
      fail(
          fmt::format("{} is the result of '{}': inputs are symbols made by matrix(\"x\") and the "
                      "like; replace inner values with .givens",
                      title(input, i), place_of(*input.node()).op));
    }
    if (!seen.insert(input.node()).second) fail(fmt::format("{} is given twice", title(input, i)));
  }
}

void FunctionMaker::add_outputs(const OutputList& outputs) {
  bool named = false;
  for (const Output& output : outputs.list) named = named || !output.name.empty();
  std::unordered_set<std::string> seen;
  for (std::size_t i = 0; i < outputs.list.size(); ++i) {
    const Output& output = outputs.list[i];
    if (!output.value.defined()) fail(fmt::format("output {} is an empty Variable", i));
    if (!output.name.empty() && !seen.insert(output.name).second) {
      fail(fmt::format("two outputs are called '{}'", output.name));
    }
    graph.graph.outputs.push_back(output.value);
    if (named) output_names.push_back(output.name);
  }
  graph.user_outputs = outputs.list.size();
}

Variable FunctionMaker::update_value(const Update& update) const {
  const Variable& target = update.target;
  const SharedState& state = *target.node()->shared;
  if (update.value.is_literal()) {
    return make_scalar(target.dtype(), update.value.literal(),
                       update.value.loc().named("function"));
  }
  const Variable value = update.value.variable();
  const Type& is = value.node()->outputs[value.output()];
  const Type& wanted = target.node()->outputs[target.output()];
  std::string hint;
  if (is.dtype != wanted.dtype) {
    hint = fmt::format("; convert it with .astype(DType::{})", name_of(wanted.dtype));
  }
  bool fits = is.dtype == wanted.dtype && is.shape.size() == wanted.shape.size();
  for (std::size_t axis = 0; fits && axis < is.shape.size(); ++axis) {
    fits = is.shape[axis] == kAnyDim || wanted.shape[axis] == kAnyDim ||
           is.shape[axis] == wanted.shape[axis];
  }
  if (!fits) {
    throw GraphError(fmt::format(
        "[function] the update of {} has another type: got {}, expected "
        "{}{}; at {}",
        state.title(), is.to_text(), wanted.to_text(), hint, to_text(update.value.loc())));
  }
  return value;
}

void FunctionMaker::add_updates() {
  std::unordered_set<const SharedState*> seen;
  for (const Update& update : options_.updates) {
    if (!update.target.defined()) fail("an update has an empty Shared as its target");
    const SharedState* state = update.target.node()->shared.get();
    if (!seen.insert(state).second) {
      fail(fmt::format("{} is updated twice", state->title()));
    }
    Variable value = update_value(update);
    if (value.ndim() == 0 && update.target.ndim() != 0) {
      fail(fmt::format("the update of {} is a scalar, but the variable has {} axes", state->title(),
                       update.target.ndim()));
    }
    graph.updated.push_back(update.target);
    graph.graph.outputs.push_back(std::move(value));
  }
}

void FunctionMaker::apply_givens() {
  if (options_.givens.empty()) return;
  for (const Given& given : options_.givens) {
    if (!given.value.defined()) fail("a given replaces an empty Variable");
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].same(given.value)) {
        fail(fmt::format("{} is replaced by a given: leave it out of the inputs",
                         title(inputs_[i], i)));
      }
    }
    Variable replacement = given.replacement.is_literal()
                               ? make_scalar(given.value.dtype(), given.replacement.literal(),
                                             given.replacement.loc().named("function"))
                               : given.replacement.variable();
    if (replacement.dtype() != given.value.dtype() || replacement.ndim() != given.value.ndim()) {
      const Variable& v = given.value;
      fail(fmt::format("a given has another type than what it replaces: got {}, expected {}",
                       replacement.node()->outputs[replacement.output()].to_text(),
                       v.node()->outputs[v.output()].to_text()));
    }
    if (!replacements_.emplace(given.value, replacement).second) {
      fail("a value is replaced by two givens");
    }
  }
  graph.graph = rebuild(graph.graph, {}, replacements_);
}

void FunctionMaker::bind_transfers(const Runtime& runtime) {
  graph.graph = rebuild(graph.graph, [&](const Node& node) -> std::vector<Variable> {
    if (node.op->form != OpForm::move) return {};
    const std::string& name = node.attrs().text("context");
    try {
      const std::string canonical = runtime.canonical_name(name);
      if (canonical == name) return {};
      return {transfer(Operand(node.inputs[0], node.loc), canonical)};
    } catch (const ConfigError& error) {
      throw ConfigError(
          fmt::format("{}; asked for by transfer at {}", error.what(), to_text(node.loc)));
    }
  });
}

void FunctionMaker::add_default_updates() {
  std::unordered_set<const SharedState*> updated;
  for (const Variable& v : graph.updated) updated.insert(v.node()->shared.get());
  for (const Node* node : graph.graph.order()) {
    if (!node->increment.defined() || !updated.insert(node->shared.get()).second) continue;
    Graph increment;
    increment.outputs = {node->increment};
    if (!replacements_.empty()) increment = rebuild(increment, {}, replacements_);
    graph.updated.push_back(node->out());
    graph.graph.outputs.push_back(apply("add", {node->out(), increment.outputs[0]}, {}, node->loc));
  }
}

void FunctionMaker::check_reachable() {
  std::unordered_set<const Node*> needed;
  for (const Node* node : graph.graph.order()) {
    if (node->op->name == "input") needed.insert(node);
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (needed.erase(inputs_[i].node()) != 0 || on_unused_ == OnUnused::ignore) continue;
    const std::string message = fmt::format(
        "{} is not needed by any output or update: leave it out, or set .on_unused = "
        "OnUnused::ignore",
        title(inputs_[i], i));
    if (on_unused_ == OnUnused::raise) fail(message);
    log_warning(fmt::format("[function] {}; at {}", message, to_text(loc_)));
  }
  for (const Node* node : needed) {
    fail(fmt::format("the graph needs '{}' ({}, made at {}), which is not among the inputs",
                     node->name->empty() ? "a symbol without a name" : *node->name,
                     node->outputs[0].to_text(), to_text(node->loc)));
  }
}

}  // namespace croton
