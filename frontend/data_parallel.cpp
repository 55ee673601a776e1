#include "croton/data_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "compiler/graph/infer.h"
#include "compiler/graph/op.h"
#include "compiler/partition/partition.h"
#include "croton/context.h"
#include "croton/error.h"
#include "frontend/default_runtime.h"
#include "frontend/function_graph.h"
#include "frontend/function_impl.h"
#include "frontend/rows.h"
#include "runtime/runtime.h"

namespace croton {
namespace {

/// How the rows of a call are shared out.
struct Share {
  int contexts = 1;  ///< the first of them; the others have no rows
  int slices = 1;    ///< of each

  auto operator<=>(const Share&) const = default;
  int shards() const { return contexts * slices; }
};

Share share_of(std::int64_t rows, std::size_t contexts, int slices) {
  Share share;
  share.contexts =
      static_cast<int>(std::clamp<std::int64_t>(rows, 1, static_cast<std::int64_t>(contexts)));
  share.slices = static_cast<int>(std::clamp<std::int64_t>(rows / share.contexts, 1, slices));
  return share;
}

/// The rows at which the shards begin, and where the last one ends.
std::vector<std::int64_t> edges(std::int64_t rows, const Share& share) {
  std::vector<std::int64_t> result;
  for (int c = 0; c < share.contexts; ++c) {
    const std::int64_t first = begin_of(rows, c, share.contexts);
    const std::int64_t mine = begin_of(rows, c + 1, share.contexts) - first;
    for (int s = 0; s < share.slices; ++s) {
      result.push_back(first + begin_of(mine, s, share.slices));
    }
  }
  result.push_back(rows);
  return result;
}

}  // namespace

struct DataParallel::Impl {
  std::shared_ptr<Runtime> runtime;
  Config config;
  FunctionGraph graph;  ///< as the user wrote it, for one device
  std::vector<std::string> output_names;
  std::vector<std::string> contexts;
  PartitionRequest request;  ///< but for the contexts of the shards
  std::vector<std::string> by_all;

  mutable std::mutex mutex;
  mutable std::map<Share, std::shared_ptr<const Function::Impl>> compiled;

