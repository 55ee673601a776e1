#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "compiler/graph/node.h"
#include "croton/context.h"
#include "croton/error.h"
#include "frontend/group_impl.h"
#include "frontend/rows.h"
#include "runtime/shared_state.h"

namespace croton {
namespace {

enum class Collective { gather, all_gather, reduce, all_reduce };

/// What a call of a collective is made on, checked.
struct Call {
  std::string_view name;
  const std::vector<Shared>& shareds;

  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(fmt::format("[{}] {}", name, what));
  }
  void check() const {
    std::unordered_set<const SharedState*> seen;
    for (const Shared& shared : shareds) {
      if (!shared.defined()) fail("an empty Shared was given: make one with shared(value)");
      const SharedState* state = shared.node()->shared.get();
      if (!seen.insert(state).second) fail(fmt::format("{} is given twice", state->title()));
    }
  }
  void need_rows() const {
    for (const Shared& shared : shareds) {
      if (shared.ndim() == 0) {
        fail(fmt::format("{} is a scalar and has no rows", shared.node()->shared->title()));
      }
    }
  }
  /// One array for each of them, with rows if there is to be a choice of rows.
  std::vector<Array> values(const ArrayList& list, const Rows* batch) const {
    if (list.list.size() != shareds.size()) {
      fail(fmt::format("{} arrays were given: expected {}, one for each shared variable",
                       list.list.size(), shareds.size()));
    }
    std::vector<Array> result;
    for (std::size_t i = 0; i < shareds.size(); ++i) {
      const Array& array = list.list[i];
      if (!array.has_value()) fail(fmt::format("array {} is empty", i));
      if (batch == nullptr || array.ndim() == 0) {
        result.push_back(array);
        continue;
      }
      result.push_back(
          chosen_rows(array, RowsAccess::choose(*batch, array.shape()[0], [&](const auto& what) {
                        fail(fmt::format("batch: array {}: {}", i, what));
                      })));
    }
    return result;
  }
};

/// A value that a shared variable is to get.
struct NewValue {
  SharedState& state;
  Array value;
};

/// All or, where one does not fit, none.
void store(const Call& call, const std::vector<NewValue>& values) {
  for (const auto& [state, value] : values) {
    if (value.dtype() != state.dtype) {
      call.fail(fmt::format("wrong dtype for {}: got {}, expected {}", state.title(),
                            name_of(value.dtype()), name_of(state.dtype)));
    }
    const bool fits =
        state.resizable ? value.ndim() == state.shape.size() : value.shape() == state.shape;
    if (!fits) {
      call.fail(fmt::format(
          "wrong shape for {}: got {}, expected {}{}", state.title(), value.shape().to_string(),
          state.shape.to_string(),
          state.resizable ? "" : "; make it with .resizable = true if its shape is to change"));
    }
  }
  for (const auto& [state, value] : values) croton::set_value(state, value);
}

void check_rank(const Call& call, const Group::Impl& group, int rank) {
  if (rank < 0 || rank >= group.size()) {
    call.fail(fmt::format("there is no rank {}: there are {}", rank, group.size()));
  }
}

/// The function that does a collective, compiled when it is first wanted.
Function collective(Group::Impl& group, const Call& call, Collective what, CollectiveOp op,
                    bool flag) {
  std::vector<std::uintptr_t> key{static_cast<std::uintptr_t>(what),
                                  static_cast<std::uintptr_t>(op), flag};
  for (const Shared& shared : call.shareds) {
    key.push_back(reinterpret_cast<std::uintptr_t>(shared.node()->shared.get()));
  }
  {
    const std::lock_guard hold(group.mutex);
    if (const auto found = group.collectives.find(key); found != group.collectives.end()) {
      return found->second;
    }
  }
  std::vector<Variable> outputs;
  FunctionOptions options{.name = std::string(call.name), .no_default_updates = true};
  const CollectiveOptions ranks{.contexts = group.contexts};
  for (const Shared& shared : call.shareds) {
    std::vector<Shared> own;
    for (int r = 0; r < group.size(); ++r) own.push_back(group.on_rank(shared, r));
    const std::vector<Variable> values(own.begin(), own.end());
    std::vector<Variable> made;
    if (what == Collective::gather) outputs.push_back(croton::gather(values, 0, flag, ranks));
    if (what == Collective::all_gather) made = croton::all_gather(values, false, ranks);
    if (what == Collective::all_reduce) made = croton::all_reduce(values, op, ranks);
    if (what == Collective::reduce) {
      outputs.push_back(croton::reduce(values, op, 0, ranks));
      if (flag) made = {outputs.back()};
    }
    for (std::size_t r = 0; r < made.size(); ++r) options.updates.push_back({own[r], made[r]});
  }
  const Function function = croton::function({}, outputs, options);
  const std::lock_guard hold(group.mutex);
  return group.collectives.emplace(std::move(key), function).first->second;
}

std::vector<Array> arrays(const Outputs& outputs) { return {outputs.begin(), outputs.end()}; }

}  // namespace

