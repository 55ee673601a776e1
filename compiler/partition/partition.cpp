#include "compiler/partition/partition.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/partition/partitioner.h"
#include "croton/error.h"
#include "ops/build.h"
#include "ops/slice.h"
#include "runtime/shared_state.h"

namespace croton {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

class FunctionCut {
 public:
  FunctionCut(const FunctionGraph& function, const PartitionRequest& request)
      : function_(function), request_(request), partitioner_(request) {}

  FunctionGraph run();

 private:
  void hold_inputs();
  void hold_selections();
  void hold_shareds();
  void hold_rows(const Variable& shared);
  Combine combine_of(std::size_t i) const {
    return i < request_.combine.size() ? request_.combine[i] : Combine::whole;
  }
  Variable output(std::size_t i);
  std::vector<Variable> local(const Variable& v);
  Variable gathered(const std::vector<Variable>& parts, int axis, const Loc& loc);
  Variable combined(const Variable& v, Combine how);
  DType dtype_of_mean(const Variable& v) const;
  Variable weight(int shard, DType dtype, const Loc& loc) const;
  Variable mean_of(const Variable& v, const std::vector<Variable>& values);
  Variable own(const Variable& v, int context, Combine how);
  void update_all();
  void update_own();

  const FunctionGraph& function_;
  const PartitionRequest& request_;
  Partitioner partitioner_;
  FunctionGraph result_;
  std::vector<Variable> rows_;                     ///< of each shard
  std::vector<std::vector<Variable>> selections_;  ///< of rows of sliced shared variables, by shard
};

/// One shard is a part only in name: its input keeps what is known of the rows.
void FunctionCut::hold_inputs() {
  const int shards = partitioner_.shards();
  for (std::size_t i = 0; i < function_.graph.inputs.size(); ++i) {
    const Variable& input = function_.graph.inputs[i];
    if (!request_.scattered[i] || shards == 1) {
      result_.graph.inputs.push_back(input);
      partitioner_.hold(input,
                        {Held::kWhole, std::vector<Variable>(at(partitioner_.contexts()), input)});
      continue;
    }
    Held held{0, {}};
    Type type = input.node()->outputs[0];
    type.shape[0] = kAnyDim;
    for (int p = 0; p < shards; ++p) {
      const std::string name = input.name().empty() ? "" : fmt::format("{} {}", input.name(), p);
      held.parts.push_back(make_input(type, name, input.node()->loc));
      result_.graph.inputs.push_back(held.parts.back());
      held.sizes.push_back(partitioner_.on(partitioner_.context_of(p), [&] {
        return size_of_axis(held.parts.back(), 0, input.node()->loc);
      }));
    }
    if (rows_.empty()) rows_ = held.sizes;
    partitioner_.hold(input, std::move(held));
  }
}

/// Which rows of the sliced shared variables a shard gets is said by inputs of its own.
void FunctionCut::hold_selections() {
  if (request_.sliced.empty()) return;
  const Loc& loc = request_.sliced[0].node()->loc;
  for (int p = 0; p < partitioner_.shards(); ++p) {
    std::vector<Variable>& mine = selections_.emplace_back();
    if (request_.listed) {
      mine = {make_input({DType::int64, {kAnyDim}}, fmt::format("rows {}", p), loc)};
    } else {
      mine = {make_input({DType::int64, {}}, fmt::format("start {}", p), loc),
              make_input({DType::int64, {}}, fmt::format("stop {}", p), loc)};
    }
    result_.graph.inputs.insert(result_.graph.inputs.end(), mine.begin(), mine.end());
  }
}

void FunctionCut::hold_rows(const Variable& shared) {
  const Loc& loc = shared.node()->loc;
  Held held{0, {}};
  for (int p = 0; p < partitioner_.shards(); ++p) {
    const int c = partitioner_.context_of(p);
    const std::vector<Variable>& rows = selections_[at(p)];
    held.parts.push_back(partitioner_.on(c, [&] {
      const Variable all = shared_on(request_.replica(shared, c), partitioner_.name(c));
      if (!request_.listed) return slice_axis(all, 0, Slice(rows[0], rows[1]), loc);
      return apply("take", {all, rows[0]}, {{"axes", std::vector<std::int64_t>{0}}}, loc);
    }));
    held.sizes.push_back(
        partitioner_.on(c, [&] { return size_of_axis(held.parts.back(), 0, loc); }));
  }
  if (rows_.empty()) rows_ = held.sizes;
  partitioner_.hold(shared, std::move(held));
}

void FunctionCut::hold_shareds() {
  const auto hold = [&](const Variable& v) {
    const auto same = [&](const Variable& s) { return s.node()->shared == v.node()->shared; };
    if (std::any_of(request_.sliced.begin(), request_.sliced.end(), same)) return hold_rows(v);
    Held held;
    for (int c = 0; c < partitioner_.contexts(); ++c) {
      held.parts.push_back(
          shared_on(request_.replica ? request_.replica(v, c) : v, partitioner_.name(c)));
    }
    partitioner_.hold(v, std::move(held));
  };
  for (const Node* node : function_.graph.order()) {
    if (node->shared) hold(node->out());
  }
  for (const Variable& v : function_.updated) hold(v);
}

/// What each shard computes from its own rows.
std::vector<Variable> FunctionCut::local(const Variable& v) {
  std::vector<Variable> values;
  for (int p = 0; p < partitioner_.shards(); ++p) {
    VariableMap<Variable> mine;
    Graph graph;
    graph.outputs = {v};
    for (const Node* node : graph.order()) {
      if (node->op->form == OpForm::leaf && node->op->name != "constant") {
        mine.emplace(node->out(), partitioner_.part(partitioner_.held(node->out()), p));
      }
    }
    const auto stay = [](const Node& node) {
      return node.op->form == OpForm::move ? node.inputs : std::vector<Variable>();
    };
    values.push_back(partitioner_.on(partitioner_.context_of(p),
                                     [&] { return rebuild(graph, stay, mine).outputs[0]; }));
  }
  return values;
}

/// Rows one behind the other, on the first context: from there they leave in one piece.
Variable FunctionCut::gathered(const std::vector<Variable>& parts, int axis, const Loc& loc) {
  std::vector<Variable> there;
  for (const Variable& v : parts) there.push_back(partitioner_.moved(v, 0, loc));
  return partitioner_.on(0, [&] {
    return apply("concatenate", there, {{"axis", std::int64_t{axis}}}, loc);
  });
}

/// The dtype in which a mean is computed.
DType FunctionCut::dtype_of_mean(const Variable& v) const {
  if (!is_float(v.dtype())) {
    throw GraphError(fmt::format(
        "[{}] an output of dtype {} has no mean: take its sum, or cast it; at {}",
        request_.replica ? "group" : "data_parallel", name_of(v.dtype()), to_text(v.node()->loc)));
  }
  return is_narrow(v.dtype()) ? DType::float32 : v.dtype();
}

/// The number of rows of a shard; 1 where nothing has rows.
Variable FunctionCut::weight(int shard, DType dtype, const Loc& loc) const {
  return rows_.empty() ? make_scalar(dtype, 1.0, loc) : cast_to(rows_[at(shard)], dtype, loc);
}

/// Weighted by rows, so that uneven shards count as one device would count them.
Variable FunctionCut::mean_of(const Variable& v, const std::vector<Variable>& values) {
  const Loc& loc = v.node()->loc;
  const DType dtype = dtype_of_mean(v);
  if (partitioner_.shards() == 1) return values[0];
  std::vector<Variable> weighted;
  for (int p = 0; p < partitioner_.shards(); ++p) {
    weighted.push_back(partitioner_.on(partitioner_.context_of(p), [&] {
      return apply("mul", {cast_to(values[at(p)], dtype, loc), weight(p, dtype, loc)}, {}, loc);
    }));
  }
  const Variable sum = partitioner_.all_reduce(weighted, kernel::Fold::sum, loc).parts[0];
  return partitioner_.on(0, [&] {
    const Variable all = rows_.empty()
                             ? make_scalar(dtype, static_cast<double>(partitioner_.shards()), loc)
                             : cast_to(partitioner_.total(rows_, 0), dtype, loc);
    return cast_to(apply("true_divide", {sum, all}, {}, loc), v.dtype(), loc);
  });
}

/// What the shards of one context have for `v`, put together there.
Variable FunctionCut::own(const Variable& v, int context, Combine how) {
  const Loc& loc = v.node()->loc;
  const std::vector<Variable> values = local(v);
  std::vector<Variable> mine, weighted, weights;
  for (int p = 0; p < partitioner_.shards(); ++p) {
    if (partitioner_.context_of(p) == context) mine.push_back(values[at(p)]);
  }
  if (mine.size() == 1 || how == Combine::first) return mine[0];
  const auto reduced = [&](const std::vector<Variable>& list, kernel::Fold fold) {
    return partitioner_.reduce_on(context, list, fold, loc);
  };
  const auto rounded = [&](kernel::Fold fold) {
    return partitioner_.on(context, [&] { return cast_to(reduced(mine, fold), v.dtype(), loc); });
  };
  if (how == Combine::sum) return rounded(kernel::Fold::sum);
  if (how == Combine::max) return rounded(kernel::Fold::max);
  if (how == Combine::min) return rounded(kernel::Fold::min);
  if (how == Combine::prod) return rounded(kernel::Fold::prod);
  const DType dtype = dtype_of_mean(v);
  for (int p = 0; p < partitioner_.shards(); ++p) {
    if (partitioner_.context_of(p) != context) continue;
    weights.push_back(partitioner_.on(context, [&] { return weight(p, dtype, loc); }));
    weighted.push_back(partitioner_.on(context, [&] {
      return apply("mul", {cast_to(values[at(p)], dtype, loc), weights.back()}, {}, loc);
    }));
  }
  const Variable sum = reduced(weighted, kernel::Fold::sum);
  const Variable all = reduced(weights, kernel::Fold::sum);
  return partitioner_.on(context, [&] {
    return cast_to(apply("true_divide", {sum, all}, {}, loc), v.dtype(), loc);
  });
}

Variable FunctionCut::combined(const Variable& v, Combine how) {
  const Loc& loc = v.node()->loc;
  std::vector<Variable> values = local(v);
  const auto reduced = [&](kernel::Fold fold) {
    return partitioner_.all_reduce(values, fold, loc).parts[0];
  };
  switch (how) {
    case Combine::mean:
      return mean_of(v, values);
    case Combine::sum:
      return reduced(kernel::Fold::sum);
    case Combine::max:
      return reduced(kernel::Fold::max);
    case Combine::min:
      return reduced(kernel::Fold::min);
    case Combine::prod:
      return reduced(kernel::Fold::prod);
    case Combine::gather:
      if (v.ndim() == 0) {
        for (Variable& value : values) value = insert_axes(value, {0}, loc);
      }
      return gathered(values, 0, loc);
    case Combine::first:
    case Combine::whole:
      break;
  }
  return values[0];
}

Variable FunctionCut::output(std::size_t i) {
  const Variable& v = function_.graph.outputs[i];
  const Combine how = combine_of(i);
  if (how != Combine::whole) return combined(v, how);
  const Held& held = partitioner_.find(v);
  return held.cut() ? gathered(held.parts, held.axis, v.node()->loc) : held.parts[0];
}

/// The same new value on each context.
void FunctionCut::update_all() {
  for (std::size_t u = 0; u < function_.updated.size(); ++u) {
    const Variable& target = function_.updated[u];
    const Variable& value = function_.graph.outputs[function_.user_outputs + u];
    const Held held = partitioner_.whole(partitioner_.find(value), value.node()->loc);
    for (int c = 0; c < partitioner_.contexts(); ++c) {
      result_.updated.push_back(partitioner_.held(target).parts[at(c)]);
      result_.graph.outputs.push_back(held.parts[at(c)]);
    }
  }
}

void FunctionCut::update_own() {
  for (std::size_t u = 0; u < function_.updated.size(); ++u) {
    const Variable& target = function_.updated[u];
    const Variable& value = function_.graph.outputs[function_.user_outputs + u];
    for (int c = 0; c < partitioner_.contexts(); ++c) {
      result_.updated.push_back(partitioner_.held(target).parts[at(c)]);
      result_.graph.outputs.push_back(own(value, c, request_.combine_updates[u]));
    }
  }
}

FunctionGraph FunctionCut::run() {
  result_.name = function_.name;
  result_.user_outputs = function_.user_outputs;
  result_.keep_on_device = function_.keep_on_device;
  hold_inputs();
  hold_selections();
  hold_shareds();
  std::vector<Variable> wanted;
  for (std::size_t i = 0; i < function_.graph.outputs.size(); ++i) {
    if (combine_of(i) == Combine::whole && !request_.replica)
      wanted.push_back(function_.graph.outputs[i]);
  }
  partitioner_.find_all(wanted);
  for (std::size_t i = 0; i < function_.user_outputs; ++i) {
    result_.graph.outputs.push_back(output(i));
  }
  request_.replica ? update_own() : update_all();
  return std::move(result_);
}

}  // namespace

FunctionGraph partition(const FunctionGraph& function, const PartitionRequest& request) {
  return FunctionCut(function, request).run();
}

}  // namespace croton
