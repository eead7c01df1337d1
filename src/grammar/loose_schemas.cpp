#include "grammar/loose_schemas.h"

#include <algorithm>

#include "base/json.h"
#include "grammar/compiler.h"
#include "grammar/json_schema.h"
#include "grammar/json_value.h"

namespace weir::grammar {

namespace {

// Enough for a log line and a header; more is one line that says so.
constexpr size_t kLeftOutMax = 128;
// Each shares out what the ones before have left: so often it is worth looking.
constexpr int kRoundsMax = 3;
// What is not the schemas' own: texts, markers, names.
constexpr int64_t kOtherParts = 8;

// An object, unless the schema says something else.
ExprId anything(Grammar& grammar, const std::string& schema) {
  const Result<JsonDoc> doc = JsonDoc::parse(schema);
  JsonObject object;
  std::string_view type;
  if (doc && doc->root().get(object) == simdjson::SUCCESS)
    if (const auto found = json_get(object, "type"); found && found->get(type) == simdjson::SUCCESS)
      return type == "object" ? json_object(grammar) : JsonParts(grammar).value();
  return JsonParts(grammar).value();
}

// What a grammar of nothing else needs; false: more than `share`, or it allows nothing.
bool fits(const std::string& schema, const Budget& share, Budget& used) {
  Grammar grammar;
  grammar.budget = share;
  std::vector<std::string> left_out;
  const Result<ExprId> expr = json_schema_in_part(grammar, schema, left_out);
  if (!expr) return false;
  grammar.root = grammar.add_rule("root");
  grammar.define(grammar.root, *expr);
  Budget left;
  const auto automaton = compile(std::move(grammar), &left);
  used.work = share.work - left.work;
  used.states = share.states - left.states;
  return automaton.has_value();
}

}  // namespace

ExprId LooseSchemas::bind(Grammar& grammar, std::string_view name, const std::string& schema) {
  const auto known = std::ranges::find(schemas_, name, &Schema::name);
  if (known != schemas_.end()) return known->expr;
  Schema& bound = schemas_.emplace_back(Schema{std::string(name), schema, kNoExpr, {}});
  if (!given_up_.contains(name)) {
    const size_t rules = grammar.rules().size();
    const Result<ExprId> expr = json_schema_in_part(grammar, schema, bound.left_out);
    if (expr || grammar.budget.exhausted() || grammar.too_large())
      return bound.expr = expr.value_or(grammar.nothing());
    // What was begun is left without a sentence.
    for (size_t rule = rules; rule < grammar.rules().size(); ++rule)
      grammar.define(static_cast<RuleId>(rule), grammar.nothing());
  }
  bound.left_out = {"the whole schema"};
  return bound.expr = anything(grammar, schema);
}

bool LooseSchemas::give_up_some(Interrupt* interrupt) {
  std::vector<const Schema*> open;
  for (const Schema& schema : schemas_)
    if (!given_up_.contains(schema.name)) open.push_back(&schema);
  Budget left;
  left.work -= left.work / kOtherParts;
  left.states -= left.states / kOtherParts;
  for (int round = 0; round < kRoundsMax && !open.empty(); ++round) {
    const auto count = static_cast<int64_t>(open.size());
    const Budget share{
        .work = left.work / count, .states = left.states / count, .interrupt = interrupt};
    const size_t fitting = std::erase_if(open, [&](const Schema* schema) {
      Budget used;
      if (!fits(schema->text, share, used)) return false;
      left.work -= used.work;
      left.states -= used.states;
      return true;
    });
    if (fitting == 0) break;
  }
  for (const Schema* schema : open) given_up_.insert(schema->name);
  return !open.empty();
}

bool LooseSchemas::give_up_all() {
  const size_t before = given_up_.size();
  for (const Schema& schema : schemas_) given_up_.insert(schema.name);
  return given_up_.size() > before;
}

std::vector<std::string> LooseSchemas::left_out() const {
  std::vector<std::string> names;
  size_t more = 0;
  for (const Schema& schema : schemas_)
    for (const std::string& keyword : schema.left_out)
      if (names.size() < kLeftOutMax)
        names.push_back(schema.name + ": " + keyword);
      else
        ++more;
  if (more > 0) names.push_back("tools: " + std::to_string(more) + " more keywords");
  return names;
}

}  // namespace weir::grammar
