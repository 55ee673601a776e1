#include "croton/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <shared_mutex>
#include <unordered_set>

#include "compiler/partition/partition.h"
#include "croton/context.h"
#include "croton/error.h"
#include "frontend/default_runtime.h"
#include "frontend/function_graph.h"
#include "frontend/function_impl.h"
#include "frontend/group_impl.h"
#include "frontend/rows.h"
#include "runtime/runtime.h"
#include "runtime/shared_state.h"

namespace croton {
namespace {

/// How a call is shared out, and what it wants: each gets a function of its own.
struct Way {
  std::vector<int> slices;  ///< of each rank; 0 where it does nothing
  bool listed = false;
  bool updates = true;
  std::vector<std::size_t> outputs;

  auto operator<=>(const Way&) const = default;
};

/// Rank r begins with other numbers of a random stream than the ranks before.
constexpr std::int64_t kDrawsOfRank = std::int64_t{1} << 40;

}  // namespace

Shared Group::Impl::replica(const Variable& shared, int rank) {
  const std::lock_guard hold(mutex);
  const Node& node = *shared.node();
  Replicas& found = replicas[node.shared.get()];
  if (found.list.empty()) {
    const Array value = croton::get_value(*node.shared);
    std::vector<Shared> made;
    for (int r = 1; r < size(); ++r) {
      Array mine = value;
      if (node.increment.defined()) mine = Array(value.item<std::int64_t>() + r * kDrawsOfRank);
      const std::string& name = node.shared->name;
      made.push_back(
          croton::shared(mine,
                         {.name = name.empty() ? "" : fmt::format("{} of rank {}", name, r),
                          .target = contexts[static_cast<std::size_t>(r)],
                          .resizable = node.shared->resizable},
                         node.loc));
    }
    found = {shared, std::move(made)};
  }
  return found.list[static_cast<std::size_t>(rank - 1)];
}

Variable Group::Impl::on_rank(const Variable& shared, int rank) {
  return rank == 0 ? shared : Variable(replica(shared, rank));
}

SharedState& Group::Impl::state(const Variable& shared, int rank) {
  return *on_rank(shared, rank).node()->shared;
}

Shape Group::Impl::shape(const Variable& shared, int rank) {
  const SharedState& mine = state(shared, rank);
  if (!mine.resizable) return mine.shape;
  mine.lock.lock_shared();
  const std::shared_lock hold(mine.lock, std::adopt_lock);
  const Array& value = mine.any();
  if (!value.has_value())
    throw DeviceError(fmt::format("[group] the value of {} was lost", mine.title()));
  return value.shape();
}

struct GroupFunction::Impl {
  std::shared_ptr<Group::Impl> group;
  Config config;
  FunctionGraph graph;  ///< of one rank
  std::vector<std::string> output_names;
  std::vector<Combine> combine;
  std::vector<bool> scattered;
  std::vector<Combine> combine_updates;
  std::vector<Variable> sliced;

  mutable std::mutex mutex;
  mutable std::map<Way, std::shared_ptr<const Function::Impl>> compiled;

