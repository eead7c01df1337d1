#include "sample/grammar/json_schema.h"

#include <algorithm>
#include <string>

#include "sample/grammar/json_text.h"
#include "sample/grammar/machine.h"
#include "sample/grammar/regex.h"
#include "sample/grammar/schema_builder.h"
#include "sample/grammar/schema_format.h"

namespace weir::sample::grammar {

namespace {

// Choices within choices of one value.
constexpr int kChoiceDepthMax = 32;
constexpr int64_t kSchemaWork = 100;

}  // namespace

SchemaBuilder::SchemaBuilder(Grammar& grammar, const SchemaTree& tree, SchemaReading reading)
    : grammar_(grammar),
      tree_(tree),
      reading_(reading),
      reader_(tree),
      check_(tree, reader_, grammar.budget),
      parts_(grammar) {}

Result<ExprId> SchemaBuilder::build() {
  const ExprId root = schema({0});
  for (size_t i = 0; i < queue_.size(); ++i) {
    const auto [rule, schemas] = queue_[i];
    WEIR_ASSIGN(const ExprId body, value(schemas, {}));
    grammar_.define(rule, body);
    if (grammar_.too_large()) return too_complex();
  }
  return root;
}

// A schema that is nothing but a reference is what it refers to.
NodeId SchemaBuilder::behind_references(NodeId schema) const {
  for (int hops = 0; hops < 64; ++hops) {
    if (tree_.node(schema).child_count != 1 || !tree_.is_object(schema)) return schema;
    const NodeId keyword = tree_.node(schema).first_child;
    const auto reference = tree_.string_at(keyword);
    if (tree_.node(keyword).key != "$ref" || !reference) return schema;
    const auto found = tree_.target(keyword, *reference);
    if (!found) return schema;
    schema = *found;
  }
  return schema;
}

ExprId SchemaBuilder::schema(Schemas schemas) {
  for (NodeId& id : schemas) id = behind_references(id);
  std::ranges::sort(schemas);
  schemas.erase(std::unique(schemas.begin(), schemas.end()), schemas.end());
  const auto [found, fresh] = rules_.try_emplace(schemas, -1);
  if (fresh) {
    found->second = grammar_.add_rule(tree_.pointer(schemas.front()));
    queue_.emplace_back(found->second, schemas);
  }
  return grammar_.rule(found->second);
}

Result<ExprId> SchemaBuilder::value(const Schemas& schemas,
                                    const std::vector<SchemaChoice>& settled) {
  grammar_.budget.work -= kSchemaWork * static_cast<int64_t>(schemas.size());
  if (grammar_.budget.exhausted() || depth_ > kChoiceDepthMax) return too_complex();
  WEIR_ASSIGN(const SchemaFacts facts, reader_.read(schemas, settled));
  if (facts.impossible) return grammar_.nothing();
  if (!facts.values.empty()) return listed(schemas, facts);
  if (!facts.choices.empty()) return choice(schemas, settled, facts);
  return typed(facts);
}

Result<ExprId> SchemaBuilder::choice(const Schemas& schemas,
                                     const std::vector<SchemaChoice>& settled,
                                     const SchemaFacts& facts) {
  const SchemaChoice choice = facts.choices.front();
  if (choice.exclusive) WEIR_TRY(check_exclusive(choice));
  const bool alone = facts.objects.size() == 1 && facts.choices.size() == 1 &&
                     !facts.types_stated && facts.keyword_types == 0 && facts.formats.empty();
  std::vector<ExprId> ways;
  for (const NodeId branch : tree_.children(choice.array)) {
    if (alone) {
      ways.push_back(schema({branch}));
      continue;
    }
    Schemas all = schemas;
    all.push_back(branch);
    std::vector<SchemaChoice> made = settled;
    made.push_back(choice);
    ++depth_;
    WEIR_ASSIGN(const ExprId way, value(all, made));
    --depth_;
    ways.push_back(way);
  }
  return grammar_.any(ways);
}

// enum and const: those of the values that satisfy everything else, too.
Result<ExprId> SchemaBuilder::listed(const Schemas& schemas, const SchemaFacts& facts) {
  Schemas candidates{facts.values.front()};
  if (facts.is_enum.front()) candidates = tree_.children(facts.values.front());
  const bool only = facts.objects.size() == 1 && facts.values.size() == 1 &&
                    facts.keyword_types == 0 && facts.choices.empty() && facts.formats.empty() &&
                    facts.types == type::kAny;
  std::vector<ExprId> values;
  for (const NodeId candidate : candidates) {
    bool holds = true;
    if (!only) {
      WEIR_ASSIGN(holds, check_.satisfies(candidate, schemas));
    }
    if (holds) values.push_back(constant(candidate));
  }
  return grammar_.any(values);
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
  const bool free = facts.keyword_types == 0 && facts.formats.empty();
  if (free && types == type::kAny) return parts_.value();
  std::vector<ExprId> ways;
  if (types & type::kNull) ways.push_back(grammar_.literal("null"));
  if (types & type::kBoolean)
    ways.insert(ways.end(), {grammar_.literal("true"), grammar_.literal("false")});
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

template <class Make>
Result<ExprId> SchemaBuilder::shared(const std::string& description, Make make) {
  const auto [found, fresh] = shared_.try_emplace(description, -1);
  if (fresh) {
    found->second = grammar_.add_rule(description);
    grammar_.define(found->second, grammar_.nothing());
    WEIR_ASSIGN(const ExprId body, make());
    grammar_.define(found->second, body);
  }
  return grammar_.rule(found->second);
}

Result<ExprId> SchemaBuilder::number_of(const SchemaFacts& facts, unsigned types) {
  NumberRange range{.min = facts.min, .max = facts.max, .steps = facts.steps};
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
    for (const NodeId object : facts.objects)
      if (const auto keyword = tree_.member(object, "multipleOf"))
        return reader_.unsupported(*keyword, expr.error().message);
    return expr;
  });
}

