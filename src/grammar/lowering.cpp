#include "grammar/lowering.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace weir::grammar {

namespace {

using Kind = Grammar::Kind;

// A rule up to this size (in NFA states) is copied into each user: a call costs more when the
// automaton runs than a few states do. An unconstrained JSON string has about 40.
constexpr int64_t kCopiedSizeMax = 96;
// What is called counts as little, however large: a long repetition, up to this size.
constexpr int64_t kWrittenOutMax = 2048;
constexpr int64_t kSizeMax = int64_t{1} << 40;

}  // namespace

Lowering::Lowering(Grammar& grammar, Style style) : grammar_(grammar), style_(style) {}

std::string_view Lowering::machine_name(int32_t machine) const {
  const RuleId rule = machines_[static_cast<size_t>(machine)].rule;
  // Not one expression with both: its type would be a string, gone when this returns.
  if (rule < 0) return "a repetition";
  return grammar_.rules()[static_cast<size_t>(rule)].name;
}

Result<void> Lowering::prepare() {
  if (grammar_.too_large()) return too_complex();
  const size_t count = grammar_.rules().size();
  for (const Grammar::Rule& rule : grammar_.rules())
    if (rule.body == kNoExpr)
      return fail(ErrorCode::kInvalid, "The grammar's rule '" + rule.name +
                                           "' is used but not defined; expected a definition.");
  references_.resize(count);
  use_count_.assign(count, 0);
  recursive_.assign(count, false);
  copied_.assign(count, false);
  rule_size_.assign(count, 0);
  expr_size_.assign(grammar_.expr_count(), -1);
  for (RuleId rule = 0; rule < static_cast<RuleId>(count); ++rule) {
    collect_references(rule, references_[static_cast<size_t>(rule)]);
    for (const RuleId used : references_[static_cast<size_t>(rule)])
      ++use_count_[static_cast<size_t>(used)];
    if (grammar_.budget.exhausted()) return too_complex();
  }
  order_rules();
  for (const RuleId rule : callees_first_) judge(rule);
  machine_of(grammar_.rules()[static_cast<size_t>(grammar_.root)].body, grammar_.root);
  return {};
}

// Rules named in the rule's body, as often as they are.
void Lowering::collect_references(RuleId rule, std::vector<RuleId>& out) {
  std::vector<ExprId> stack{grammar_.rules()[static_cast<size_t>(rule)].body};
  while (!stack.empty()) {
    const Grammar::Expr& expr = grammar_.expr(stack.back());
    stack.pop_back();
    if (--grammar_.budget.work < 0) return;
    if (expr.kind == Kind::kRule) out.push_back(expr.a);
    if (expr.kind == Kind::kRepeat) stack.push_back(expr.a);
    if (expr.kind == Kind::kConcat || expr.kind == Kind::kAny)
      stack.insert(stack.end(), grammar_.children(expr).begin(), grammar_.children(expr).end());
    if (expr.kind == Kind::kList) {
      const List& list = grammar_.list_of(expr);
      for (const ListItem& item : list.items) stack.push_back(item.expr);
      stack.push_back(list.separator);
      if (list.rest != kNoExpr) stack.push_back(list.rest);
    }
  }
}

// Tarjan's strongly connected components without recursion: callees before callers, and which
// rules call themselves by some way.
void Lowering::order_rules() {
  const size_t count = references_.size();
  std::vector<int32_t> index(count, -1), low(count, 0);
  std::vector<bool> on_stack(count, false);
  std::vector<RuleId> component;
  std::vector<std::pair<RuleId, size_t>> path;  // A rule, and its next reference to look at.
  int32_t next_index = 0;
  const auto enter = [&](RuleId rule) {
    const auto r = static_cast<size_t>(rule);
    index[r] = low[r] = next_index++;
    on_stack[r] = true;
    component.push_back(rule);
    path.emplace_back(rule, 0);
  };
  enter(grammar_.root);
  while (!path.empty()) {
    const auto [rule, next] = path.back();
    const auto r = static_cast<size_t>(rule);
    if (next < references_[r].size()) {
      ++path.back().second;
      const RuleId used = references_[r][next];
      const auto u = static_cast<size_t>(used);
      if (used == rule) recursive_[r] = true;
      if (index[u] < 0)
        enter(used);
      else if (on_stack[u])
        low[r] = std::min(low[r], index[u]);
      continue;
    }
    path.pop_back();
    if (!path.empty()) {
      const auto parent = static_cast<size_t>(path.back().first);
      low[parent] = std::min(low[parent], low[r]);
    }
    if (low[r] != index[r]) continue;
    const bool alone = component.back() == rule;
    RuleId member = -1;
    do {
      member = component.back();
      component.pop_back();
      on_stack[static_cast<size_t>(member)] = false;
      if (!alone) recursive_[static_cast<size_t>(member)] = true;
      callees_first_.push_back(member);
    } while (member != rule);
  }
}

