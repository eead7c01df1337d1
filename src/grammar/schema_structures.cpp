// The part of SchemaBuilder that makes objects.
#include <algorithm>
#include <set>
#include <string>

#include "grammar/json_text.h"
#include "grammar/machine.h"
#include "grammar/schema_builder.h"
#include "grammar/schema_pattern.h"

namespace weir::grammar {

namespace {

// Of patternProperties: every set of them is a kind of member of its own.
constexpr size_t kPatternsMax = 4;
constexpr int64_t kNameWork = 20;
constexpr const char* kTwice = "beside a `not` within a `not`";

}  // namespace

bool SchemaBuilder::is_false(NodeId schema) const {
  bool flag = true;
  return schema >= 0 && tree_.node(schema).value.get(flag) == simdjson::SUCCESS && !flag;
}

bool SchemaBuilder::speak_of(const Schemas& schemas) {
  return std::ranges::any_of(schemas, [](NodeId schema) { return schema >= 0; });
}

bool SchemaBuilder::has_false(const Schemas& schemas) const {
  return std::ranges::any_of(schemas, [&](NodeId schema) { return is_false(schema); });
}

struct SchemaBuilder::Members {
  std::vector<std::string_view> names;
  std::vector<std::string_view> patterns;  // Distinct.
  List list;
};

std::vector<std::string_view> SchemaBuilder::member_names(const SchemaFacts& facts) const {
  std::vector<std::string_view> names;
  std::set<std::string_view> seen;
  const auto add = [&](std::string_view name) {
    if (seen.insert(name).second) names.push_back(name);
  };
  for (const NodeId object : facts.objects)
    if (const auto properties = reader_.keyword(object, "properties"))
      tree_.for_children(*properties, [&](NodeId property) { add(tree_.node(property).key); });
  for (const NodeId name : facts.required) add(*tree_.string_at(name));
  for (const NodeId list : facts.dependencies) {
    add(tree_.node(list).key);
    tree_.for_children(list, [&](NodeId name) { add(*tree_.string_at(name)); });
  }
  for (const NodeId list : facts.apart)
    tree_.for_children(list, [&](NodeId name) { add(*tree_.string_at(name)); });
  for (const auto& [name, schema] : facts.forbidden_members) add(name);
  return names;
}

// A list of names is as good as properties: each comes once, and none needs to be compared byte by
// byte.
Result<void> SchemaBuilder::add_listed_names(const SchemaFacts& facts,
                                             std::vector<std::string_view>& names) {
  if (facts.member_names.empty()) return {};
  WEIR_ASSIGN(const Schemas listed, listed_values(facts.member_names));
  std::set<std::string_view> seen(names.begin(), names.end());
  for (const NodeId value : listed)
    if (const auto name = tree_.string_at(value); name && seen.insert(*name).second)
      names.push_back(*name);
  return {};
}

Result<SchemaBuilder::Schemas> SchemaBuilder::member_schemas(const SchemaFacts& facts,
                                                             std::string_view name) {
  Schemas all;
  for (const NodeId object : facts.objects) {
    const size_t before = all.size();
    if (const auto properties = reader_.keyword(object, "properties"))
      if (const auto property = tree_.member(*properties, name)) all.push_back(*property);
    if (const auto patterns = reader_.keyword(object, "patternProperties"))
      for (const NodeId pattern : tree_.children(*patterns)) {
        Result<bool> found = check_.matches(name, tree_.node(pattern).key);
        if (!found) return reader_.unsupported(*patterns, found.error().message);
        if (*found) all.push_back(pattern);
      }
    if (all.size() > before) continue;
    if (const auto additional = additional_of(object)) all.push_back(*additional);
  }
  for (const auto& [forbidden, schema] : facts.forbidden_members)
    if (forbidden == name) all.push_back(~schema);
  return all;
}

// Which members are additional is not known where patternProperties is left out.
std::optional<NodeId> SchemaBuilder::additional_of(NodeId object) const {
  const auto patterns = tree_.member(object, "patternProperties");
  if (patterns && drops_.has(*patterns)) return std::nullopt;
  return reader_.keyword(object, "additionalProperties");
}

// Members of names that no schema speaks of are allowed.
bool SchemaBuilder::open(const SchemaFacts& facts) const {
  if (facts.no_other_members) return false;
  bool named = false, allowed = false;
  for (const NodeId object : facts.objects) {
    named = named || reader_.keyword(object, "properties") ||
            reader_.keyword(object, "patternProperties");
    const auto additional = additional_of(object);
    if (additional && is_false(*additional)) return false;
    allowed = allowed || additional;
  }
  return allowed || !named || reading_ == SchemaReading::kAsWritten;
}

// Names that propertyNames allows, spelled for JSON.
Result<Dfa> SchemaBuilder::allowed_names(const SchemaFacts& facts) {
  WEIR_ASSIGN(const SchemaFacts names, reader_.read(facts.member_names));
  if (names.impossible || !(names.types & type::kString)) return Dfa{};
  if (!names.values.empty()) {
    WEIR_ASSIGN(const Schemas listed, listed_values(facts.member_names));
    std::vector<ExprId> texts;
    for (const NodeId value : listed)
      if (const auto text = tree_.string_at(value))
        texts.push_back(spell(grammar_, *text, Spelling::kJson));
    return machine_of(grammar_, grammar_.any(texts));
  }
  if (!names.choices.empty())
    return reader_.unsupported(facts.member_names.front(),
                               "expected keywords about the string's form, or a list of names");
  WEIR_ASSIGN(ExprId content, string_content(names));
  if (names.patterns.empty() && names.formats.empty() && names.negated.empty())
    content = grammar_.repeat(spell(grammar_, CharSet::all(), Spelling::kJson),
                              static_cast<int32_t>(names.length_min),
                              static_cast<int32_t>(names.length_max));
  return machine_of(grammar_, content);
}

Result<void> SchemaBuilder::add_named(const SchemaFacts& facts, const Presence& presence,
                                      Members& members) {
  std::optional<Dfa> allowed;
  if (!facts.member_names.empty()) {
    WEIR_ASSIGN(allowed, allowed_names(facts));
  }
  const bool is_open = open(facts);
  for (const std::string_view name : members.names) {
    const bool must = presence.required.contains(name);
    if (presence.absent.contains(name)) continue;
    WEIR_ASSIGN(const Schemas schemas, member_schemas(facts, name));
    const bool known = speak_of(schemas);
    if (!must && !known && !is_open) continue;
    std::string quoted;
    append_json_string(quoted, name);
    bool may = !has_false(schemas) && (known || !facts.no_other_members);
    if (allowed)
      may = may && allowed->accepts(std::string_view(quoted).substr(1, quoted.size() - 2));
    if (!may && !must) continue;
    const ExprId value = schemas.empty() ? parts_.value() : schema(schemas);
    const ExprId member = parts_.member(grammar_.literal(quoted), value);
    members.list.items.push_back({may ? member : grammar_.nothing(), must});
  }
  return {};
}

// Names that match exactly the patterns of `mask`, and are none of those known.
Result<ExprId> SchemaBuilder::other_names(const SchemaFacts& facts, const Members& members,
                                          const std::vector<Dfa>& patterns, unsigned mask) {
  if (members.names.empty() && patterns.empty() && facts.member_names.empty()) return parts_.text();
  const ExprId anything =
      grammar_.repeat(spell(grammar_, CharSet::all(), Spelling::kJson), 0, kUnbounded);
  WEIR_ASSIGN(Dfa names, machine_of(grammar_, anything));
  if (!members.names.empty()) {
    std::vector<ExprId> known;
    for (const std::string_view name : members.names)
      known.push_back(spell(grammar_, name, Spelling::kJson));
    WEIR_ASSIGN(const Dfa taken, machine_of(grammar_, grammar_.any(known)));
    WEIR_ASSIGN(names, subtract(names, taken, grammar_.budget));
  }
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (mask >> i & 1u) {
      WEIR_ASSIGN(names, intersect(names, patterns[i], grammar_.budget));
    } else {
      WEIR_ASSIGN(names, subtract(names, patterns[i], grammar_.budget));
    }
  }
  if (!facts.member_names.empty()) {
    WEIR_ASSIGN(const Dfa allowed, allowed_names(facts));
    WEIR_ASSIGN(names, intersect(names, allowed, grammar_.budget));
  }
  return parts_.quoted(grammar_.machine(std::move(names)));
}