Result<ExprId> SchemaBuilder::string_of(const SchemaFacts& facts) {
  std::string description =
      "string " + std::to_string(facts.length_min) + " " + std::to_string(facts.length_max);
  for (const NodeId pattern : facts.patterns)
    description += "\npattern " + std::string(*tree_.string_at(pattern));
  for (const NodeId format : facts.formats)
    description += "\nformat " + std::string(*tree_.string_at(format));
  return shared(description, [&]() -> Result<ExprId> {
    WEIR_ASSIGN(const ExprId content, string_content(facts));
    return parts_.quoted(content);
  });
}

Result<ExprId> SchemaBuilder::string_content(const SchemaFacts& facts) {
  if (facts.length_min > facts.length_max) return grammar_.nothing();
  const auto min = static_cast<int32_t>(facts.length_min);
  const auto max = static_cast<int32_t>(facts.length_max);
  std::vector<ExprId> demands;
  const auto demand = [&](NodeId keyword, std::string_view pattern,
                          RegexMatch match) -> Result<void> {
    Result<ExprId> expr = regex(grammar_, pattern, Spelling::kJson, match);
    if (!expr) return reader_.unsupported(keyword, expr.error().message);
    demands.push_back(*expr);
    return {};
  };
  for (const NodeId pattern : facts.patterns)
    WEIR_TRY(demand(pattern, *tree_.string_at(pattern), RegexMatch::kSearch));
  for (const NodeId format : facts.formats) {
    const auto pattern = format_pattern(*tree_.string_at(format));
    if (!pattern)
      return reader_.unsupported(
          format,
          "the format '" + std::string(tree_.string_at(format)->substr(0, 64)) + "' is not known");
    if (!pattern->empty()) WEIR_TRY(demand(format, *pattern, RegexMatch::kWhole));
  }
  if (demands.empty()) return grammar_.repeat(parts_.character(), min, max);
  if (min > 0 || max != kUnbounded)
    demands.push_back(grammar_.repeat(spell(grammar_, CharSet::all(), Spelling::kJson), min, max));
  if (demands.size() == 1) return demands.front();
  WEIR_ASSIGN(Dfa all, machine_of(grammar_, demands.front()));
  for (size_t i = 1; i < demands.size(); ++i) {
    WEIR_ASSIGN(const Dfa next, machine_of(grammar_, demands[i]));
    WEIR_ASSIGN(all, intersect(all, next, grammar_.budget));
  }
  return grammar_.machine(std::move(all));
}

Result<ExprId> json_schema(Grammar& grammar, std::string_view schema, SchemaReading reading) {
  WEIR_ASSIGN(const SchemaTree tree, SchemaTree::parse(schema));
  return SchemaBuilder(grammar, tree, reading).build();
}

ExprId json_object(Grammar& grammar) { return JsonParts(grammar).object(); }

}  // namespace weir::sample::grammar
