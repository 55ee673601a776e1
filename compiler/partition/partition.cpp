#include "compiler/partition/partition.h"

#include <fmt/format.h>

#include "compiler/partition/partitioner.h"
#include "croton/error.h"
#include "ops/build.h"
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
  void hold_shareds();
  Combine combine_of(std::size_t i) const {
    return i < request_.combine.size() ? request_.combine[i] : Combine::whole;
  }
  Variable output(std::size_t i);
  std::vector<Variable> local(const Variable& v);
  Variable gathered(const std::vector<Variable>& parts, int axis, const Loc& loc);
  Variable combined(const Variable& v, Combine how);
  Variable mean_of(const Variable& v, const std::vector<Variable>& values);

  const FunctionGraph& function_;
  const PartitionRequest& request_;
  Partitioner partitioner_;
  FunctionGraph result_;
  std::vector<Variable> rows_;  ///< of each shard
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

void FunctionCut::hold_shareds() {
  const auto hold = [&](const Variable& v) {
    Held held;
    for (int c = 0; c < partitioner_.contexts(); ++c) {
      held.parts.push_back(shared_on(v, partitioner_.name(c)));
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

/// Weighted by rows, so that uneven shards count as one device would count them.
Variable FunctionCut::mean_of(const Variable& v, const std::vector<Variable>& values) {
  const Loc& loc = v.node()->loc;
  const DType dtype = is_narrow(v.dtype()) ? DType::float32 : v.dtype();
  if (!is_float(dtype)) {
    throw GraphError(fmt::format(
        "[data_parallel] an output of dtype {} has no mean: take its sum, or cast it; at {}",
        name_of(v.dtype()), to_text(loc)));
  }
  if (rows_.empty()) return values[0];
  std::vector<Variable> weighted;
  for (int p = 0; p < partitioner_.shards(); ++p) {
    weighted.push_back(partitioner_.on(partitioner_.context_of(p), [&] {
      const Variable rows = cast_to(rows_[at(p)], dtype, loc);
      return apply("mul", {cast_to(values[at(p)], dtype, loc), rows}, {}, loc);
    }));
  }
  const Variable sum = partitioner_.all_reduce(weighted, kernel::Fold::sum, loc).parts[0];
  return partitioner_.on(0, [&] {
    const Variable all = cast_to(partitioner_.total(rows_, 0), dtype, loc);
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

FunctionGraph FunctionCut::run() {
  result_.name = function_.name;
  result_.user_outputs = function_.user_outputs;
  result_.keep_on_device = function_.keep_on_device;
  hold_inputs();
  hold_shareds();
  std::vector<Variable> wanted;
  for (std::size_t i = 0; i < function_.graph.outputs.size(); ++i) {
    if (combine_of(i) == Combine::whole) wanted.push_back(function_.graph.outputs[i]);
  }
  partitioner_.find_all(wanted);
  for (std::size_t i = 0; i < function_.user_outputs; ++i) {
    result_.graph.outputs.push_back(output(i));
  }
  for (std::size_t u = 0; u < function_.updated.size(); ++u) {
    const Variable& target = function_.updated[u];
    const Variable& value = function_.graph.outputs[function_.user_outputs + u];
    const Held held = partitioner_.whole(partitioner_.find(value), value.node()->loc);
    for (int c = 0; c < partitioner_.contexts(); ++c) {
      result_.updated.push_back(partitioner_.held(target).parts[at(c)]);
      result_.graph.outputs.push_back(held.parts[at(c)]);
    }
  }
  return std::move(result_);
}

}  // namespace

FunctionGraph partition(const FunctionGraph& function, const PartitionRequest& request) {
  return FunctionCut(function, request).run();
}

}  // namespace croton