  bool has_rows() const {
    return !sliced.empty() ||
           std::find(scattered.begin(), scattered.end(), true) != scattered.end();
  }
  std::shared_ptr<const Function::Impl> function(const Way& way) const;
  std::vector<std::size_t> outputs_of(const GroupCallOptions& options) const;
  std::vector<ChosenRows> chosen_on_ranks(const std::vector<Rows>& batch) const;
  std::int64_t sliced_rows(int rank, bool equal) const;
  Way way_of(const std::vector<std::int64_t>& rows, const GroupCallOptions& options) const;
  std::vector<Array> parts(std::span<const Array> arguments, const Way& way,
                           const std::vector<std::int64_t>& rows,
                           const std::vector<ChosenRows>& chosen) const;
  std::vector<Array> chosen_rows(std::span<const Array> arguments, const Rows& batch) const;
  [[noreturn]] void fail(const std::string& message) const {
    throw CallError(fmt::format("[{}] {}", graph.name, message));
  }
};

/// The function of one way to call it, compiled when it is first wanted.
std::shared_ptr<const Function::Impl> GroupFunction::Impl::function(const Way& way) const {
  const std::lock_guard hold(mutex);
  std::shared_ptr<const Function::Impl>& found = compiled[way];
  if (found) return found;
  FunctionGraph wanted;
  wanted.name = graph.name;
  wanted.keep_on_device = graph.keep_on_device;
  wanted.graph.inputs = graph.graph.inputs;
  wanted.user_outputs = way.outputs.size();
  PartitionRequest request;
  request.scattered = scattered;
  std::vector<std::string> names;
  for (const std::size_t i : way.outputs) {
    wanted.graph.outputs.push_back(graph.graph.outputs[i]);
    request.combine.push_back(combine[i]);
    if (!output_names.empty()) names.push_back(output_names[i]);
  }
  if (way.updates) {
    wanted.updated = graph.updated;
    wanted.graph.outputs.insert(
        wanted.graph.outputs.end(),
        graph.graph.outputs.begin() + static_cast<std::ptrdiff_t>(graph.user_outputs),
        graph.graph.outputs.end());
  }
  std::vector<int> ranks;
  for (int r = 0; r < group->size(); ++r) {
    const int slices = way.slices[static_cast<std::size_t>(r)];
    if (slices == 0) continue;
    ranks.push_back(r);
    request.contexts.insert(request.contexts.end(), static_cast<std::size_t>(slices),
                            group->contexts[static_cast<std::size_t>(r)]);
  }
  request.replica = [&](const Variable& shared, int context) {
    return group->on_rank(shared, ranks[static_cast<std::size_t>(context)]);
  };
  request.combine_updates = combine_updates;
  request.sliced = sliced;
  request.listed = way.listed;
  found = compile_function(partition(wanted, request), std::move(names), config, group->runtime);
  return found;
}

std::vector<std::size_t> GroupFunction::Impl::outputs_of(const GroupCallOptions& options) const {
  std::vector<std::size_t> outputs;
  if (!options.output_subset) {
    for (std::size_t i = 0; i < graph.user_outputs; ++i) outputs.push_back(i);
    return outputs;
  }
  for (const std::size_t i : *options.output_subset) {
    if (i >= graph.user_outputs) {
      fail(
          fmt::format("output_subset: there is no output {}: there are {}", i, graph.user_outputs));
    }
    if (std::find(outputs.begin(), outputs.end(), i) != outputs.end()) {
      fail(fmt::format("output_subset: output {} is given twice", i));
    }
    outputs.push_back(i);
  }
  return outputs;
}

std::vector<Array> GroupFunction::Impl::chosen_rows(std::span<const Array> arguments,
                                                    const Rows& batch) const {
  const auto failed = [this](const std::string& what) { fail(what); };
  const std::optional<std::int64_t> rows =
      common_rows(graph.graph.inputs, scattered, arguments, failed);
  if (!rows && !RowsAccess::all(batch)) {
    fail("batch: no argument has rows that are shared out");
  }
  const ChosenRows chosen = RowsAccess::choose(
      batch, rows.value_or(0), [this](const std::string& what) { fail("batch: " + what); });
  std::vector<Array> result(arguments.begin(), arguments.end());
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (scattered[i]) result[i] = croton::chosen_rows(result[i], chosen);
  }
  return result;
}

/// How many rows the sliceable shared variables of a rank have.
std::int64_t GroupFunction::Impl::sliced_rows(int rank, bool equal) const {
  std::int64_t fewest = group->shape(sliced[0], rank)[0];
  for (const Variable& shared : sliced) {
    const std::int64_t mine = group->shape(shared, rank)[0];
    if (equal && mine != fewest) {
      fail(fmt::format("rank {} has {} rows of {} and {} of {}: choose rows with batch_s", rank,
                       fewest, group->state(sliced[0], rank).title(), mine,
                       group->state(shared, rank).title()));
    }
    fewest = std::min(fewest, mine);
  }
  return fewest;
}

/// The rows of the sliceable shared variables that each rank is to take.
std::vector<ChosenRows> GroupFunction::Impl::chosen_on_ranks(const std::vector<Rows>& batch) const {
  std::vector<ChosenRows> result;
  if (sliced.empty()) {
    if (!batch.empty()) fail("batch_s: the function was made without sliceable_shareds");
    return result;
  }
  const auto ranks = static_cast<std::size_t>(group->size());
  if (batch.size() > 1 && batch.size() != ranks) {
    fail(fmt::format("batch_s has {} entries: give one for all ranks, or {}, one a rank",
                     batch.size(), ranks));
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    const int rank = static_cast<int>(r);
    const Rows mine = batch.empty() ? Rows() : batch[batch.size() == 1 ? 0 : r];
    const ChosenRows asked = RowsAccess::choose(
        mine, sliced_rows(rank, false),
        [&](const std::string& what) { fail(fmt::format("batch_s: rank {}: {}", rank, what)); });
    if (asked.all) sliced_rows(rank, true);
    result.push_back(asked);
  }
  return result;
}

