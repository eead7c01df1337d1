// The parts of SchemaBuilder that make arrays and objects.
#include <algorithm>
#include <set>
#include <string>

#include "sample/grammar/json_text.h"
#include "sample/grammar/machine.h"
#include "sample/grammar/regex.h"
#include "sample/grammar/schema_builder.h"

namespace weir::sample::grammar {

namespace {

// Each item of a prefix nests an expression.
constexpr size_t kPrefixMax = 200;
// Of patternProperties: every set of them is a kind of member of its own.
constexpr size_t kPatternsMax = 4;
constexpr int64_t kNameWork = 20;

}  // namespace

bool SchemaBuilder::is_false(NodeId schema) const {
  bool flag = true;
  return tree_.node(schema).value.get(flag) == simdjson::SUCCESS && !flag;
}

bool SchemaBuilder::has_false(const Schemas& schemas) const {
  return std::ranges::any_of(schemas, [&](NodeId schema) { return is_false(schema); });
}

Result<ExprId> SchemaBuilder::array_of(const SchemaFacts& facts) {
  // Of each schema, its first items and the others.
  struct Items {
    Schemas first;
    std::optional<NodeId> rest;
  };
  std::vector<Items> all;
  size_t prefix = 0;
  bool has_rest = false;
  for (const NodeId object : facts.objects) {
    Items items{{}, tree_.member(object, "items")};
    auto first = tree_.member(object, "prefixItems");
    if (items.rest && tree_.is_array(*items.rest)) {  // As drafts before 2020-12 write it.
      first = items.rest;
      items.rest = tree_.member(object, "additionalItems");
    }
    if (first) {
      if (!tree_.is_array(*first)) return reader_.error(*first, "prefixItems is not an array");
      items.first = tree_.children(*first);
      if (items.first.size() > kPrefixMax) return reader_.unsupported(*first, "it is too long");
    }
    prefix = std::max(prefix, items.first.size());
    has_rest = has_rest || items.rest;
    all.push_back(std::move(items));
  }
  const auto at = [&](size_t index) {
    Schemas schemas;
    for (const Items& items : all) {
      if (index < items.first.size())
        schemas.push_back(items.first[index]);
      else if (items.rest)
        schemas.push_back(*items.rest);
    }
    return schemas;
  };
  int64_t most = facts.items_max;
  for (size_t i = 0; i <= prefix; ++i)
    if (has_false(at(i))) most = std::min(most, static_cast<int64_t>(i));
  if (prefix > 0 && !has_rest && reading_ == SchemaReading::kAsMeant)
    most = std::min(most, static_cast<int64_t>(prefix));
  if (facts.items_min > most) return grammar_.nothing();
  if (facts.unique_items && most > 1)
    for (const NodeId object : facts.objects)
      if (const auto keyword = tree_.member(object, "uniqueItems"))
        return reader_.unsupported(*keyword, "expected false, or maxItems of at most 1");

  const auto item = [&](size_t index) {
    const Schemas schemas = at(index);
    return schemas.empty() ? parts_.value() : schema(schemas);
  };
  const auto min = static_cast<int32_t>(facts.items_min), max = static_cast<int32_t>(most);
  if (prefix == 0 || max == 0)
    return parts_.bracketed('[', max == 0 ? grammar_.empty() : parts_.items(item(0), min, max),
                            ']');
  const auto fixed = static_cast<int32_t>(std::min<int64_t>(static_cast<int64_t>(prefix), most));
  const int32_t more = max == kUnbounded ? kUnbounded : max - fixed;
  ExprId tail = grammar_.empty();
  if (more > 0)
    tail = grammar_.repeat(grammar_.concat({parts_.comma(), item(prefix)}),
                           std::max(0, min - fixed), more);
  for (int32_t i = fixed; i-- > 0;) {
    const ExprId one = item(static_cast<size_t>(i));
    tail = grammar_.concat({i == 0 ? grammar_.empty() : parts_.comma(), one, tail});
    if (i >= min) tail = grammar_.optional(tail);
  }
  return parts_.bracketed('[', tail, ']');
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
    if (const auto properties = tree_.member(object, "properties"))
      tree_.for_children(*properties, [&](NodeId property) { add(tree_.node(property).key); });
  for (const NodeId name : facts.required) add(*tree_.string_at(name));
  for (const NodeId list : facts.dependencies) {
    add(tree_.node(list).key);
    tree_.for_children(list, [&](NodeId name) { add(*tree_.string_at(name)); });
  }
  return names;
}

Result<SchemaBuilder::Schemas> SchemaBuilder::member_schemas(const SchemaFacts& facts,
                                                             std::string_view name) {
  Schemas all;
  for (const NodeId object : facts.objects) {
    const size_t before = all.size();
    if (const auto properties = tree_.member(object, "properties"))
      if (const auto property = tree_.member(*properties, name)) all.push_back(*property);
    if (const auto patterns = tree_.member(object, "patternProperties"))
      for (const NodeId pattern : tree_.children(*patterns)) {
        Result<bool> found = check_.matches(name, tree_.node(pattern).key);
        if (!found) return reader_.unsupported(*patterns, found.error().message);
        if (*found) all.push_back(pattern);
      }
    if (all.size() > before) continue;
    if (const auto additional = tree_.member(object, "additionalProperties"))
      all.push_back(*additional);
  }
  return all;
}

// Members of names that no schema speaks of are allowed.
bool SchemaBuilder::open(const SchemaFacts& facts) const {
  bool named = false, allowed = false;
  for (const NodeId object : facts.objects) {
    named =
        named || tree_.member(object, "properties") || tree_.member(object, "patternProperties");
    const auto additional = tree_.member(object, "additionalProperties");
    if (additional && is_false(*additional)) return false;
    allowed = allowed || additional;
  }
  return allowed || !named || reading_ == SchemaReading::kAsWritten;
}

// Names that propertyNames allows, spelled for JSON.
Result<Dfa> SchemaBuilder::allowed_names(const SchemaFacts& facts) {
  WEIR_ASSIGN(const SchemaFacts names, reader_.read(facts.member_names));
  if (!names.choices.empty() || !names.values.empty())
    return reader_.unsupported(facts.member_names.front(),
                               "expected only keywords about the string's form");
  if (names.impossible || !(names.types & type::kString)) return Dfa{};
  WEIR_ASSIGN(ExprId content, string_content(names));
  if (names.patterns.empty() && names.formats.empty())
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
    if (!must && schemas.empty() && !is_open) continue;
    std::string quoted;
    append_json_string(quoted, name);
    bool may = !has_false(schemas);
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
    const auto keyword = tree_.member(object, "patternProperties");
    if (!keyword) continue;
    for (const NodeId pattern : tree_.children(*keyword)) {
      const std::string_view text = tree_.node(pattern).key;
      if (std::ranges::find(members.patterns, text) != members.patterns.end()) continue;
      if (patterns.size() == kPatternsMax)
        return reader_.unsupported(
            *keyword, "expected at most " + std::to_string(kPatternsMax) + " patterns");
      Result<ExprId> expr = regex(grammar_, text, Spelling::kJson, RegexMatch::kSearch);
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
      const auto keyword = tree_.member(object, "patternProperties");
      for (size_t i = 0; keyword && i < patterns.size(); ++i)
        if (const auto found = tree_.member(*keyword, members.patterns[i]);
            found && (mask >> i & 1u))
          schemas.push_back(*found);
      const auto additional = tree_.member(object, "additionalProperties");
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
  Members members;
  members.names = member_names(facts);
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
  const auto keyword = [&](std::string_view name) {
    NodeId found = facts.objects.front();
    for (const NodeId object : facts.objects) found = tree_.member(object, name).value_or(found);
    return found;
  };
  const auto named = static_cast<int64_t>(list.items.size());
  const int64_t required = std::ranges::count(list.items, true, &ListItem::required);
  if (facts.members_min > facts.members_max || required > facts.members_max)
    return grammar_.nothing();
  if (facts.members_min > required) {
    if (facts.members_min > named + 1 && list.rest != kNoExpr)
      return reader_.unsupported(keyword("minProperties"),
                                 "expected no more than the named properties and one");
    list.min = static_cast<int32_t>(facts.members_min);
  }
  if (facts.members_max < named || (facts.members_max < kUnbounded && list.rest != kNoExpr))
    list.max = static_cast<int32_t>(facts.members_max);
  if (list.min == 0 && list.max == kUnbounded && list.items.empty() && list.rest == kNoExpr)
    return parts_.bracketed('{', grammar_.empty(), '}');
  return parts_.bracketed('{', grammar_.list(std::move(list)), '}');
}

}  // namespace weir::sample::grammar
