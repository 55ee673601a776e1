#include "frontend/debug_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "compiler/graph/op.h"
#include "croton/error.h"
#include "runtime/shared_state.h"

namespace croton {

DebugCheck::DebugCheck(std::shared_ptr<const RewriteTrace> trace, FunctionGraph graph)
    : ForkAware(ForkLevel::executable), trace_(std::move(trace)), graph_(std::move(graph)) {}

void DebugCheck::after_fork(bool child) noexcept {
  if (child) new (&mutex_) std::mutex;
}

VariableMap<Array> DebugCheck::known_values(std::span<const Array> arguments) const {
  VariableMap<Array> known;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].has_value()) continue;  // the call will object
    known[graph_.graph.inputs[i]] = arguments[i].to_host().contiguous();
  }
  for (const Node* node : graph_.graph.order()) {
    if (node->shared) known[node->out()] = get_value(*node->shared);
  }
  return known;
}

bool DebugCheck::has_changed(const VariableMap<Array>& known) const {
  for (const auto& [v, before] : known) {
    const auto& updated = graph_.updated;
    const auto same_state = [&](const Variable& u) { return u.node()->shared == v.node()->shared; };
    if (!v.node()->shared || std::any_of(updated.begin(), updated.end(), same_state)) continue;
    const Array now = get_value(*v.node()->shared);
    if (now.shape() != before.shape() ||
        std::memcmp(now.raw_data(), before.raw_data(), now.nbytes()) != 0) {
      return true;
    }
  }
  return false;
}

void DebugCheck::check_results(std::span<const Array> results,
                               std::span<const Array> expected) const {
  const auto check = [&](std::size_t output, const Array& value, const std::string& what) {
    const std::string wrong =
        compiled_difference(value.to_host(), expected[output], graph_.graph.outputs[output]);
    if (wrong.empty()) return;
    throw InternalError(
        fmt::format("[DEBUG] {}: the compiled code gives another value for {} than "
                    "the references of its ops, {}",
                    graph_.name, what, wrong));
  };
  for (std::size_t i = 0; i < results.size(); ++i) {
    check(i, results[i], fmt::format("output {}", i));
  }
  for (std::size_t i = 0; i < graph_.updated.size(); ++i) {
    const SharedState& state = *graph_.updated[i].node()->shared;
    check(results.size() + i, get_value(state), "the update of " + state.title());
  }
}

void DebugCheck::run(std::span<const Array> arguments, std::span<Array> results,
                     const std::function<void()>& call) {
  std::unique_lock lock(mutex_);
  const bool fits = arguments.size() == graph_.graph.inputs.size();
  if (!trace_ || !fits) {
    lock.unlock();
    call();
    return;
  }
  // The values that the call starts from; the call goes first, because it refuses arguments that do
  // not fit, which the references do not.
  const VariableMap<Array> known = known_values(arguments);
  call();
  if (has_changed(known)) return;  // which of the values the call read is not known
  check_results(results, check_trace(*trace_, known));
  trace_.reset();
}

}  // namespace croton