Way GroupFunction::Impl::way_of(const std::vector<std::int64_t>& rows,
                                const GroupCallOptions& options) const {
  Way way;
  way.outputs = outputs_of(options);
  if (options.num_slices < 1) {
    fail(fmt::format("num_slices must be at least 1: got {}", options.num_slices));
  }
  if (options.num_slices > 1 && !has_rows()) {
    fail(
        "num_slices: nothing can be sliced: no input is scattered, and there are no "
        "sliceable_shareds");
  }
  for (const std::int64_t mine : rows) {
    way.slices.push_back(static_cast<int>(std::min<std::int64_t>(mine, options.num_slices)));
  }
  if (std::find_if(rows.begin(), rows.end(), [](std::int64_t n) { return n > 0; }) == rows.end()) {
    way.slices[0] = 1;
    way.updates = false;
  }
  return way;
}

namespace {

/// The inputs that say which rows of sliceable shared variables a piece gets.
void add_selection(const ChosenRows& rows, bool listed, std::int64_t begin, std::int64_t end,
                   std::vector<Array>& parts) {
  if (!listed) {
    parts.push_back(Array(rows.start + begin));
    parts.push_back(Array(rows.start + end));
    return;
  }
  std::vector<std::int64_t> list;
  for (std::int64_t k = begin; k < end; ++k) {
    list.push_back(rows.listed ? rows.list[static_cast<std::size_t>(k)] : rows.start + k);
  }
  parts.push_back(Array::from<std::int64_t>(list));
}

}  // namespace

/// The arguments of the function of all ranks.
std::vector<Array> GroupFunction::Impl::parts(std::span<const Array> arguments, const Way& way,
                                              const std::vector<std::int64_t>& rows,
                                              const std::vector<ChosenRows>& chosen) const {
  struct Piece {
    std::size_t rank;
    std::int64_t first, begin, end;  ///< row of the rank's first, and the piece in the rank's
  };
  std::vector<Piece> pieces;
  std::int64_t first = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (int s = 0; s < way.slices[r]; ++s) {
      pieces.push_back(
          {r, first, begin_of(rows[r], s, way.slices[r]), begin_of(rows[r], s + 1, way.slices[r])});
    }
    first += rows[r];
  }
  std::vector<Array> result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!scattered[i] || pieces.size() == 1) {
      result.push_back(arguments[i]);
      continue;
    }
    for (const Piece& piece : pieces) {
      result.push_back(arguments[i].slice(0, piece.first + piece.begin, piece.first + piece.end));
    }
  }
  if (sliced.empty()) return result;
  for (const Piece& piece : pieces) {
    add_selection(chosen[piece.rank], way.listed, piece.begin, piece.end, result);
  }
  return result;
}

const GroupFunction::Impl& GroupFunction::impl() const {
  if (impl_ == nullptr) {
    throw UserError(
        "an empty GroupFunction was used: make one with group.function({inputs}, {outputs})");
  }
  return *impl_;
}

Outputs GroupFunction::operator()(const Arg& a, const Arg& b, const Arg& c, const Arg& d,
                                  const Arg& e, const Arg& f, const Arg& g, const Arg& h) const {
  const Impl& mine = impl();
  const Arg* const args[] = {&a, &b, &c, &d, &e, &f, &g, &h};
  return call(arrays_of(args, mine.graph.graph.inputs, name()));
}

Outputs GroupFunction::call(std::span<const Array> arguments,
                            const GroupCallOptions& options) const {
  const Impl& mine = impl();
  if (arguments.size() != mine.scattered.size()) {
    mine.fail(fmt::format("{} arguments were given: expected {}", arguments.size(),
                          mine.scattered.size()));
  }
  const std::vector<Array> chosen = mine.chosen_rows(arguments, options.batch);
  const std::vector<ChosenRows> on_ranks = mine.chosen_on_ranks(options.batch_s);
  std::optional<std::int64_t> all;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (mine.scattered[i]) all = chosen[i].shape()[0];
  }
  std::vector<std::int64_t> rows;
  const int ranks = mine.group->size();
  for (int r = 0; r < ranks; ++r) {
    const std::int64_t share = all ? begin_of(*all, r + 1, ranks) - begin_of(*all, r, ranks) : 1;
    rows.push_back(share);
    if (on_ranks.empty()) continue;
    const std::int64_t kept = on_ranks[static_cast<std::size_t>(r)].count();
    if (all && kept != share) {
      mine.fail(
          fmt::format("rank {} has {} rows of the arguments and {} of the sliceable shared "
                      "variables: choose as many with batch_s",
                      r, share, kept));
    }
    rows.back() = kept;
  }
  Way way = mine.way_of(rows, options);
  way.listed = std::any_of(on_ranks.begin(), on_ranks.end(),
                           [](const ChosenRows& choice) { return choice.listed; });
  const std::shared_ptr<const Function::Impl> function = mine.function(way);
  return function->run(mine.parts(chosen, way, rows, on_ranks), function);
}

