// The part of SchemaBuilder that decides how a oneOf is treated as anyOf: no value that is made for
// one alternative may satisfy another one, by what it is or because it is made not to. What cannot
// be shown is refused.
#include <algorithm>
#include <set>
#include <string>

#include "grammar/machine.h"
#include "grammar/schema_builder.h"

namespace weir::grammar {

namespace {

// Every two alternatives are compared.
constexpr size_t kAlternativesMax = 200;

}  // namespace

Result<std::vector<SchemaBuilder::Schemas>> SchemaBuilder::rivals(const SchemaChoice& choice) {
  const Schemas branches = tree_.children(choice.keyword);
  if (branches.size() > kAlternativesMax)
    return reader_.unsupported(
        choice.keyword, "expected at most " + std::to_string(kAlternativesMax) + " alternatives");
  std::vector<SchemaFacts> facts;
  for (const NodeId branch : branches) {
    WEIR_ASSIGN(SchemaFacts read, reader_.read({branch}));
    facts.push_back(std::move(read));
  }
  std::vector<Schemas> rivals(branches.size());
  for (size_t i = 0; i < branches.size(); ++i) {
    for (size_t j = 0; j < branches.size(); ++j) {
      if (i == j) continue;
      WEIR_ASSIGN(const bool apart, never_both(facts[i], facts[j], branches[j]));
      if (apart) continue;
      const auto excluded = reader_.read({~branches[j]});
      if (!excluded)
        return reader_.unsupported(
            choice.keyword, "alternatives " + std::to_string(std::min(i, j)) + " and " +
                                std::to_string(std::max(i, j)) +
                                " may both match; expected anyOf, or alternatives that differ in "
                                "type, in a required constant, or in required properties");
      rivals[i].push_back(branches[j]);
    }
  }
  return rivals;
}

// True if it is certain that no value made for `made` satisfies `other`. Choices within either are
// not looked at, as if every value passed them.
Result<bool> SchemaBuilder::never_both(const SchemaFacts& made, const SchemaFacts& other,
                                       NodeId other_schema) {
  grammar_.budget.work -= 50;
  if (grammar_.budget.exhausted()) return too_complex();
  if (made.impossible || other.impossible) return true;
  if (!made.values.empty()) {
    for (const NodeId value : values_of(made)) {
      WEIR_ASSIGN(const bool both, check_.satisfies(value, {other_schema}));
      if (both) return false;
    }
    return true;
  }
  const unsigned types = types_of(made) & other.types;
  if (types == 0) return true;
  if (!other.values.empty()) {
    // What satisfies `other` is listed; whether it satisfies `made` says the same.
    return std::ranges::all_of(values_of(other), [&](NodeId value) {
      const auto both = check_.satisfies(value, made.objects);
      return both && !*both;
    });
  }
  bool apart = (types & (type::kNull | type::kBoolean)) == 0;
  if (apart && (types & type::kNumber)) {
    const auto before = [](const SchemaFacts& a, const SchemaFacts& b) {
      const int order = a.max && b.min ? a.max->value.compare(b.min->value) : 1;
      return order < 0 || (order == 0 && (a.max->strict || b.min->strict));
    };
    apart = before(made, other) || before(other, made);
  }
  if (apart && (types & type::kArray))
    apart = made.items_max < other.items_min || other.items_max < made.items_min;
  if (apart && (types & type::kString)) {
    WEIR_ASSIGN(apart, strings_differ(made, other));
  }
  if (apart && (types & type::kObject)) {
    WEIR_ASSIGN(apart, objects_differ(made, other));
  }
  return apart;
}

Result<bool> SchemaBuilder::strings_differ(const SchemaFacts& a, const SchemaFacts& b) {
  if (a.length_max < b.length_min || b.length_max < a.length_min) return true;
  if (a.patterns.empty() || b.patterns.empty()) return false;
  WEIR_ASSIGN(const ExprId text_a, string_content(a));
  WEIR_ASSIGN(const ExprId text_b, string_content(b));
  WEIR_ASSIGN(const Dfa dfa_a, machine_of(grammar_, text_a));
  WEIR_ASSIGN(const Dfa dfa_b, machine_of(grammar_, text_b));
  WEIR_ASSIGN(const Dfa both, intersect(dfa_a, dfa_b, grammar_.budget));
  return both.empty();
}

// Objects differ if `other` requires a member that `made` never has, or has with other constants;
// or if `made` requires one that `other` forbids.
Result<bool> SchemaBuilder::objects_differ(const SchemaFacts& made, const SchemaFacts& other) {
  const std::vector<std::string_view> made_names = member_names(made);
  const std::vector<std::string_view> other_names = member_names(other);
  const std::set<std::string_view> known(made_names.begin(), made_names.end());
  for (const NodeId id : other.required) {
    const std::string_view name = *tree_.string_at(id);
    WEIR_ASSIGN(const Schemas here, member_schemas(made, name));
    if (has_false(here) || (!known.contains(name) && here.empty() && !open(made))) return true;
    WEIR_ASSIGN(const Schemas there, member_schemas(other, name));
    if (here.empty() || there.empty()) continue;
    WEIR_ASSIGN(const SchemaFacts facts, reader_.read(here));
    if (facts.values.empty()) continue;
    bool common = false;
    for (const NodeId value : values_of(facts)) {
      WEIR_ASSIGN(const bool both, check_.satisfies(value, there));
      common = common || both;
    }
    if (!common) return true;
  }
  for (const NodeId id : made.required) {
    WEIR_ASSIGN(const Schemas there, member_schemas(other, *tree_.string_at(id)));
    if (has_false(there)) return true;
  }
  return false;
}

}  // namespace weir::grammar
