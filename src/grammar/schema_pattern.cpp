#include "grammar/schema_pattern.h"

#include <string>
#include <vector>

#include "grammar/machine.h"
#include "grammar/regex.h"

namespace weir::grammar {

namespace {

// More are no pattern that a person wrote.
constexpr size_t kLookaheadsMax = 16;

// Where the group that begins at `begin` ends, at its bracket; or where the next `|` outside of all
// groups is, if `for_bar`. npos: nowhere.
size_t find_end(std::string_view pattern, size_t begin, bool for_bar) {
  int depth = 0;
  bool in_class = false;
  for (size_t i = begin; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\') {
      ++i;
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
      if (i + 1 < pattern.size() && pattern[i + 1] == '^') ++i;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')') {
      if (--depth == 0 && !for_bar) return i;
    } else if (c == '|' && depth == 0 && for_bar) {
      return i;
    }
  }
  return std::string_view::npos;
}

struct Lookaheads {
  std::vector<std::string> wanted, forbidden;
  std::string rest;
};

Lookaheads take_lookaheads(std::string_view pattern) {
  Lookaheads found;
  std::string_view rest = pattern;
  if (rest.starts_with("^")) {
    rest.remove_prefix(1);
    while ((rest.starts_with("(?=") || rest.starts_with("(?!")) &&
           found.wanted.size() + found.forbidden.size() < kLookaheadsMax) {
      const size_t end = find_end(rest, 0, false);
      if (end == std::string_view::npos) break;
      auto& list = rest[2] == '=' ? found.wanted : found.forbidden;
      list.emplace_back("^(?:").append(rest.substr(3, end - 3)).append(")");
      rest.remove_prefix(end + 1);
    }
  }
  const bool any = !found.wanted.empty() || !found.forbidden.empty();
  // Of another alternative the lookaheads say nothing.
  if (!any || find_end(rest, 0, true) != std::string_view::npos)
    return {{}, {}, std::string(pattern)};
  found.rest.append("^").append(rest);
  return found;
}

}  // namespace

Result<ExprId> all_but(Grammar& grammar, std::span<const ExprId> demands,
                       std::span<const ExprId> exclusions) {
  if (demands.size() == 1 && exclusions.empty()) return demands.front();
  WEIR_ASSIGN(Dfa all, machine_of(grammar, demands.front()));
  for (const ExprId demand : demands.subspan(1)) {
    WEIR_ASSIGN(const Dfa next, machine_of(grammar, demand));
    WEIR_ASSIGN(all, intersect(all, next, grammar.budget));
  }
  for (const ExprId exclusion : exclusions) {
    WEIR_ASSIGN(const Dfa next, machine_of(grammar, exclusion));
    WEIR_ASSIGN(all, subtract(all, next, grammar.budget));
  }
  return grammar.machine(std::move(all));
}

Result<ExprId> pattern_text(Grammar& grammar, std::string_view pattern, Spelling spelling) {
  const Lookaheads lookaheads = take_lookaheads(pattern);
  std::vector<ExprId> demands, exclusions;
  const auto add = [&](std::string_view text, std::vector<ExprId>& list) -> Result<void> {
    WEIR_ASSIGN(const ExprId expr, regex(grammar, text, spelling, RegexMatch::kSearch));
    list.push_back(expr);
    return {};
  };
  WEIR_TRY(add(lookaheads.rest, demands));
  for (const std::string& text : lookaheads.wanted) WEIR_TRY(add(text, demands));
  for (const std::string& text : lookaheads.forbidden) WEIR_TRY(add(text, exclusions));
  return all_but(grammar, demands, exclusions);
}

}  // namespace weir::grammar
