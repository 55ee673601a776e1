#include "compiler/rewrite/selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/graph/op.h"
#include "compiler/passes.h"
#include "compiler/rewrite/rewrite.h"
#include "config/nearest_name.h"
#include "croton/error.h"

namespace croton {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// Whether the list has the rule's name, its stage or one of its tags.
bool names_rule(const std::vector<std::string>& list, const Rule& rule, std::string_view stage) {
  if (list.empty()) return false;
  bool found = contains(list, rule.name) || contains(list, stage);
  for_each_word(rule.tags, [&](std::string_view tag) { found = found || contains(list, tag); });
  return found;
}

bool has_tag(const Rule& rule, std::string_view wanted) {
  bool found = false;
  for_each_word(rule.tags, [&](std::string_view tag) { found = found || tag == wanted; });
  return found;
}

/// An unsafe rule must be asked for by its name or by that tag; the stage's name is not enough.
bool asks_for_unsafe(const std::vector<std::string>& list, const Rule& rule) {
  return contains(list, rule.name) || contains(list, "unsafe");
}

bool is_active(const Rule& rule, std::string_view stage, const Config& config) {
  const std::vector<std::string>& including = config.optimizer_including();
  if (names_rule(config.optimizer_excluding(), rule, stage)) return false;
  if (has_tag(rule, "unsafe")) return asks_for_unsafe(including, rule);
  return config.mode() != Mode::fast_compile || names_rule(including, rule, stage);
}

}  // namespace

RuleSelection::RuleSelection(std::span<const RuleTable> tables, const Config& config) {
  std::vector<const Rule*> all;
  const OpRegistry& registry = OpRegistry::instance();
  for (const RuleTable& table : tables) {
    for (const Rule& rule : table.rules) {
      if (is_active(rule, table.stage, config)) all.push_back(&rule);
    }
  }
  for (const Rule* rule : all) {
    for_each_word(rule->roots, [&](std::string_view root) { by_op_[&registry.at(root)]; });
    if (rule->roots.empty()) everywhere_.push_back(rule);
  }
  for (const Rule* rule : all) {
    if (rule->roots.empty()) {
      for (auto& [op, rules] : by_op_) rules.push_back(rule);
    } else {
      for_each_word(rule->roots,
                    [&](std::string_view root) { by_op_[&registry.at(root)].push_back(rule); });
    }
  }
}

std::span<const Rule* const> RuleSelection::rules_for(const OpDef* op) const {
  const auto it = by_op_.find(op);
  return it == by_op_.end() ? everywhere_ : it->second;
}

bool is_pass_selected(std::string_view name, bool needed, const Config& config) {
  if (needed) return true;
  if (contains(config.optimizer_excluding(), name)) return false;
  return config.mode() != Mode::fast_compile || contains(config.optimizer_including(), name);
}

void check_rule_flags(const Config& config) {
  if (config.optimizer_including().empty() && config.optimizer_excluding().empty()) return;
  std::vector<std::string> known;
  std::vector<std::string> needed;
  const auto add = [&](std::string_view name) {
    if (!contains(known, name)) known.emplace_back(name);
  };
  for (const Pass& pass : pipeline()) {
    if (pass.needed) {
      needed.emplace_back(pass.name);
    } else {
      add(pass.name);
    }
  }
  for (const RuleTable& table : all_rules()) {
    for (const Rule& rule : table.rules) {
      for_each_word(rule.tags, add);
      add(rule.name);
    }
  }
  const auto check = [&](std::string_view flag, const std::vector<std::string>& list) {
    for (const std::string& name : list) {
      if (contains(known, name)) continue;
      if (contains(needed, name)) {
        throw ConfigError(
            fmt::format("[{}] the pass '{}' is needed in every mode: it can neither "
                        "be added nor left out",
                        flag, name));
      }
      const std::string near = did_you_mean(name, known);
      throw ConfigError(fmt::format("[{}] no rewrite has the name or tag '{}'{}{}", flag, name,
                                    near,
                                    near.empty() ? "; tags are the names of passes and of "
                                                   "groups of rules such as 'algebra'"
                                                 : ""));
    }
  };
  check("optimizer_including", config.optimizer_including());
  check("optimizer_excluding", config.optimizer_excluding());
}

}  // namespace croton
