#include "grammar/schema_check.h"

#include <algorithm>
#include <string>

#include "base/utf8.h"
#include "grammar/machine.h"
#include "grammar/regex.h"
#include "grammar/schema_format.h"
#include "grammar/schema_pattern.h"

namespace weir::grammar {

namespace {

constexpr int kDepthMax = 64;
constexpr int64_t kCheckWork = 20;

int64_t characters(std::string_view text) {
  int64_t count = 0;
  for (size_t i = 0; i < text.size(); ++count) decode_utf8(text, i);
  return count;
}

Result<bool> accepted(Budget& budget, std::string_view pattern, RegexMatch match,
                      std::string_view text) {
  Grammar grammar;
  std::swap(grammar.budget, budget);
  const auto run = [&]() -> Result<bool> {
    WEIR_ASSIGN(const ExprId expr,
                match == RegexMatch::kSearch
                    ? pattern_text(grammar, pattern, Spelling::kPlain)
                    : regex(grammar, pattern, Spelling::kPlain, RegexMatch::kWhole));
    WEIR_ASSIGN(const Dfa dfa, machine_of(grammar, expr));
    return dfa.accepts(text);
  };
  Result<bool> result = run();
  std::swap(grammar.budget, budget);
  return result;
}

}  // namespace

Result<bool> SchemaCheck::satisfies(NodeId value, const std::vector<NodeId>& schemas, int depth) {
  budget_.work -= kCheckWork;
  if (depth > kDepthMax || budget_.exhausted()) return too_complex();
  WEIR_ASSIGN(const SchemaFacts facts, reader_.read(schemas));
  budget_.work -= facts.keywords_read;
  if (facts.impossible || !(facts.types & type_of(tree_, value))) return false;
  for (const NodeId schema : facts.negated) {
    WEIR_ASSIGN(const bool holds, satisfies(value, {schema}, depth + 1));
    if (holds) return false;
  }
  WEIR_ASSIGN(const bool listed, in_values(value, facts));
  if (!listed) return false;
  WEIR_ASSIGN(const bool chosen, choices_hold(value, facts, depth));
  if (!chosen) return false;
  switch (type_of(tree_, value)) {
    case type::kWhole:
    case type::kFraction:
      return number_holds(value, facts);
    case type::kString:
      return string_holds(*tree_.string_at(value), facts);
    case type::kArray:
      return array_holds(value, facts, depth);
    case type::kObject:
      return object_holds(value, facts, depth);
    default:
      return true;
  }
}

Result<bool> SchemaCheck::in_values(NodeId value, const SchemaFacts& facts) {
  for (size_t i = 0; i < facts.values.size(); ++i) {
    const NodeId keyword = facts.values[i];
    bool found = !facts.is_enum[i] && equal(keyword, value);
    if (facts.is_enum[i])
      tree_.for_children(keyword, [&](NodeId listed) { found = found || equal(listed, value); });
    budget_.work -= tree_.node(keyword).child_count;
    if (!found) return false;
  }
  return true;
}

Result<bool> SchemaCheck::choices_hold(NodeId value, const SchemaFacts& facts, int depth) {
  for (const SchemaChoice& choice : facts.choices) {
    if (choice.conditional) {
      WEIR_ASSIGN(const bool condition, satisfies(value, {choice.keyword}, depth + 1));
      const auto then = reader_.keyword(choice.owner, condition ? "then" : "else");
      if (!then) continue;
      WEIR_ASSIGN(const bool holds, satisfies(value, {*then}, depth + 1));
      if (!holds) return false;
      continue;
    }
    int count = 0;
    for (const NodeId branch : tree_.children(choice.keyword)) {
      WEIR_ASSIGN(const bool holds, satisfies(value, {branch}, depth + 1));
      count += holds;
    }
    if (count == 0 || (choice.exclusive && count > 1)) return false;
  }
  return true;
}

Result<bool> SchemaCheck::number_holds(NodeId value, const SchemaFacts& facts) {
  std::string text;
  JsonWriter(text).value(tree_.node(value).value);
  const auto number = Decimal::parse(text);
  if (!number) return false;
  const auto below = [&](const Bound& bound) {
    const int order = number->compare(bound.value);
    return order < 0 || (order == 0 && bound.strict);
  };
  const auto above = [&](const Bound& bound) {
    const int order = number->compare(bound.value);
    return order > 0 || (order == 0 && bound.strict);
  };
  if ((facts.min && below(*facts.min)) || (facts.max && above(*facts.max))) return false;
  return std::ranges::all_of(
      facts.steps, [&](const Decimal& step) { return is_multiple(*number, step).value_or(false); });
}

Result<bool> SchemaCheck::matches(std::string_view text, std::string_view pattern) {
  return accepted(budget_, pattern, RegexMatch::kSearch, text);
}

Result<bool> SchemaCheck::string_holds(std::string_view text, const SchemaFacts& facts) {
  const int64_t length = characters(text);
  if (length < facts.length_min || length > facts.length_max) return false;
  for (const NodeId pattern : facts.patterns) {
    const Result<bool> found = matches(text, *tree_.string_at(pattern));
    if (!found) return reader_.unsupported(pattern, found.error().message);
    if (!*found) return false;
  }
  for (const NodeId format : facts.formats) {
    const auto pattern = format_pattern(*tree_.string_at(format));
    if (!pattern) return reader_.unsupported(format, "this format is not known");
    if (pattern->empty()) continue;
    WEIR_ASSIGN(const bool found, accepted(budget_, *pattern, RegexMatch::kWhole, text));
    if (!found) return false;
  }
  return true;
}

Result<bool> SchemaCheck::array_holds(NodeId value, const SchemaFacts& facts, int depth) {
  const std::vector<NodeId> items = tree_.children(value);
  const auto count = static_cast<int64_t>(items.size());
  if (count < facts.items_min || count > facts.items_max) return false;
  if (facts.no_other_items && count > 0)
    return reader_.unsupported(*reader_.find(facts, "unevaluatedItems"), "beside enum or const");
  for (const NodeId schema : facts.contained) {
    bool found = false;
    for (const NodeId item : items) {
      WEIR_ASSIGN(const bool holds, satisfies(item, {schema}, depth + 1));
      found = found || holds;
    }
    if (!found) return false;
  }
  if (facts.unique_items)
    for (size_t i = 0; i < items.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (equal(items[i], items[j])) return false;
  for (const NodeId schema : facts.objects) {
    const auto all = reader_.keyword(schema, "items");
    auto prefix = reader_.keyword(schema, "prefixItems");
    auto rest = all;
    if (all && tree_.is_array(*all)) {
      prefix = all;
      rest = reader_.keyword(schema, "additionalItems");
    }
    const std::vector<NodeId> first = prefix ? tree_.children(*prefix) : std::vector<NodeId>();
    for (size_t i = 0; i < items.size(); ++i) {
      const auto item = i < first.size() ? std::optional(first[i]) : rest;
      if (!item) continue;
      WEIR_ASSIGN(const bool holds, satisfies(items[i], {*item}, depth + 1));
      if (!holds) return false;
    }
  }
  return true;
}

Result<bool> SchemaCheck::object_holds(NodeId value, const SchemaFacts& facts, int depth) {
  const int64_t count = tree_.node(value).child_count;
  if (count < facts.members_min || count > facts.members_max) return false;
  for (const NodeId name : facts.required)
    if (!tree_.member(value, *tree_.string_at(name))) return false;
  for (const NodeId list : facts.dependencies) {
    if (!tree_.member(value, tree_.node(list).key)) continue;
    for (const NodeId name : tree_.children(list))
      if (!tree_.member(value, *tree_.string_at(name))) return false;
  }
  if (!facts.member_names.empty() && count > 0)
    return reader_.unsupported(facts.member_names[0], "beside enum or const");
  if (facts.no_other_members && count > 0)
    return reader_.unsupported(*reader_.find(facts, "unevaluatedProperties"),
                               "beside enum or const");
  for (const NodeId member : tree_.children(value)) {
    for (const NodeId schema : facts.objects) {
      WEIR_ASSIGN(const bool holds, member_holds(member, schema, depth));
      if (!holds) return false;
    }
  }
  return true;
}

Result<bool> SchemaCheck::member_holds(NodeId member, NodeId schema, int depth) {
  const std::string_view name = tree_.node(member).key;
  std::vector<NodeId> applying;
  if (const auto properties = reader_.keyword(schema, "properties"))
    if (const auto property = tree_.member(*properties, name)) applying.push_back(*property);
  if (const auto patterns = reader_.keyword(schema, "patternProperties"))
    for (const NodeId pattern : tree_.children(*patterns)) {
      const Result<bool> found = matches(name, tree_.node(pattern).key);
      if (!found) return reader_.unsupported(*patterns, found.error().message);
      if (*found) applying.push_back(pattern);
    }
  if (applying.empty())
    if (const auto additional = reader_.keyword(schema, "additionalProperties"))
      applying.push_back(*additional);
  if (applying.empty()) return true;
  return satisfies(member, applying, depth + 1);
}

bool SchemaCheck::equal(NodeId a, NodeId b) const {
  const unsigned types = type_of(tree_, a);
  if (types != type_of(tree_, b)) return false;
  if (tree_.node(a).child_count != tree_.node(b).child_count) return false;
  if (types & type::kArray) {
    NodeId y = tree_.node(b).first_child;
    for (NodeId x = tree_.node(a).first_child; x >= 0;
         x = tree_.node(x).next_sibling, y = tree_.node(y).next_sibling)
      if (!equal(x, y)) return false;
    return true;
  }
  if (types & type::kObject)
    return std::ranges::all_of(tree_.children(a), [&](NodeId x) {
      const auto y = tree_.member(b, tree_.node(x).key);
      return y && equal(x, *y);
    });
  std::string text_a, text_b;
  JsonWriter(text_a).value(tree_.node(a).value);
  JsonWriter(text_b).value(tree_.node(b).value);
  if (!(types & type::kNumber)) return text_a == text_b;
  const auto x = Decimal::parse(text_a), y = Decimal::parse(text_b);
  return x && y && x->compare(*y) == 0;
}

}  // namespace weir::grammar