const std::string& GroupFunction::name() const { return impl().graph.name; }
const std::vector<std::string>& GroupFunction::output_names() const { return impl().output_names; }

Group::Group(const std::vector<std::string>& contexts, Loc loc) : impl_(std::make_shared<Impl>()) {
  impl_->runtime = default_runtime();
  impl_->contexts = contexts_of(contexts, *impl_->runtime, "Group", loc);
}

int Group::size() const { return impl_->size(); }
const std::vector<std::string>& Group::contexts() const { return impl_->contexts; }

namespace {

[[noreturn]] void fail(const std::string& what, const Loc& loc) {
  throw GraphError(fmt::format("[group] {}; at {}", what, to_text(loc)));
}

/// Checks what only groups ask of outputs and updates.
void check(const std::vector<GroupOutput>& outputs, const GroupFunctionOptions& options,
           const Loc& loc) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const GroupOutput& output = outputs[i];
    if (output.combine == Combine::whole) {
      fail(fmt::format("output {} cannot be Combine::whole: ranks have values of their own", i),
           loc);
    }
    if (output.combine != Combine::mean || !output.value.defined()) continue;
    if (!is_float(output.value.dtype())) {
      fail(fmt::format("output {} of dtype {} has no mean: combine it otherwise, as in {{x, "
                       "Combine::sum}}, or cast it",
                       i, name_of(output.value.dtype())),
           loc);
    }
  }
  for (const GroupUpdate& update : options.updates) {
    if (update.slices == Combine::whole || update.slices == Combine::gather) {
      fail("slices of an update are combined by mean, sum, max, min, prod or first", loc);
    }
  }
}

void check_sliceable(const std::vector<Shared>& shareds, const FunctionGraph& graph,
                     const Loc& loc) {
  std::unordered_set<const SharedState*> needed, seen;
  for (const Node* node : graph.graph.order()) {
    if (node->shared) needed.insert(node->shared.get());
  }
  for (const Shared& shared : shareds) {
    if (!shared.defined()) fail("a sliceable shared variable is empty", loc);
    const SharedState* state = shared.node()->shared.get();
    if (!seen.insert(state).second) fail(fmt::format("{} is sliceable twice", state->title()), loc);
    if (!needed.contains(state)) {
      fail(fmt::format("{} is sliceable, but the function does not need it", state->title()), loc);
    }
    if (shared.ndim() == 0 || shared.static_shape()[0] == 1) {
      fail(fmt::format("{} is sliceable, but has no rows", state->title()), loc);
    }
    for (const Variable& updated : graph.updated) {
      if (updated.node()->shared.get() == state) {
        fail(fmt::format("{} is sliceable, and cannot be updated", state->title()), loc);
      }
    }
  }
}

}  // namespace

GroupFunction Group::function(const std::vector<ParallelInput>& inputs,
                              const std::vector<GroupOutput>& outputs,
                              const GroupFunctionOptions& options, Loc loc) const {
  const Config config = options.config.value_or(current_config());
  config.check_scopes(process_config(), {FlagScope::building, FlagScope::compile},
                      "group.function(..., {.config = })");
  check(outputs, options, loc);
  auto impl = std::make_shared<GroupFunction::Impl>();
  const std::vector<Variable> symbols = symbols_of(inputs, "group", loc);
  for (const ParallelInput& input : inputs) impl->scattered.push_back(input.scattered);
  std::vector<Output> plain;
  for (const GroupOutput& output : outputs) {
    plain.emplace_back(output.name, output.value);
    impl->combine.push_back(output.combine);
  }
  FunctionOptions same{.givens = options.givens,
                       .name = options.name,
                       .on_unused = options.on_unused,
                       .config = options.config,
                       .no_default_updates = options.no_default_updates,
                       .keep_on_device = options.keep_on_device};
  for (const GroupUpdate& update : options.updates) {
    same.updates.push_back({update.target, update.value});
    impl->combine_updates.push_back(update.slices);
  }
  FunctionMaker maker(symbols, plain, same, config, loc);
  maker.bind_transfers(*impl_->runtime);
  check_sliceable(options.sliceable_shareds, maker.graph, loc);
  impl->sliced.assign(options.sliceable_shareds.begin(), options.sliceable_shareds.end());
  // What random streams bring along: each slice begins where the call does, the longest counts.
  impl->combine_updates.resize(maker.graph.updated.size(), Combine::max);
  impl->group = impl_;
  impl->config = config;
  impl->graph = std::move(maker.graph);
  impl->output_names = std::move(maker.output_names);
  Way all;
  all.slices.assign(impl_->contexts.size(), 1);
  all.outputs = impl->outputs_of({});
  impl->function(all);
  GroupFunction result;
  result.impl_ = std::move(impl);
  return result;
}

}  // namespace croton