void Lowering::judge(RuleId rule) {
  const auto r = static_cast<size_t>(rule);
  const Grammar::Rule& definition = grammar_.rules()[r];
  rule_size_[r] = size(definition.body);
  copied_[r] =
      !definition.keep && !recursive_[r] && (use_count_[r] <= 1 || rule_size_[r] <= kCopiedSizeMax);
}

// In NFA states. Rules that it uses have been judged, or are part of a cycle and are called.
int64_t Lowering::size(ExprId id) {
  int64_t& known = expr_size_[static_cast<size_t>(id)];
  if (known >= 0) return known;
  const Grammar::Expr& expr = grammar_.expr(id);
  int64_t sum = 1;
  switch (expr.kind) {
    case Kind::kNothing:
    case Kind::kEmpty:
    case Kind::kSymbols:
      break;
    case Kind::kLiteral:
      sum = expr.b;
      break;
    case Kind::kCharacters:
      sum = 2 + static_cast<int64_t>(grammar_.char_set(expr).ranges().size());
      break;
    case Kind::kConcat:
    case Kind::kAny:
      for (const ExprId child : grammar_.children(expr)) sum += size(child);
      break;
    case Kind::kRepeat: {
      const int64_t once = size(expr.a);
      const int64_t copies = expr.max == kUnbounded ? expr.min + int64_t{1} : expr.max;
      sum = std::min(once * copies, std::max(once, kWrittenOutMax));
      break;
    }
    case Kind::kRule: {
      const auto rule = static_cast<size_t>(expr.a);
      sum = copied_[rule] ? rule_size_[rule] : 1;
      break;
    }
    case Kind::kList: {
      const List& list = grammar_.list_of(expr);
      for (const ListItem& item : list.items) sum += size(item.expr) + 4;
      if (list.rest != kNoExpr) sum += size(list.rest);
      if (list.min > 0 || list.max != kUnbounded)
        sum *= std::min<int64_t>(static_cast<int64_t>(list.items.size()) + 1, 4096);
      break;
    }
    case Kind::kMachine:
      sum = static_cast<int64_t>(grammar_.machine_of(expr).states.size());
      break;
  }
  return known = std::min(sum, kSizeMax);
}

Result<Nfa> Lowering::build(int32_t machine) {
  return build_body(machines_[static_cast<size_t>(machine)].body);
}

Result<Nfa> Lowering::build_single(ExprId expr) {
  CHECK(style_ == Style::kWrittenOut);
  if (grammar_.too_large()) return too_complex();
  return build_body(expr);
}

Result<Nfa> Lowering::build_body(ExprId body) {
  nfa_ = {};
  nfa_.start = nfa_.add_state();
  nfa_.final = nfa_.add_state();
  lower(body, nfa_.start, nfa_.final);
  if (grammar_.budget.exhausted() || grammar_.too_large()) return too_complex();
  return std::move(nfa_);
}

void Lowering::lower(ExprId id, int32_t from, int32_t to) {
  grammar_.budget.work -= 2;
  if (grammar_.budget.states < static_cast<int64_t>(nfa_.first_edge.size()))
    grammar_.budget.states = -1;  // The draft alone is too large.
  if (grammar_.budget.exhausted()) return;
  const Grammar::Expr expr = grammar_.expr(id);  // A copy: lowering may add expressions.
  switch (expr.kind) {
    case Kind::kNothing:
      break;
    case Kind::kEmpty:
      nfa_.add_empty(from, to);
      break;
    case Kind::kSymbols:
      nfa_.add_symbols(from, to, static_cast<uint16_t>(expr.a), static_cast<uint16_t>(expr.b));
      break;
    case Kind::kLiteral: {
      const std::string_view text = grammar_.text(expr);
      grammar_.budget.work -= expr.b;
      for (size_t i = 0; i < text.size(); ++i) {
        const int32_t next = i + 1 == text.size() ? to : nfa_.add_state();
        const auto byte = static_cast<uint8_t>(text[i]);
        nfa_.add_symbols(from, next, byte, byte);
        from = next;
      }
      break;
    }
    case Kind::kCharacters:
      lower_characters(grammar_.char_set(expr), from, to);
      break;
    case Kind::kConcat: {
      const auto count = static_cast<size_t>(expr.b);
      for (size_t i = 0; i < count; ++i) {
        const int32_t next = i + 1 == count ? to : nfa_.add_state();
        lower(grammar_.children(expr)[i], from, next);
        from = next;
      }
      break;
    }
    case Kind::kAny:
      for (size_t i = 0; i < static_cast<size_t>(expr.b); ++i)
        lower(grammar_.children(expr)[i], from, to);
      break;
    case Kind::kRepeat:
      lower_repeat(expr, from, to);
      break;
    case Kind::kRule:
      lower_rule(expr.a, from, to);
      break;
    case Kind::kList:
      lower_list(grammar_.list_of(expr), from, to);
      break;
    case Kind::kMachine:
      lower_machine(grammar_.machine_of(expr), from, to);
      break;
  }
}

}  // namespace weir::grammar
