#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compiler/rewrite/rule.h"

namespace croton {

/// The rules of all stages.
std::span<const RuleTable> all_rules();

/// The graph with the rules applied until none matches: inputs first, and the result of a rule
/// again. Linear in the number of nodes and applications. A rule whose result has another type is
/// an InternalError that names it, and so are rules that do not come to an end.
Graph rewrite(const Graph& graph, std::string_view pass, std::span<const RuleTable> tables,
              const CompileContext& context);

/// Gives all nodes below `value` made since then the place and the context of `node`, whatever
/// scope is in force now: what a pass makes stands for what the user wrote. Gives those nodes.
std::vector<const Node*> stand_for(const Variable& value, std::uint64_t since, const Node& node);

// The passes made of rules.
Graph canonicalize(const Graph& graph, const CompileContext& context);
Graph stabilize(const Graph& graph, const CompileContext& context);
Graph specialize(const Graph& graph, const CompileContext& context);

/// Nodes that compute the same become one: equal op, attributes, context and inputs; constants by
/// value.
Graph merge(const Graph& graph, const CompileContext& context);

}  // namespace croton