void Group::broadcast(const SharedList& shareds, const ArrayList& values) const {
  const Call call{"broadcast", shareds.list};
  call.check();
  std::vector<Array> from;
  if (values.list.empty()) {
    for (const Shared& shared : shareds.list) from.push_back(shared.get_value());
  } else {
    from = call.values(values, nullptr);
  }
  std::vector<NewValue> made;
  for (std::size_t i = 0; i < from.size(); ++i) {
    for (int r = values.list.empty() ? 1 : 0; r < size(); ++r) {
      made.push_back({impl_->state(shareds.list[i], r), from[i]});
    }
  }
  store(call, made);
}

void Group::scatter(const SharedList& shareds, const ArrayList& values, const Rows& batch) const {
  const Call call{"scatter", shareds.list};
  call.check();
  call.need_rows();
  const std::vector<Array> from = call.values(values, &batch);
  std::vector<NewValue> made;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].ndim() == 0) call.fail(fmt::format("array {} is a scalar and has no rows", i));
    const std::int64_t rows = from[i].shape()[0];
    for (int r = 0; r < size(); ++r) {
      made.push_back({impl_->state(shareds.list[i], r),
                      from[i].slice(0, begin_of(rows, r, size()), begin_of(rows, r + 1, size()))});
    }
  }
  store(call, made);
}

std::vector<Array> Group::gather(const std::vector<Shared>& shareds, bool stacked) const {
  const Call call{"gather", shareds};
  call.check();
  if (!stacked) call.need_rows();
  return arrays(collective(*impl_, call, Collective::gather, CollectiveOp::sum, stacked)());
}

Array Group::gather(const Shared& shared, bool stacked) const {
  return gather(std::vector<Shared>{shared}, stacked)[0];
}

void Group::all_gather(const SharedList& shareds) const {
  const Call call{"all_gather", shareds.list};
  call.check();
  call.need_rows();
  for (const Shared& shared : shareds.list) {
    const SharedState& state = *shared.node()->shared;
    if (state.resizable || size() == 1) continue;
    call.fail(fmt::format("{} would get more rows: make it with .resizable = true", state.title()));
  }
  collective(*impl_, call, Collective::all_gather, CollectiveOp::sum, false)();
}

std::vector<Array> Group::reduce(const std::vector<Shared>& shareds, CollectiveOp op,
                                 bool in_place) const {
  const Call call{"reduce", shareds};
  call.check();
  return arrays(collective(*impl_, call, Collective::reduce, op, in_place)());
}

Array Group::reduce(const Shared& shared, CollectiveOp op, bool in_place) const {
  return reduce(std::vector<Shared>{shared}, op, in_place)[0];
}

void Group::all_reduce(const SharedList& shareds, CollectiveOp op) const {
  const Call call{"all_reduce", shareds.list};
  call.check();
  collective(*impl_, call, Collective::all_reduce, op, false)();
}

void Group::set_value(int rank, const SharedList& shareds, const ArrayList& values,
                      const Rows& batch) const {
  const Call call{"set_value", shareds.list};
  call.check();
  check_rank(call, *impl_, rank);
  const std::vector<Array> from = call.values(values, &batch);
  std::vector<NewValue> made;
  for (std::size_t i = 0; i < from.size(); ++i) {
    made.push_back({impl_->state(shareds.list[i], rank), from[i]});
  }
  store(call, made);
}

std::vector<Array> Group::get_value(int rank, const std::vector<Shared>& shareds) const {
  const Call call{"get_value", shareds};
  call.check();
  check_rank(call, *impl_, rank);
  std::vector<Array> values;
  for (const Shared& shared : shareds) {
    values.push_back(croton::get_value(impl_->state(shared, rank)));
  }
  return values;
}

Array Group::get_value(int rank, const Shared& shared) const {
  return get_value(rank, std::vector<Shared>{shared})[0];
}

std::vector<Shape> Group::get_shapes(const Shared& shared) const {
  const std::vector<Shared> one{shared};
  Call{"get_shapes", one}.check();
  std::vector<Shape> shapes;
  for (int r = 0; r < size(); ++r) shapes.push_back(impl_->shape(shared, r));
  return shapes;
}

std::vector<std::int64_t> Group::get_lengths(const Shared& shared) const {
  const std::vector<Shared> one{shared};
  const Call call{"get_lengths", one};
  call.check();
  call.need_rows();
  std::vector<std::int64_t> lengths;
  for (const Shape& shape : get_shapes(shared)) lengths.push_back(shape[0]);
  return lengths;
}

}  // namespace croton
