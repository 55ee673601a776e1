// Expressions as one would write them.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/op.h"
#include "croton/printing.h"
#include "frontend/graph_tree.h"

namespace croton {
namespace {

/// Ops that C++ has a sign for; a higher level binds tighter, as in C++.
struct Sign {
  std::string_view op;
  std::string_view text;
  int level;
};
constexpr Sign kSigns[] = {
    {"bitwise_or", "|", 1},  {"bitwise_xor", "^", 2},  {"bitwise_and", "&", 3},
    {"left_shift", "<<", 4}, {"right_shift", ">>", 4}, {"add", "+", 5},
    {"sub", "-", 5},         {"mul", "*", 6},          {"true_divide", "/", 6},
    {"mod", "%", 6},         {"neg", "-", 7},          {"bitwise_not", "~", 7},
};
constexpr int kPrefixLevel = 7;

const Sign* sign_of(const Node& node) {
  const auto* found = std::find_if(std::begin(kSigns), std::end(kSigns),
                                   [&](const Sign& sign) { return sign.op == node.op->name; });
  return found == std::end(kSigns) ? nullptr : found;
}

/// Writes tokens in order from a stack of what is still to come: no recursion, linear in the graph.
class Writer {
 public:
  std::string write(const Variable& root) {
    count_uses(root);
    std::string text = expression(root);
    for (std::size_t i = 0; i < named_.size(); ++i) {
      const std::string name = names_.at(named_[i].node());
      const char* before = i == 0 ? " where " : ", ";
      text += fmt::format("{}{} = {}", before, name, expression(named_[i]));
    }
    return text;
  }

 private:
  struct Operand {
    Variable value;
    int level;  ///< below which it needs parentheses
  };
  using Item = std::variant<std::string, Operand>;

  void count_uses(const Variable& root) {
    const std::vector<Variable> roots{root};
    for (const Node* node : topological_order(roots)) {
      for (const Variable& input : node->inputs) ++uses_[input.node()];
    }
  }

  std::string expression(const Variable& root) {
    std::string text;
    std::vector<Item> todo{Operand{root, 0}};
    const Node* const top = root.node();
    while (!todo.empty()) {
      Item item = std::move(todo.back());
      todo.pop_back();
      if (const std::string* token = std::get_if<std::string>(&item)) {
        text += *token;
        continue;
      }
      const Operand& operand = std::get<Operand>(item);
      if (is_named(*operand.value.node(), top)) {
        text += name_of_repeated(operand.value);
      } else {
        expand(operand, todo);
      }
    }
    return text;
  }

  bool is_named(const Node& node, const Node* top) const {
    if (&node == top || node.op->form == OpForm::leaf) return false;
    const auto found = uses_.find(&node);
    return node.outputs.size() == 1 && found != uses_.end() && found->second > 1;
  }

  const std::string& name_of_repeated(const Variable& value) {
    const auto [it, added] = names_.try_emplace(value.node());
    if (added) {
      it->second = fmt::format("t{}", names_.size());
      named_.push_back(value);
    }
    return it->second;
  }

  void expand(const Operand& operand, std::vector<Item>& todo) {
    const Node& node = *operand.value.node();
    std::vector<Item> items;
    const Sign* sign = sign_of(node);
    if (node.op->form == OpForm::leaf) {
      items.push_back(leaf(operand.value));
    } else if (sign != nullptr) {
      const bool enclosed = sign->level < operand.level;
      if (enclosed) items.push_back("(");
      if (sign->level == kPrefixLevel) {
        items.push_back(std::string(sign->text));
        items.push_back(Operand{node.inputs[0], kPrefixLevel});
      } else {
        items.push_back(Operand{node.inputs[0], sign->level});
        items.push_back(fmt::format(" {} ", sign->text));
        items.push_back(Operand{node.inputs[1], sign->level + 1});
      }
      if (enclosed) items.push_back(")");
    } else if (node.op->name == "gemm" && node.inputs.size() == 2) {
      const auto level = [&](const char* attr) {
        return node.attrs().integer_or(attr, 0) != 0 ? kPrefixLevel + 1 : 0;
      };
      const auto turned = [&](const char* attr, const char* after) {
        return (node.attrs().integer_or(attr, 0) != 0 ? ".T" : "") + std::string(after);
      };
      items = {"dot(", Operand{node.inputs[0], level("transpose_a")}, turned("transpose_a", ", "),
               Operand{node.inputs[1], level("transpose_b")}, turned("transpose_b", ")")};
    } else {
      items.push_back(node.op->name);
      if (node.outputs.size() > 1) items.push_back(fmt::format(".{}", operand.value.output()));
      items.push_back("(");
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (i > 0) items.push_back(", ");
        items.push_back(Operand{node.inputs[i], 0});
      }
      const std::string attrs = node.attrs().to_text();
      if (!attrs.empty()) items.push_back((node.inputs.empty() ? "" : ", ") + attrs);
      items.push_back(")");
    }
    todo.insert(todo.end(), std::make_move_iterator(items.rbegin()),
                std::make_move_iterator(items.rend()));
  }

  static std::string leaf(const Variable& value) {
    const Node& node = *value.node();
    const Type& type = node.outputs[value.output()];
    if (constant_value(value) == nullptr && node.name->empty()) {
      return fmt::format("<{}>", type.to_text());
    }
    const std::string title = title_of(value);
    return title == "constant" ? fmt::format("<constant {}>", type.to_text()) : title;
  }

  std::unordered_map<const Node*, int> uses_;
  std::unordered_map<const Node*, std::string> names_;
  std::vector<Variable> named_;
};

}  // namespace

std::string pp(const Variable& value) {
  return value.defined() ? Writer().write(value) : "<empty Variable>";
}

}  // namespace croton
