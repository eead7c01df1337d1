// NamedRules: a grammar's rules by the names that its text gives them. A name may be used before
// its rule is defined.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "grammar/grammar.h"

namespace weir::grammar {

class NamedRules {
 public:
  explicit NamedRules(Grammar& grammar) : grammar_(grammar) {}

  // Of a name that is new: a rule without a body.
  RuleId of(std::string_view name) {
    const auto [found, fresh] = rules_.try_emplace(std::string(name), -1);
    if (fresh) found->second = grammar_.add_rule(name);
    return found->second;
  }
  std::optional<RuleId> find(const std::string& name) const {
    const auto found = rules_.find(name);
    return found == rules_.end() ? std::nullopt : std::optional(found->second);
  }
  bool is_defined(RuleId rule) const {
    return grammar_.rules()[static_cast<size_t>(rule)].body != kNoExpr;
  }

 private:
  Grammar& grammar_;
  std::map<std::string, RuleId> rules_;
};

}  // namespace weir::grammar
