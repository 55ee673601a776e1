#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "croton/config.h"
#include "runtime/plan.h"
#include "runtime/target.h"

namespace croton {

/// A function to be compiled: the graph's outputs are first the user's, then the new values of the
/// updated shared variables.
struct FunctionGraph {
  Graph graph;
  std::size_t user_outputs = 0;
  /// Shared variables, one for each output after the user's; one that is on several contexts may
  /// stand there once for each, and has its new value on those alone.
  std::vector<Variable> updated;
  std::string name;
  /// The user's outputs stay where they are computed; else they come to the host.
  bool keep_on_device = false;
};

struct RewriteTrace;

/// What the compiler must know of the world.
struct CompileContext {
  Config config;
  /// Context for everything that nothing else places.
  std::string default_context;
  /// The device of a context; throws for one that is not bound.
  std::function<TargetInfo(const std::string& context)> target;
  /// Takes the text of a graph for the flag `dump`.
  std::function<void(const std::string& pass, const std::string& text)> dump;
  /// In mode DEBUG: takes what passes and rules did; see compiler/rewrite/trace.h.
  std::shared_ptr<RewriteTrace> trace = {};
  /// Takes the lines of the flag `log_placement`.
  std::function<void(const std::string& line)> log = {};
  /// Whether the device of a context has a library op; left out: every one has all.
  std::function<bool(const std::string& op, const std::string& context)> has_library_op = {};
};

/// The graph after all passes, as it is cut into kernels.
FunctionGraph optimize(FunctionGraph function, const CompileContext& context);

/// The plan of an optimized function that is one part. `written` is the graph before that, which
/// says what must hold in each call.
Plan make_plan(const FunctionGraph& function, const CompileContext& context,
               const Graph* written = nullptr);

/// A part of a function that has a plan of its own. Its inputs are those of the whole function, and
/// behind them what it takes from earlier parts.
struct FunctionPart {
  FunctionGraph written;
  FunctionGraph optimized;
  std::vector<Taken> taken;
  Plan plan;
};

/// The parts of a function with their plans: one, unless sizes follow from values that it computes
/// itself. `optimized` is what optimize() made of `written`.
std::vector<FunctionPart> make_parts(const FunctionGraph& written, const FunctionGraph& optimized,
                                     const CompileContext& context);

/// The plan of a function that is not optimized, and one part.
Plan compile(FunctionGraph function, const CompileContext& context);

}  // namespace croton
