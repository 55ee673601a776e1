// The passes, in the order in which they run: one list, one loop.
#pragma once

#include <span>

#include "compiler/compile.h"
#include "compiler/rewrite/rule.h"

namespace croton {

struct Pass {
  const char* name;
  const char* doc;
  Graph (*run)(const Graph& graph, const CompileContext& context);
  /// Whether it runs in mode FAST_COMPILE too, and cannot be left out.
  bool needed;
  /// Whether it is a stage of rules, each of which is chosen by mode and flags.
  bool rules = false;
  /// What it may do to the values of the graph.
  Precision precision = Precision::exact;
};

std::span<const Pass> pipeline();

/// Whether the flag `dump` asks for the text at this place: a pass, "build", "fuse" or "plan".
bool wants_dump(const CompileContext& context, std::string_view place);

/// Ops that lower themselves to smaller ones are replaced by them.
Graph expand(const Graph& graph, const CompileContext& context);
/// Where a graph is on several contexts, it is placed before rules look at it, so that none takes
/// work from one context to another.
Graph locate(const Graph& graph, const CompileContext& context);
/// Each node gets a context, and transfers go where values cross between contexts.
Graph place(const Graph& graph, const CompileContext& context);
/// Each user of an index map (or of a filled array) gets its own copy, so that it can be computed
/// where it is read and never stands in memory.
Graph unshare(const Graph& graph, const CompileContext& context);

}  // namespace croton
