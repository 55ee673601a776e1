// Expressions as trees of text, for debugprint.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/graph/node.h"
#include "croton/printing.h"

namespace croton {

/// Prints several trees with one numbering of their nodes: what one tree has shown, later ones
/// refer to.
class TreePrinter {
 public:
  explicit TreePrinter(const PrintOptions& options) : options_(options) {}

  /// What to write at the end of a node's line.
  std::function<std::string(const Node&)> note;

  /// The tree below `value`, after `title`.
  void print(const Variable& value, std::string_view title = {});

  std::string text;

 private:
  struct Line {
    Variable value;
    std::string prefix;  ///< of this line
    std::string below;   ///< of the lines of its operands
    int depth = 0;
  };

  void print_tree(Line root, std::vector<Variable>& later);
  void add_line(const Line& line, bool again, bool continues);
  const std::string& id_of(const Node* node);

  PrintOptions options_;
  std::unordered_map<const Node*, std::string> ids_;
};

/// The op with its parameters, a symbol's name, or a constant's value when it is short.
std::string title_of(const Variable& value);

}  // namespace croton
