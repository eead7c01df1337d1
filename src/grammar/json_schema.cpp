#include "grammar/json_schema.h"

#include <algorithm>
#include <string>

#include "grammar/json_text.h"
#include "grammar/machine.h"
#include "grammar/regex.h"
#include "grammar/schema_builder.h"
#include "grammar/schema_format.h"
#include "grammar/schema_nesting.h"
#include "grammar/schema_pattern.h"

namespace weir::grammar {

namespace {

// Choices within choices of one value.
constexpr int kChoiceDepthMax = 32;
constexpr int64_t kSchemaWork = 100;
// Of what is left, one string's patterns may use up this part, where they may be left out.
constexpr int64_t kPatternShare = 4;

}  // namespace

SchemaBuilder::SchemaBuilder(Grammar& grammar, const SchemaTree& tree, SchemaReading reading,
                             SchemaDrops& drops)
    : grammar_(grammar),
      tree_(tree),
      reading_(reading),
      drops_(drops),
      reader_(tree, drops),
      check_(tree, reader_, grammar.budget),
      parts_(grammar, nesting_levels(tree)) {}

Result<ExprId> SchemaBuilder::build() {
  while (true) {
    begin_again_ = false;
    Result<ExprId> root = build_once();
    if (root || !begin_again_) return root;
    // What was begun is left without a sentence.
    for (const auto& [schemas, rule] : rules_) grammar_.define(rule, grammar_.nothing());
    rules_.clear();
    queue_.clear();
  }
}

Result<ExprId> SchemaBuilder::build_once() {
  const ExprId root = schema({0});
  for (size_t i = 0; i < queue_.size(); ++i) {
    const auto [rule, schemas] = queue_[i];
    WEIR_ASSIGN(const ExprId body, value_or_less(schemas));
    grammar_.define(rule, body);
    if (grammar_.too_large()) return too_complex();
  }
  return root;
}

// Each attempt leaves out one keyword more.
Result<ExprId> SchemaBuilder::value_or_less(const Schemas& schemas) {
  while (true) {
    drops_.forgive();
    depth_ = 0;
    Result<ExprId> body = value(schemas, {});
    const bool elsewhere = drops_.blamed_is_elsewhere();
    if (body || grammar_.budget.exhausted() || !drops_.drop_blamed()) return body;
    begin_again_ = elsewhere;
    if (elsewhere) return body;
  }
}

// A schema that is nothing but a reference is what it refers to.
NodeId SchemaBuilder::behind_references(NodeId schema) const {
  for (int hops = 0; hops < 64; ++hops) {
    if (tree_.node(schema).child_count != 1 || !tree_.is_object(schema)) return schema;
    const NodeId keyword = tree_.node(schema).first_child;
    const auto reference = tree_.string_at(keyword);
    if (tree_.node(keyword).key != "$ref" || !reference || drops_.has(schema)) return schema;
    const auto found = tree_.target(keyword, *reference);
    if (!found) return schema;
    schema = *found;
  }
  return schema;
}

ExprId SchemaBuilder::schema(Schemas schemas) {
  for (NodeId& id : schemas) id = id < 0 ? id : behind_references(id);
  std::ranges::sort(schemas);
  schemas.erase(std::unique(schemas.begin(), schemas.end()), schemas.end());
  const auto [found, fresh] = rules_.try_emplace(schemas, -1);
  if (fresh) {
    const NodeId last = schemas.back();
    found->second = grammar_.add_rule(tree_.pointer(last < 0 ? ~last : last));
    queue_.emplace_back(found->second, schemas);
  }
  return grammar_.rule(found->second);
}

Result<ExprId> SchemaBuilder::value(const Schemas& schemas,
                                    const std::vector<SchemaChoice>& settled) {
  grammar_.budget.work -= kSchemaWork * static_cast<int64_t>(schemas.size());
  if (grammar_.budget.exhausted() || depth_ > kChoiceDepthMax) return too_complex();
  WEIR_ASSIGN(const SchemaFacts facts, reader_.read(schemas, settled));
  grammar_.budget.work -= facts.keywords_read;
  if (facts.impossible) return grammar_.nothing();
  if (!facts.values.empty()) return listed(schemas, facts);
  if (!facts.choices.empty()) return choice(schemas, settled, facts);
  return typed(facts);
}

Result<ExprId> SchemaBuilder::choice(const Schemas& schemas,
                                     const std::vector<SchemaChoice>& settled,
                                     const SchemaFacts& facts) {
  const SchemaChoice choice = facts.choices.front();
  WEIR_ASSIGN(const std::vector<Schemas> all_ways, ways_of(choice));
  const bool alone = facts.objects.size() == 1 && facts.choices.size() == 1 &&
                     !facts.types_stated && facts.keyword_types == 0 && facts.formats.empty() &&
                     facts.negated.empty();
  std::vector<ExprId> ways;
  for (const Schemas& way : all_ways) {
    if (alone && !way.empty()) {
      ways.push_back(schema(way));
      continue;
    }
    Schemas all = schemas;
    all.insert(all.end(), way.begin(), way.end());
    std::vector<SchemaChoice> made = settled;
    made.push_back(choice);
    ++depth_;
    WEIR_ASSIGN(const ExprId made_way, value(all, made));
    --depth_;
    ways.push_back(made_way);
  }
  return grammar_.any(ways);
}

Result<std::vector<SchemaBuilder::Schemas>> SchemaBuilder::ways_of(const SchemaChoice& choice) {
  std::vector<Schemas> ways;
  if (choice.conditional) {
    for (const bool holds : {true, false}) {
      Schemas& way = ways.emplace_back(Schemas{holds ? choice.keyword : ~choice.keyword});
      if (const auto then = reader_.keyword(choice.owner, holds ? "then" : "else"))
        way.push_back(*then);
    }
    return ways;
  }
  const Schemas branches = tree_.children(choice.keyword);
  for (const NodeId branch : branches) ways.push_back({branch});
  if (!choice.exclusive || drops_.has(choice.keyword)) return ways;
  WEIR_ASSIGN(const std::vector<Schemas> others, rivals(choice));
  for (size_t i = 0; i < ways.size(); ++i)
    for (const NodeId other : others[i]) ways[i].push_back(~other);
  return ways;
}

// enum and const: those of the values that satisfy everything else, too.
Result<ExprId> SchemaBuilder::listed(const Schemas& schemas, const SchemaFacts& facts) {
  const bool only = facts.objects.size() == 1 && facts.values.size() == 1 &&
                    facts.keyword_types == 0 && facts.choices.empty() && facts.formats.empty() &&
                    facts.negated.empty() && facts.types == type::kAny;
  Schemas holding = values_of(facts);
  if (!only) {
    WEIR_ASSIGN(holding, listed_values(schemas));
  }
  std::vector<ExprId> values;
  for (const NodeId value : holding) values.push_back(constant(value));
  return grammar_.any(values);
}

SchemaBuilder::Schemas SchemaBuilder::values_of(const SchemaFacts& facts) const {
  return facts.is_enum.front() ? tree_.children(facts.values.front())
                               : Schemas{facts.values.front()};
}

Result<SchemaBuilder::Schemas> SchemaBuilder::listed_values(const Schemas& schemas) {
  Schemas holding;
  WEIR_ASSIGN(const SchemaFacts facts, reader_.read(schemas));
  if (facts.values.empty()) return holding;
  for (const NodeId candidate : values_of(facts)) {
    WEIR_ASSIGN(const bool holds, check_.satisfies(candidate, schemas));
    if (holds) holding.push_back(candidate);
  }
  return holding;
}

ExprId SchemaBuilder::constant(NodeId value) {
  std::vector<ExprId> parts;
  const auto join = [&](ExprId part) {
    if (!parts.empty()) parts.push_back(parts_.comma());
    parts.push_back(part);
  };
  if (tree_.is_object(value)) {
    tree_.for_children(value, [&](NodeId member) {
      const ExprId name = spell(grammar_, tree_.node(member).key, Spelling::kJson);
      join(parts_.member(parts_.quoted(name), constant(member)));
    });
    return parts_.bracketed('{', grammar_.concat(parts), '}');
  }
  if (tree_.is_array(value)) {
    tree_.for_children(value, [&](NodeId item) { join(constant(item)); });
    return parts_.bracketed('[', grammar_.concat(parts), ']');
  }
  std::string text;
  JsonWriter(text).value(tree_.node(value).value);
  return grammar_.literal(text);
}

unsigned SchemaBuilder::types_of(const SchemaFacts& facts) const {
  if (reading_ == SchemaReading::kAsWritten || facts.types_stated) return facts.types;
  if (facts.keyword_types != 0) return facts.types & facts.keyword_types;
  return facts.formats.empty() ? facts.types : facts.types & type::kString;
}

Result<ExprId> SchemaBuilder::typed(const SchemaFacts& facts) {
  const unsigned types = types_of(facts);
  WEIR_TRY(check_forbidden(facts, types));
  const bool free = facts.keyword_types == 0 && facts.formats.empty() && facts.negated.empty();
  if (free && types == type::kAny) return parts_.value();
  std::vector<ExprId> ways;
  if (types & type::kNull) ways.push_back(grammar_.literal("null"));
  for (const bool flag : {true, false}) {
    const bool forbidden = std::ranges::any_of(facts.forbidden_values, [&](NodeId value) {
      bool other = !flag;
      return tree_.node(value).value.get(other) == simdjson::SUCCESS && other == flag;
    });
    if ((types & type::kBoolean) && !forbidden)
      ways.push_back(grammar_.literal(flag ? "true" : "false"));
  }
  if (types & type::kNumber) {
    WEIR_ASSIGN(const ExprId way, number_of(facts, types));
    ways.push_back(way);
  }
  if (types & type::kString) {
    WEIR_ASSIGN(const ExprId way, string_of(facts));
    ways.push_back(way);
  }
  if (types & type::kArray) {
    WEIR_ASSIGN(const ExprId way, array_of(facts));
    ways.push_back(way);
  }
  if (types & type::kObject) {
    WEIR_ASSIGN(const ExprId way, object_of(facts));
    ways.push_back(way);
  }
  return grammar_.any(ways);
}

// Values can be excluded one by one where they are texts, booleans or null.
Result<void> SchemaBuilder::check_forbidden(const SchemaFacts& facts, unsigned types) const {
  constexpr unsigned kExcludable = type::kNull | type::kBoolean | type::kString;
  for (const NodeId value : facts.forbidden_values)
    if (type_of(tree_, value) & types & ~kExcludable) return reader_.not_negatable(value);
  if ((types & type::kNumber) != type::kFraction) return {};
  for (const NodeId schema : facts.negated)  // Fractions that are not whole numbers.
    if (tree_.member(schema, "type")) return reader_.not_negatable(schema);
  return {};
}

template <class Make>
Result<ExprId> SchemaBuilder::shared(const std::string& description, Make make) {
  const auto [found, fresh] = shared_.try_emplace(description, -1);
  if (fresh) {
    found->second = grammar_.add_rule(description);
    grammar_.define(found->second, grammar_.nothing());
    const Result<ExprId> body = make();
    if (!body) {
      shared_.erase(found);
      return body;
    }
    grammar_.define(found->second, *body);
  }
  return grammar_.rule(found->second);
}

Result<ExprId> SchemaBuilder::number_of(const SchemaFacts& facts, unsigned types) {
  NumberRange range;
  range.min = facts.min;
  range.max = facts.max;
  if (reader_.find(facts, "multipleOf")) range.steps = facts.steps;
  range.form = types & type::kFraction ? NumberForm::kFraction : NumberForm::kWhole;
  std::string description = range.form == NumberForm::kFraction ? "number" : "integer";
  const auto describe = [&](const char* word, const Decimal& value, bool strict) {
    description += std::string(word) + (strict ? "!" : "") + (value.negative ? "-" : "") +
                   value.whole + "." + value.fraction;
  };
  if (range.min) describe(" from ", range.min->value, range.min->strict);
  if (range.max) describe(" to ", range.max->value, range.max->strict);
  for (const Decimal& step : range.steps) describe(" by ", step, false);
  return shared(description, [&]() -> Result<ExprId> {
    Result<ExprId> expr = number(grammar_, range);
    if (expr || expr.error().code != ErrorCode::kUnsupported) return expr;
    return reader_.unsupported(*reader_.find(facts, "multipleOf"), expr.error().message);
  });
}

Result<ExprId> SchemaBuilder::string_of(const SchemaFacts& facts) {
  std::string description =
      "string " + std::to_string(facts.length_min) + " " + std::to_string(facts.length_max);
  const auto describe = [&](const char* word, const Schemas& texts) {
    for (const NodeId text : texts)
      if (const auto found = tree_.string_at(text))
        description += std::string(word) + std::string(*found);
  };
  describe("\npattern ", facts.patterns);
  describe("\nformat ", facts.formats);
  describe("\nno pattern ", facts.forbidden_patterns);
  describe("\nnot ", facts.forbidden_values);
  return shared(description, [&]() -> Result<ExprId> {
    WEIR_ASSIGN(const ExprId content, string_content(facts));
    return parts_.quoted(content);
  });
}

// A single pattern may not use up what all of the grammar has, where it may be left out.
Result<ExprId> SchemaBuilder::string_content(const SchemaFacts& facts) {
  Schemas demands = facts.formats;  // The last is left out first.
  demands.insert(demands.end(), facts.patterns.begin(), facts.patterns.end());
  Schemas exclusions = facts.forbidden_values;
  exclusions.insert(exclusions.end(), facts.forbidden_patterns.begin(),
                    facts.forbidden_patterns.end());
  if (!drops_.allowed() || (demands.empty() && exclusions.empty())) return allowed_text(facts);
  Budget& budget = grammar_.budget;
  const Budget before = budget;
  budget.work /= kPatternShare;
  budget.states /= kPatternShare;
  const Budget share = budget;
  const auto make = [&]() -> Result<ExprId> {
    WEIR_ASSIGN(const ExprId text, allowed_text(facts));
    WEIR_ASSIGN(Dfa machine, machine_of(grammar_, text));
    return grammar_.machine(std::move(machine));
  };
  const Result<ExprId> text = make();
  const bool exhausted = budget.exhausted();
  budget.work = before.work - (share.work - budget.work);
  budget.states = before.states - (share.states - budget.states);
  if (!exhausted) return text;
  return exclusions.empty() ? reader_.unsupported(demands.back(), "it is too complex")
                            : reader_.not_negatable(exclusions.back());
}

Result<ExprId> SchemaBuilder::allowed_text(const SchemaFacts& facts) {
  if (facts.length_min > facts.length_max) return grammar_.nothing();
  const auto min = static_cast<int32_t>(facts.length_min);
  const auto max = static_cast<int32_t>(facts.length_max);
  std::vector<ExprId> demands, exclusions;
  for (const NodeId pattern : facts.patterns) {
    const Result<ExprId> expr = pattern_text(grammar_, *tree_.string_at(pattern), Spelling::kJson);
    if (!expr) return reader_.unsupported(pattern, expr.error().message);
    demands.push_back(*expr);
  }
  for (const NodeId format : facts.formats) {
    const auto pattern = format_pattern(*tree_.string_at(format));
    if (!pattern)
      return reader_.unsupported(
          format,
          "the format '" + std::string(tree_.string_at(format)->substr(0, 64)) + "' is not known");
    if (pattern->empty()) continue;
    WEIR_ASSIGN(const ExprId expr, regex(grammar_, *pattern, Spelling::kJson, RegexMatch::kWhole));
    demands.push_back(expr);
  }
  for (const NodeId pattern : facts.forbidden_patterns) {
    const Result<ExprId> expr = pattern_text(grammar_, *tree_.string_at(pattern), Spelling::kJson);
    if (!expr) return reader_.not_negatable(pattern);
    exclusions.push_back(*expr);
  }
  for (const NodeId value : facts.forbidden_values)
    if (const auto text = tree_.string_at(value))
      exclusions.push_back(spell(grammar_, *text, Spelling::kJson));
  if (demands.empty() && exclusions.empty()) return grammar_.repeat(parts_.character(), min, max);
  if (demands.empty() || min > 0 || max != kUnbounded)
    demands.push_back(grammar_.repeat(spell(grammar_, CharSet::all(), Spelling::kJson), min, max));
  return all_but(grammar_, demands, exclusions);
}

Result<ExprId> json_schema(Grammar& grammar, std::string_view schema, SchemaReading reading) {
  WEIR_ASSIGN(const SchemaTree tree, SchemaTree::parse(schema));
  SchemaDrops drops(tree, /*allowed=*/false);
  return SchemaBuilder(grammar, tree, reading, drops).build();
}

Result<ExprId> json_schema_in_part(Grammar& grammar, std::string_view schema,
                                   std::vector<std::string>& left_out) {
  WEIR_ASSIGN(const SchemaTree tree, SchemaTree::parse(schema));
  SchemaDrops drops(tree, /*allowed=*/true);
  Result<ExprId> expr = SchemaBuilder(grammar, tree, SchemaReading::kAsMeant, drops).build();
  if (expr) left_out = drops.names();
  return expr;
}

ExprId json_object(Grammar& grammar) { return JsonParts(grammar).object(); }

}  // namespace weir::grammar