  std::shared_ptr<const Function::Impl> function(const Share& share,
                                                 std::vector<std::string>* by_all = nullptr) const;
  std::int64_t rows_of(std::span<const Array> arguments) const {
    return common_rows(graph.graph.inputs, request.scattered, arguments,
                       [this](const std::string& what) { fail(what); })
        .value_or(1);
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw CallError(fmt::format("[{}] {}", graph.name, message));
  }
};

/// The function of one way to share out the rows, compiled when it is first wanted.
std::shared_ptr<const Function::Impl> DataParallel::Impl::function(
    const Share& share, std::vector<std::string>* notes) const {
  const std::lock_guard hold(mutex);
  std::shared_ptr<const Function::Impl>& found = compiled[share];
  if (found) return found;
  PartitionRequest cut = request;
  for (int c = 0; c < share.contexts; ++c) {
    cut.contexts.insert(cut.contexts.end(), static_cast<std::size_t>(share.slices),
                        contexts[static_cast<std::size_t>(c)]);
  }
  if (notes != nullptr) {
    cut.note_whole = [notes](const Node& node) {
      notes->push_back(
          fmt::format("{} at {}", title_of(node.loc, node.op->name), to_text(node.loc)));
    };
  }
  found = compile_function(partition(graph, cut), output_names, config, runtime);
  return found;
}

const DataParallel::Impl& DataParallel::impl() const {
  if (impl_ == nullptr) {
    throw UserError(
        "an empty DataParallel was used: make one with data_parallel({inputs}, {outputs})");
  }
  return *impl_;
}

Outputs DataParallel::operator()(const Arg& a, const Arg& b, const Arg& c, const Arg& d,
                                 const Arg& e, const Arg& f, const Arg& g, const Arg& h) const {
  const Impl& mine = impl();
  const Arg* const args[] = {&a, &b, &c, &d, &e, &f, &g, &h};
  return call(arrays_of(args, mine.graph.graph.inputs, name()));
}

Outputs DataParallel::call(std::span<const Array> arguments, const BatchOptions& options) const {
  const Impl& mine = impl();
  const std::size_t inputs = mine.graph.graph.inputs.size();
  if (arguments.size() != inputs) {
    mine.fail(fmt::format("{} arguments were given: expected {}", arguments.size(), inputs));
  }
  if (options.num_slices < 1) {
    mine.fail(fmt::format("num_slices must be at least 1: got {}", options.num_slices));
  }
  std::vector<Array> chosen(arguments.begin(), arguments.end());
  choose(options.batch, chosen);
  const std::int64_t rows = mine.rows_of(chosen);
  const Share share = share_of(rows, mine.contexts.size(), options.num_slices);
  const std::shared_ptr<const Function::Impl> function = mine.function(share);
  if (share.shards() == 1) return function->run(chosen, function);
  const std::vector<std::int64_t> begins = edges(rows, share);
  std::vector<Array> parts;
  for (std::size_t i = 0; i < inputs; ++i) {
    if (!mine.request.scattered[i]) {
      parts.push_back(chosen[i]);
      continue;
    }
    for (std::size_t p = 0; p + 1 < begins.size(); ++p) {
      parts.push_back(chosen[i].slice(0, begins[p], begins[p + 1]));
    }
  }
  return function->run(parts, function);
}

/// Leaves the rows that are asked for.
void DataParallel::choose(const Rows& batch, std::vector<Array>& arguments) const {
  const Impl& mine = impl();
  const ChosenRows chosen =
      RowsAccess::choose(batch, mine.rows_of(arguments),
                         [&](const std::string& what) { mine.fail("batch: " + what); });
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (mine.request.scattered[i]) arguments[i] = chosen_rows(arguments[i], chosen);
  }
}

const std::string& DataParallel::name() const { return impl().graph.name; }
const std::vector<std::string>& DataParallel::contexts() const { return impl().contexts; }
const std::vector<std::string>& DataParallel::output_names() const { return impl().output_names; }
const std::vector<std::string>& DataParallel::computed_by_all() const { return impl().by_all; }

FunctionStatistics DataParallel::statistics() const {
  const Impl& mine = impl();
  return mine.function({static_cast<int>(mine.contexts.size()), 1})->statistics();
}

DataParallel data_parallel(const std::vector<ParallelInput>& inputs,
                           const std::vector<ParallelOutput>& outputs,
                           const DataParallelOptions& options, Loc loc) {
  const Config config = options.config.value_or(current_config());
  config.check_scopes(process_config(), {FlagScope::building, FlagScope::compile},
                      "data_parallel(..., {.config = })");
  auto impl = std::make_shared<DataParallel::Impl>();
  const std::vector<Variable> symbols = symbols_of(inputs, "data_parallel", loc);
  for (const ParallelInput& input : inputs) impl->request.scattered.push_back(input.scattered);
  std::vector<Output> plain;
  for (const ParallelOutput& output : outputs) {
    plain.emplace_back(output.name, output.value);
    impl->request.combine.push_back(output.combine);
  }
  FunctionOptions same{.updates = options.updates,
                       .givens = options.givens,
                       .name = options.name,
                       .on_unused = options.on_unused,
                       .config = options.config,
                       .no_default_updates = options.no_default_updates,
                       .keep_on_device = options.keep_on_device};
  FunctionMaker maker(symbols, plain, same, config, loc);
  impl->runtime = default_runtime();
  impl->config = config;
  impl->contexts = contexts_of(options.contexts, *impl->runtime, "data_parallel", loc);
  maker.bind_transfers(*impl->runtime);
  impl->graph = std::move(maker.graph);
  impl->output_names = std::move(maker.output_names);
  impl->function({static_cast<int>(impl->contexts.size()), 1}, &impl->by_all);
  DataParallel result;
  result.impl_ = std::move(impl);
  return result;
}

}  // namespace croton
