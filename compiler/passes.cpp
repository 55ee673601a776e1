#include "compiler/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "compiler/graph/op.h"
#include "compiler/rewrite/rewrite.h"
#include "compiler/rewrite/selection.h"
#include "compiler/rewrite/trace.h"
#include "config/nearest_name.h"
#include "croton/error.h"
#include "runtime/log.h"

namespace croton {

Graph expand(const Graph& graph, const CompileContext&) {
  // An expansion may contain ops that expand again.
  Graph result = graph;
  for (bool changed = true; changed;) {
    changed = false;
    result = rebuild(result, [&](const Node& node) -> std::vector<Variable> {
      if (node.op->expand == nullptr) return {};
      changed = true;
      const std::uint64_t since = next_node_id();
      std::vector<Variable> values = node.op->expand(node);
      for (const Variable& value : values) stand_for(value, since, node);
      return values;
    });
  }
  return result;
}

namespace {

bool is_index_map(const Node& node) {
  return node.op->element != nullptr && node.op->cost <= 1 && !node.op->view &&
         node.outputs.size() == 1;
}

}  // namespace

Graph unshare(const Graph& graph, const CompileContext&) {
  VariableMap<int> uses;
  for (const Node* node : graph.order()) {
    for (const Variable& input : node->inputs) ++uses[input];
  }
  // Copies of index maps below copies of index maps, without recursion: chains may be long.
  const auto copy_of = [&](const Variable& v) {
    std::vector<const Node*> chain;
    for (const Node* node = v.node(); is_index_map(*node); node = node->inputs[0].node()) {
      chain.push_back(node);
      if (node->inputs.empty()) break;
    }
    Variable below = chain.back()->inputs.empty() ? Variable() : chain.back()->inputs[0];
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
      std::vector<Variable> inputs = (*it)->inputs;
      if (!inputs.empty() && below.defined()) inputs[0] = below;
      below = with_inputs(**it, std::move(inputs));
    }
    return below;
  };
  return rebuild(graph, [&](const Node& node) -> std::vector<Variable> {
    std::vector<Variable> inputs = node.inputs;
    bool changed = false;
    for (Variable& input : inputs) {
      if (!is_index_map(*input.node())) continue;
      const auto found = uses.find(input);
      if (found != uses.end() && found->second <= 1) continue;
      input = copy_of(input);
      changed = true;
    }
    if (!changed) return {};
    const Variable copy = with_inputs(node, std::move(inputs));
    std::vector<Variable> values;
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      values.push_back(copy.node()->out(static_cast<int>(k)));
    }
    return values;
  });
}

namespace {

constexpr Pass kPipeline[] = {
    {"locate", "work on several contexts is placed, so that rules leave it there", locate, true},
    {"merge", "nodes that compute the same become one", merge, false},
    {"canonicalize", "one form for each of many ways to write the same", canonicalize, false, true,
     Precision::stabilising},
    // Rules look for the same node on both sides of a pattern.
    {"merge", "what became equal by that", merge, false},
    {"stabilize", "forms that neither overflow nor cancel", stabilize, false, true,
     Precision::stabilising},
    // The patterns above are made of ops that this takes apart.
    {"expand", "ops that stand for smaller ones become those", expand, true, false,
     Precision::rounding},
    {"merge", "what the parts have in common", merge, false},
    {"specialize", "calls of libraries take up what stands around them", specialize, false, true,
     Precision::stabilising},
    {"place", "each node gets a context; transfers go between contexts", place, true},
    {"unshare", "index maps are computed where they are read", unshare, true},
};

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

bool wants_dump(const CompileContext& context, std::string_view place) {
  const std::string& wanted = context.config.dump();
  return context.dump && (wanted == "all" || wanted == "after:" + std::string(place));
}

namespace {

void check_dump(const std::string& wanted) {
  if (wanted.empty() || wanted == "all") return;
  std::vector<std::string> places{"after:build", "after:fuse", "after:plan"};
  for (const Pass& pass : pipeline()) {
    const std::string place = std::string("after:") + pass.name;
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  }
  if (std::find(places.begin(), places.end(), wanted) != places.end()) return;
  throw ConfigError(
      fmt::format("[dump] got '{}', which is no place in the compiler{}; there are: "
                  "all, {}",
                  wanted, did_you_mean(wanted, places), fmt::join(places, ", ")));
}

void verify_after(const Pass& pass, const Graph& graph) {
  try {
    verify(graph);
  } catch (const InternalError& error) {
    throw InternalError(fmt::format("[DEBUG] after pass '{}': {}", pass.name, error.what()));
  }
}

}  // namespace

FunctionGraph optimize(FunctionGraph function, const CompileContext& context) {
  check_dump(context.config.dump());
  const auto dump = [&](const std::string& pass) {
    if (wants_dump(context, pass)) context.dump(pass, to_text(function.graph));
  };
  dump("build");
  check_rule_flags(context.config);
  for (const Pass& pass : pipeline()) {
    if (!pass.rules && !is_pass_selected(pass.name, pass.needed, context.config)) continue;
    const auto start = std::chrono::steady_clock::now();
    Graph after = pass.run(function.graph, context);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    log_debug(fmt::format("pass {}: {:.2f} ms", pass.name, time.count()));
    if (context.trace) {
      verify_after(pass, after);
      context.trace->passes.push_back({pass.name, pass.precision, function.graph, after});
    }
    function.graph = std::move(after);
    dump(pass.name);
  }
  return function;
}

Plan compile(FunctionGraph function, const CompileContext& context) {
  const Graph written = function.graph;
  return make_plan(optimize(std::move(function), context), context, &written);
}

}  // namespace croton
