// Cuts a failing sample down, and writes it as C++.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "compiler/graph/op.h"
#include "croton/error.h"
#include "tests/fuzz/sample.h"

namespace croton::fuzz {
namespace {

bool still_fails(const Sample& sample, const Setting& mode) {
  try {
    const Failure found = failure(sample, mode);
    return found && (!found.of_values || is_stable(sample));
  } catch (const Error&) {
    return false;  // not a graph, or not one that has a value
  }
}

Sample without_unused(const Sample& sample) {
  Sample kept;
  kept.outputs = sample.outputs;
  VariableMap<bool> used;
  for (const Node* node : topological_order(sample.outputs)) used[node->out()] = true;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    if (!used.contains(sample.inputs[i])) continue;
    kept.inputs.push_back(sample.inputs[i]);
    kept.arguments.push_back(sample.arguments[i]);
  }
  return kept;
}

std::vector<const Node*> interior(const Sample& sample) {
  std::vector<const Node*> nodes = topological_order(sample.outputs);
  std::erase_if(nodes, [](const Node* node) { return node->inputs.empty(); });
  return nodes;
}

/// The sample with what an interior node gives as an argument.
Sample cut(const Sample& sample, const Node& node) {
  Sample made = sample;
  VariableMap<Variable> replacements;
  for (std::size_t k = 0; k < node.outputs.size(); ++k) {
    const Variable old = node.out(static_cast<int>(k));
    Sample only = sample;
    only.outputs = {old};
    const Variable input = make_input(node.outputs[k], "", Loc::current());
    replacements[old] = input;
    made.inputs.push_back(input);
    made.arguments.push_back(reference(only)[0]);
  }
  made.outputs = rebuild({sample.inputs, sample.outputs}, {}, replacements).outputs;
  return without_unused(made);
}

std::string list_text(const std::vector<std::int64_t>& list) {
  return fmt::format("{{{}}}", fmt::join(list, ", "));
}

std::string dtype_text(DType dtype) {
  return fmt::format("DType::{}", is_bool(dtype) ? "boolean" : name_of(dtype));
}

std::string array_text(const Array& array) {
  const std::string shape = list_text({array.shape().begin(), array.shape().end()});
  std::vector<std::string> numbers;
  for (const double v : array.astype(DType::float64).to_vector<double>()) {
    numbers.push_back(std::isnan(v)   ? "NAN"
                      : std::isinf(v) ? (v < 0 ? "-INFINITY" : "INFINITY")
                                      : fmt::format("{}", v));
  }
  return fmt::format("Array::from<double>(std::vector<double>{{{}}}, {}).astype({})",
                     fmt::join(numbers, ", "), shape, dtype_text(array.dtype()));
}

std::string attr_text(const Attrs::Entry& entry) {
  const std::string value = std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::int64_t>) return fmt::format("std::int64_t{{{}}}", v);
        if constexpr (std::is_same_v<T, double>) return fmt::format("double({})", v);
        if constexpr (std::is_same_v<T, std::string>) return fmt::format("std::string(\"{}\")", v);
        if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
          return "std::vector<std::int64_t>" + list_text(v);
        }
      },
      entry.value);
  return fmt::format("{{\"{}\", {}}}", entry.name, value);
}

}  // namespace

Sample shrink(const Sample& sample, const Setting& mode) {
  Sample best = without_unused(sample);
  // The first value that is wrong by itself.
  for (const Node* node : interior(best)) {
    Sample tried = best;
    tried.outputs.clear();
    // The other outputs of a node are scratch memory.
    tried.outputs.push_back(node->out());
    tried = without_unused(tried);
    if (!still_fails(tried, mode)) continue;
    best = tried;
    break;
  }
  for (bool smaller = true; smaller;) {
    smaller = false;
    const std::vector<const Node*> nodes = interior(best);
    // From the end: what is cut there takes most with it.
    for (auto node = nodes.rbegin(); node != nodes.rend() && !smaller; ++node) {
      if (nodes.size() == 1) break;
      Sample tried;
      try {
        tried = cut(best, **node);
      } catch (const Error&) {
        continue;
      }
      if (interior(tried).empty() || interior(tried).size() >= nodes.size()) continue;
      if (!still_fails(tried, mode)) continue;
      best = tried;
      smaller = true;
    }
  }
  return best;
}

std::string cpp_text(const Sample& sample, const Setting& mode) {
  VariableMap<std::string> names;
  std::string text;
  std::vector<std::string> inputs, arguments, outputs;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    const Type& type = sample.inputs[i].node()->outputs[0];
    const std::string name = fmt::format("x{}", i);
    names[sample.inputs[i]] = name;
    text += fmt::format("  Variable {} = tensor(\"{}\", {}, {});\n", name, name,
                        dtype_text(type.dtype), list_text({type.shape.begin(), type.shape.end()}));
    inputs.push_back(name);
    arguments.push_back(array_text(sample.arguments[i]));
  }
  int number = 0;
  for (const Node* node : topological_order(sample.outputs)) {
    if (names.contains(node->out())) continue;
    const std::string name = fmt::format("v{}", number++);
    if (node->value.has_value()) {
      text += fmt::format("  Variable {} = constant({});\n", name, array_text(node->value));
    } else {
      std::vector<std::string> operands, attrs;
      for (const Variable& input : node->inputs) operands.push_back(names.at(input));
      for (const Attrs::Entry& entry : node->attrs()) attrs.push_back(attr_text(entry));
      text += fmt::format("  Variable {} = apply(\"{}\", {{{}}}, {{{}}}, Loc::current());\n", name,
                          node->op->name, fmt::join(operands, ", "), fmt::join(attrs, ", "));
    }
    names[node->out()] = name;
    for (std::size_t k = 1; k < node->outputs.size(); ++k) {
      names[node->out(static_cast<int>(k))] = fmt::format("{}.node()->out({})", name, k);
    }
  }
  for (const Variable& output : sample.outputs) outputs.push_back(names.at(output));
  std::string config = "current_config()";
  for (const auto& [flag, value] : mode.flags) {
    config += fmt::format(".with(\"{}\", \"{}\")", flag, value);
  }
  text += fmt::format("  Function f = function({{{}}}, {{{}}}, {{.config = {}}});\n",
                      fmt::join(inputs, ", "), fmt::join(outputs, ", "), config);
  text += "  std::cout << f.call(std::vector<Array>{\n";
  for (const std::string& argument : arguments) text += "      " + argument + ",\n";
  return text + "  });\n";
}

}  // namespace croton::fuzz
