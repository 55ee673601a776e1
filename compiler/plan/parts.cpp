#include "compiler/plan/parts.h"

#include <algorithm>

#include "compiler/graph/op.h"
#include "compiler/passes.h"
#include "compiler/plan/shapes.h"
#include "croton/error.h"

namespace croton {
namespace {

bool is_leaf(const Node& node) { return node.op->form == OpForm::leaf; }

class Splitter {
 public:
  Splitter(const FunctionGraph& function, const Shapes& shapes)
      : function_(function), order_(function.graph.order()) {
    for (const Variable& v : shapes.computed()) computed_.insert(v);
    for (const auto& [node, v] : shapes.asked()) {
      for (const Variable& source : sources(v)) needs_[node].push_back(source);
    }
  }

  std::vector<FunctionPart> run() {
    find_parts();
    std::vector<FunctionPart> parts;
    for (int s = 0; s <= last_; ++s) parts.push_back(part(s));
    return parts;
  }

 private:
  /// The computed sizes that the value of a scalar is made of.
  std::vector<Variable> sources(const Variable& scalar) const {
    std::vector<Variable> result;
    std::vector<Variable> todo{scalar};
    VariableSet seen;
    while (!todo.empty()) {
      const Variable v = todo.back();
      todo.pop_back();
      if (!seen.insert(v).second) continue;
      if (computed_.contains(v)) {
        result.push_back(v);
      } else {
        todo.insert(todo.end(), v.node()->inputs.begin(), v.node()->inputs.end());
      }
    }
    return result;
  }

  /// The part of each node: the last one that its users allow.
  void find_parts() {
    std::unordered_map<const Node*, int> earliest;
    for (const Node* node : order_) {
      int& part = earliest[node];
      for (const Variable& input : node->inputs) part = std::max(part, earliest[input.node()]);
      for (const Variable& size : needs_[node]) {
        part = std::max(part, earliest[size.node()] + 1);
      }
      last_ = std::max(last_, part);
    }
    for (const Node* node : order_) part_[node] = last_;
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      const auto before = [&](const Variable& v, int part) {
        part_[v.node()] = std::min(part_[v.node()], part);
      };
      for (const Variable& input : (*it)->inputs) before(input, part_[*it]);
      for (const Variable& size : needs_[*it]) before(size, part_[*it] - 1);
    }
  }

  /// Whether a part gets a value from an earlier one.
  bool crosses(const Variable& v, int part) const {
    if (is_leaf(*v.node())) return false;
    return part_.at(v.node()) < part;
  }

  /// What a part takes from earlier ones, in the order of the graph; sizes come with it.
  std::vector<Variable> taken_by(int part) const {
    std::vector<Variable> result;
    VariableSet seen;
    const auto take = [&](const Variable& v, bool size) {
      if ((size || crosses(v, part)) && seen.insert(v).second) result.push_back(v);
    };
    for (const Node* node : order_) {
      if (is_leaf(*node) || part_.at(node) != part) continue;
      for (const Variable& input : node->inputs) take(input, false);
      for (const Variable& size : needs_.at(node)) take(size, true);
    }
    if (part == last_) {
      for (const Variable& output : function_.graph.outputs) take(output, false);
    }
    return result;
  }

  FunctionPart part(int number) {
    FunctionPart made;
    made.written.name = function_.name;
    made.written.keep_on_device = number < last_ || function_.keep_on_device;
    Graph& graph = made.written.graph;
    graph.inputs = function_.graph.inputs;
    VariableMap<Variable> replace;
    for (const Variable& v : taken_by(number)) {
      const auto& [from, output] = given_.at(v);
      made.taken.push_back({from, output, computed_.contains(v)});
      graph.inputs.push_back(make_input(v.node()->outputs[v.output()], {}, v.node()->loc));
      // The node was made just now and nobody else holds it.
      const_cast<Node*>(graph.inputs.back().node())->context = v.node()->context;
      replace.emplace(v, graph.inputs.back());
    }
    Graph wanted;
    if (number == last_) {
      wanted.outputs = function_.graph.outputs;
      made.written.user_outputs = function_.user_outputs;
      made.written.updated = function_.updated;
    } else {
      wanted.outputs = given_by(number);
      made.written.user_outputs = wanted.outputs.size();
    }
    graph.outputs = rebuild(wanted, {}, replace).outputs;
    return made;
  }

  /// What later parts take from a part; noted with its place.
  std::vector<Variable> given_by(int number) {
    std::vector<Variable> result;
    for (int later = number + 1; later <= last_; ++later) {
      for (const Variable& v : taken_by(later)) {
        if (given_.contains(v) || (!is_leaf(*v.node()) && part_.at(v.node()) != number)) continue;
        given_.emplace(v, std::pair(number, static_cast<std::int32_t>(result.size())));
        result.push_back(v);
      }
    }
    return result;
  }

  const FunctionGraph& function_;
  const std::vector<const Node*> order_;
  VariableSet computed_;
  std::unordered_map<const Node*, std::vector<Variable>> needs_;
  std::unordered_map<const Node*, int> part_;
  int last_ = 0;
  /// The part that gives a value, and which output it is there.
  VariableMap<std::pair<std::int32_t, std::int32_t>> given_;
};

}  // namespace

std::vector<FunctionPart> split_parts(const FunctionGraph& written, const CompileContext& context) {
  // What crosses from one part to the next stays on its context.
  FunctionGraph placed = written;
  placed.graph = place(written.graph, context);
  DimTable dims;
  const Shapes shapes(placed.graph, shareds_of(placed), dims);
  internal_check(!shapes.computed().empty(), "a rule made a size depend on computed values");
  return Splitter(placed, shapes).run();
}

}  // namespace croton