Result<void> SchemaBuilder::add_others(const SchemaFacts& facts, Members& members) {
  std::vector<Dfa> patterns;
  for (const NodeId object : facts.objects) {
    const auto keyword = reader_.keyword(object, "patternProperties");
    if (!keyword) continue;
    for (const NodeId pattern : tree_.children(*keyword)) {
      const std::string_view text = tree_.node(pattern).key;
      if (std::ranges::find(members.patterns, text) != members.patterns.end()) continue;
      if (patterns.size() == kPatternsMax)
        return reader_.unsupported(
            *keyword, "expected at most " + std::to_string(kPatternsMax) + " patterns");
      const Result<ExprId> expr = pattern_text(grammar_, text, Spelling::kJson);
      if (!expr) return reader_.unsupported(*keyword, expr.error().message);
      WEIR_ASSIGN(Dfa machine, machine_of(grammar_, *expr));
      members.patterns.push_back(text);
      patterns.push_back(std::move(machine));
    }
  }
  std::vector<ExprId> kinds;
  for (unsigned mask = open(facts) ? 0 : 1; mask < 1u << patterns.size(); ++mask) {
    Schemas schemas;
    for (const NodeId object : facts.objects) {
      const size_t before = schemas.size();
      const auto keyword = reader_.keyword(object, "patternProperties");
      for (size_t i = 0; keyword && i < patterns.size(); ++i)
        if (const auto found = tree_.member(*keyword, members.patterns[i]);
            found && (mask >> i & 1u))
          schemas.push_back(*found);
      const auto additional = additional_of(object);
      if (schemas.size() == before && additional) schemas.push_back(*additional);
    }
    if (has_false(schemas)) continue;
    WEIR_ASSIGN(const ExprId name, other_names(facts, members, patterns, mask));
    kinds.push_back(parts_.member(name, schemas.empty() ? parts_.value() : schema(schemas)));
  }
  const ExprId rest = grammar_.any(kinds);
  members.list.rest = rest == grammar_.nothing() ? kNoExpr : rest;
  return {};
}

