#include "croton/data_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_set>

#include "compiler/graph/infer.h"
#include "compiler/graph/op.h"
#include "compiler/partition/partition.h"
#include "croton/context.h"
#include "croton/error.h"
#include "frontend/default_runtime.h"
#include "frontend/function_graph.h"
#include "frontend/function_impl.h"
#include "runtime/array_access.h"
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

/// Where piece k of n begins: sizes differ by at most 1, larger ones come first.
std::int64_t begin_of(std::int64_t rows, int k, int n) {
  return rows / n * k + std::min<std::int64_t>(k, rows % n);
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

Rows::Rows(const Array& rows) : kind_(Kind::list) {
  if (rows.ndim() != 1 || !is_integer(rows.dtype())) {
    throw UserError(fmt::format("[batch] rows must be a vector of integers: got {} with {} axes",
                                name_of(rows.dtype()), rows.ndim()));
  }
  rows_ = rows.astype(DType::int64).to_vector<std::int64_t>();
}

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
  std::int64_t rows_of(std::span<const Array> arguments) const;
  std::string title(std::size_t i) const;
  [[noreturn]] void fail(const std::string& message) const {
    throw CallError(fmt::format("[{}] {}", graph.name, message));
  }
};

std::string DataParallel::Impl::title(std::size_t i) const {
  const std::string& name = graph.graph.inputs[i].name();
  return name.empty() ? fmt::format("argument {}", i)
                      : fmt::format("argument {} (\"{}\")", i, name);
}

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

/// The number of rows that the scattered arguments agree on; 1 where there are none.
std::int64_t DataParallel::Impl::rows_of(std::span<const Array> arguments) const {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!request.scattered[i]) continue;
    const Array& array = arguments[i];
    if (!array.has_value()) fail(fmt::format("{} is an empty Array", title(i)));
    const int rank = graph.graph.inputs[i].ndim();
    if (array.ndim() != static_cast<std::size_t>(rank)) {
      fail(fmt::format("{} has {} axes: expected {}", title(i), array.ndim(), rank));
    }
    if (!first) first = i;
    const std::int64_t expected = arguments[*first].shape()[0];
    if (array.shape()[0] != expected) {
      fail(
          fmt::format("{} has {} rows and {} has {}: inputs whose rows are shared out have the "
                      "same number of them; one that each context gets whole is to_all(x)",
                      title(*first), expected, title(i), array.shape()[0]));
    }
    const std::int64_t known = graph.graph.inputs[i].static_shape()[0];
    if (known != kAnyDim && known != expected) {
      fail(fmt::format("{} has {} rows: it was declared with {}", title(i), expected, known));
    }
  }
  return first ? arguments[*first].shape()[0] : 1;
}

namespace {

Array chosen_rows(const Array& array, std::span<const std::int64_t> rows) {
  const Array from = array.to_host().contiguous();
  Shape shape = from.shape();
  const auto bytes = static_cast<std::size_t>(from.nbytes()) /
                     static_cast<std::size_t>(std::max<std::int64_t>(shape[0], 1));
  shape[0] = static_cast<std::int64_t>(rows.size());
  Array result = Array::empty(shape, from.dtype());
  auto* to = static_cast<std::byte*>(const_cast<void*>(result.raw_data()));
  const auto* source = static_cast<const std::byte*>(from.raw_data());
  for (const std::int64_t row : rows) {
    std::copy_n(source + bytes * static_cast<std::size_t>(row), bytes, to);
    to += bytes;
  }
  return result;
}

}  // namespace

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
  std::size_t count = std::size(args);
  while (count > 0 && args[count - 1]->empty()) --count;
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t known = std::min(i, mine.graph.graph.inputs.size() - 1);
    arrays.push_back(
        mine.graph.graph.inputs.empty()
            ? Array()
            : Function::Impl::argument(*args[i], mine.graph.graph.inputs[known], i, name()));
  }
  return call(arrays);
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
  if (batch.kind_ == Rows::Kind::all) return;
  const Impl& mine = impl();
  const std::int64_t rows = mine.rows_of(arguments);
  const auto wrapped = [&](std::int64_t row, std::int64_t most) {
    const std::int64_t at = row < 0 ? row + rows : row;
    if (at < 0 || at > most) {
      mine.fail(fmt::format("batch: row {} is out of bounds for {} rows", row, rows));
    }
    return at;
  };
  std::vector<std::int64_t> list;
  for (const std::int64_t row : batch.rows_) list.push_back(wrapped(row, rows - 1));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!mine.request.scattered[i]) continue;
    arguments[i] =
        batch.kind_ == Rows::Kind::list
            ? chosen_rows(arguments[i], list)
            : arguments[i].slice(0, wrapped(batch.start_, rows), wrapped(batch.stop_, rows));
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

namespace {

std::vector<std::string> contexts_of(const std::vector<std::string>& asked, Runtime& runtime,
                                     const Loc& loc) {
  std::vector<std::string> contexts;
  if (asked.empty()) {
    contexts = runtime.bound_names();
    if (contexts.empty()) contexts.push_back(runtime.default_context());
    return contexts;
  }
  std::unordered_set<std::string> seen;
  for (const std::string& name : asked) {
    try {
      contexts.push_back(runtime.canonical_name(name));
    } catch (const ConfigError& error) {
      throw ConfigError(
          fmt::format("{}; asked for by data_parallel at {}", error.what(), to_text(loc)));
    }
    if (!seen.insert(contexts.back()).second) {
      throw GraphError(fmt::format("[data_parallel] the context '{}' is given twice; at {}", name,
                                   to_text(loc)));
    }
  }
  return contexts;
}

}  // namespace

DataParallel data_parallel(const std::vector<ParallelInput>& inputs,
                           const std::vector<ParallelOutput>& outputs,
                           const DataParallelOptions& options, Loc loc) {
  const Config config = options.config.value_or(current_config());
  config.check_scopes(process_config(), {FlagScope::building, FlagScope::compile},
                      "data_parallel(..., {.config = })");
  auto impl = std::make_shared<DataParallel::Impl>();
  std::vector<Variable> symbols;
  for (const ParallelInput& input : inputs) {
    symbols.push_back(input.value);
    impl->request.scattered.push_back(input.scattered);
    if (!input.scattered || !input.value.defined()) continue;
    if (input.value.ndim() == 0 || input.value.static_shape()[0] == 1) {
      throw GraphError(fmt::format(
          "[data_parallel] input {} ({}) has no rows to share out: each context gets all of "
          "to_all(x); at {}",
          symbols.size() - 1, input.value.node()->outputs[0].to_text(), to_text(loc)));
    }
  }
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
  impl->contexts = contexts_of(options.contexts, *impl->runtime, loc);
  maker.bind_transfers(*impl->runtime);
  impl->graph = std::move(maker.graph);
  impl->output_names = std::move(maker.output_names);
  impl->function({static_cast<int>(impl->contexts.size()), 1}, &impl->by_all);
  DataParallel result;
  result.impl_ = std::move(impl);
  return result;
}

}  // namespace croton
