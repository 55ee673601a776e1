#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "compiler/rewrite/rule.h"

namespace croton {

/// Which rules of a stage run, by mode and the flags optimizer_including and optimizer_excluding,
/// which hold names and tags. Rules are found by the op of their root.
class RuleSelection {
 public:
  RuleSelection(std::span<const RuleTable> tables, const Config& config);

  /// The rules for nodes of an op, in the order of the tables.
  std::span<const Rule* const> rules_for(const OpDef* op) const;
  bool empty() const { return by_op_.empty() && everywhere_.empty(); }

 private:
  std::unordered_map<const OpDef*, std::vector<const Rule*>> by_op_;
  std::vector<const Rule*> everywhere_;
};

/// Whether a pass that is no stage of rules runs.
bool is_pass_selected(std::string_view name, bool needed, const Config& config);

/// Throws a ConfigError when optimizer_including or optimizer_excluding holds a name that is
/// neither of a rule or pass that may be left out nor a tag.
void check_rule_flags(const Config& config);

/// Calls f with each of the words in a text.
template <class F>
void for_each_word(std::string_view text, F&& f) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) f(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace croton
