#include "frontend/graph_tree.h"

#include <fmt/format.h>

#include <iostream>
#include <ostream>

#include "compiler/graph/op.h"

namespace croton {
namespace {

/// Levels below which a tree continues at the margin, so that the text stays linear in the graph.
constexpr int kDepth = 24;

/// 0 is A, 25 is Z, 26 is AA.
std::string letters(std::size_t number) {
  std::string text;
  for (++number; number > 0; number = (number - 1) / 26) {
    text.insert(text.begin(), static_cast<char>('A' + (number - 1) % 26));
  }
  return text;
}

}  // namespace

std::string title_of(const Variable& value) {
  const Node& node = *value.node();
  if (const Array* array = constant_value(value)) {
    const std::string text = array->size() <= 8 ? to_string(*array) : std::string();
    return text.empty() || text.find('\n') != text.npos ? "constant" : text;
  }
  std::string title = node.op->name;
  if (node.op->form == OpForm::leaf) {
    if (!node.name->empty()) title = *node.name;
    return title;
  }
  if (node.outputs.size() > 1) title += fmt::format(".{}", value.output());
  if (!node.attrs().empty()) title += fmt::format("{{{}}}", node.attrs().to_text());
  return title;
}

const std::string& TreePrinter::id_of(const Node* node) {
  return ids_.try_emplace(node, letters(ids_.size())).first->second;
}

void TreePrinter::add_line(const Line& line, bool again, bool continues) {
  const Node& node = *line.value.node();
  text += line.prefix;
  text += title_of(line.value);
  if (options_.ids) text += fmt::format(" [id {}]", id_of(&node));
  if (node.op->form != OpForm::leaf && !node.name->empty())
    text += fmt::format(" '{}'", *node.name);
  if (options_.types) text += fmt::format(" <{}>", node.outputs[line.value.output()].to_text());
  if (!node.context->empty()) text += fmt::format(" @{}", *node.context);
  if (node.shared) text += " shared";
  if (options_.lines && *node.loc.file_name() != '\0')
    text += fmt::format(" {}", to_text(node.loc));
  if (note) text += note(node);
  if (again) text += " ...";
  if (continues) text += " ... continued below";
  text += '\n';
}

void TreePrinter::print_tree(Line root, std::vector<Variable>& later) {
  std::vector<Line> todo{std::move(root)};
  while (!todo.empty()) {
    const Line line = std::move(todo.back());
    todo.pop_back();
    const Node* node = line.value.node();
    const bool known = ids_.contains(node);
    const bool inner = !node->inputs.empty();
    if (known && inner && line.depth > 0) {
      add_line(line, true, false);
      continue;
    }
    const bool deep = inner && line.depth >= kDepth;
    add_line(line, false, deep);
    if (deep) {
      later.push_back(line.value);
      continue;
    }
    for (std::size_t i = node->inputs.size(); i-- > 0;) {
      const bool last = i + 1 == node->inputs.size();
      todo.push_back({node->inputs[i], line.below + (last ? " └─ " : " ├─ "),
                      line.below + (last ? "    " : " │  "), line.depth + 1});
    }
  }
}

void TreePrinter::print(const Variable& value, std::string_view title) {
  const std::string prefix(title);
  if (!value.defined()) {
    text += prefix + "<empty Variable>\n";
    return;
  }
  if (ids_.contains(value.node()) && !value.node()->inputs.empty()) {
    add_line({value, prefix, {}, 0}, true, false);
    return;
  }
  std::vector<Variable> later;
  print_tree({value, prefix, {}, 0}, later);
  while (!later.empty()) {
    std::vector<Variable> now;
    now.swap(later);
    for (const Variable& deep : now) print_tree({deep, {}, {}, 0}, later);
  }
}

std::string debug_text(const std::vector<Variable>& values, const PrintOptions& options) {
  TreePrinter printer(options);
  for (const Variable& value : values) printer.print(value);
  return printer.text;
}

void debugprint(const std::vector<Variable>& values, const PrintOptions& options) {
  std::cout << debug_text(values, options);
}
void debugprint(const Function& function, const PrintOptions& options) {
  std::cout << debug_text(function, options);
}
void debugprint(std::ostream& out, const std::vector<Variable>& values,
                const PrintOptions& options) {
  out << debug_text(values, options);
}
void debugprint(std::ostream& out, const Function& function, const PrintOptions& options) {
  out << debug_text(function, options);
}

std::string to_string(const Variable& value) {
  if (!value.defined()) return "<empty Variable>";
  const std::string on =
      value.context().empty() ? std::string() : fmt::format(" on {}", value.context());
  return fmt::format("{}: {}{}", title_of(value), value.node()->outputs[value.output()].to_text(),
                     on);
}

std::ostream& operator<<(std::ostream& out, const Variable& value) {
  return out << to_string(value);
}
std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.to_string(); }
std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name_of(dtype); }

}  // namespace croton