Result<ExprId> SchemaBuilder::object_of(const SchemaFacts& facts) {
  if (facts.no_other_members && facts.negated_twice)
    return reader_.unsupported(*reader_.find(facts, "unevaluatedProperties"), kTwice);
  Members members;
  members.names = member_names(facts);
  WEIR_TRY(add_listed_names(facts, members.names));
  members.list.separator = parts_.comma();
  WEIR_TRY(add_others(facts, members));
  WEIR_ASSIGN(const std::vector<Presence> all, presences(facts));
  std::vector<ExprId> ways;
  for (const Presence& presence : all) {
    grammar_.budget.work -= kNameWork * static_cast<int64_t>(members.names.size());
    if (grammar_.budget.exhausted()) return too_complex();
    Members some = members;
    WEIR_TRY(add_named(facts, presence, some));
    WEIR_ASSIGN(const ExprId way, members_of(facts, std::move(some)));
    ways.push_back(way);
  }
  return grammar_.any(ways);
}

Result<ExprId> SchemaBuilder::members_of(const SchemaFacts& facts, Members members) {
  List& list = members.list;
  const auto named = static_cast<int64_t>(list.items.size());
  const int64_t required = std::ranges::count(list.items, true, &ListItem::required);
  if (facts.members_min > facts.members_max || required > facts.members_max)
    return grammar_.nothing();
  if (facts.members_min > required) {
    // What comes by `rest` counts as one, as names may be equal.
    const bool countable = facts.members_min <= named + 1 || list.rest == kNoExpr;
    const auto keyword = reader_.find(facts, "minProperties");
    if (!countable && keyword)
      return reader_.unsupported(*keyword, "expected no more than the named properties and one");
    list.min = static_cast<int32_t>(countable ? facts.members_min : named + 1);
  }
  if (facts.members_max < named || (facts.members_max < kUnbounded && list.rest != kNoExpr))
    list.max = static_cast<int32_t>(facts.members_max);
  if (list.min == 0 && list.max == kUnbounded && list.items.empty() && list.rest == kNoExpr)
    return parts_.bracketed('{', grammar_.empty(), '}');
  const bool or_empty = required == 0 && list.min == 0;
  list.not_empty = or_empty;
  return parts_.bracketed('{', grammar_.list(std::move(list)), '}', or_empty);
}

}  // namespace weir::grammar
