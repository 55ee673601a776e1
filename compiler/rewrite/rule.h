// Rewrite rules: one short function each, whose comment is the rule `before -> after`. The rules of
// a stage live together with their table; rewrite() runs a stage.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/compile.h"
#include "compiler/graph/node_map.h"
#include "compiler/rewrite/size_source.h"

namespace croton {

/// How the value of a result relates to that of what it replaces. DEBUG compares accordingly.
enum class Precision : std::uint8_t {
  exact,        ///< the same numbers; only the sign of a zero and the bits of a NaN may change
  rounding,     ///< the same up to rounding
  stabilising,  ///< the same where the old value was finite and accurate, a better one elsewhere
};

/// What a rule may ask about the graph around its node.
class RewriteContext {
 public:
  /// Whether at most one operand of another node, or one output of the graph, is this value.
  bool used_once(const Variable& v);

  /// Whether `value` can stand for the result of `node`: the same dtype, rank and sizes, unknown
  /// ones included.
  bool fits(const Variable& value, const Node& node);
  /// Whether `value` has the sizes of `like`, unknown ones included.
  bool same_shape(const Variable& value, const Variable& like);

  /// `value` with the sizes of the result of `node`: itself, or repeated where all sizes are known;
  /// undefined otherwise.
  Variable shaped(const Variable& value, const Node& node);
  /// `value` if it can stand for the result of `node`, else undefined.
  Variable accept(const Variable& value, const Node& node);
  /// All elements `value`, with dtype and sizes of the result of `node`; undefined where the sizes
  /// follow from nothing but the node.
  Variable filled(const Node& node, double value);
  /// A size as an int64 scalar.
  Variable size_value(const SizeSource& source);

  SizeSources& sizes() { return sizes_; }

 private:
  friend class Rewriter;
  NodeMap<int> uses_;
  SizeSources sizes_;
  bool asked_uses_ = false;
};

struct Rule {
  std::string_view name;
  /// The ops that its node may be of, separated by blanks; empty for any.
  std::string_view roots;
  /// Separated by blanks. The name of the stage is a tag too. A rule tagged `unsafe` runs only when
  /// the flag optimizer_including names it or the tag.
  std::string_view tags;
  Precision precision;
  /// The new value of the node's only output; undefined when the rule does not match. The new nodes
  /// take place and context of the node.
  Variable (*apply)(const Node& node, RewriteContext& context);
};

/// Rules of one family.
struct RuleTable {
  std::string_view stage;  ///< the name of the pass that they are for, a tag of each of them
  std::span<const Rule> rules;
};

RuleTable folding_rules();
RuleTable arithmetic_rules();
RuleTable shape_rules();
RuleTable view_rules();  ///< those that turn views into index maps
RuleTable stabilize_rules();
RuleTable stabilize_gradient_rules();
RuleTable specialize_rules();

}  // namespace croton
