#include "grammar/schema_facts.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace weir::grammar {

namespace {

// Say something about a schema, but nothing about which values are valid. The second row: of other
// dialects and tools, seen in practice.
constexpr std::string_view kAnnotations[] = {
    "$schema",
    "$id",
    "id",
    "$comment",
    "$defs",
    "definitions",
    "$anchor",
    "$vocabulary",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "then",  // Both are read with `if`,
    "else",
    "minContains",  // and both of these with `contains`.
    "maxContains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "example",
    "discriminator",
    "propertyOrdering",
    "order",
    "strict",
    "errorMessage",
    "xml",
    "externalDocs",
    "enumNames",
    "enumDescriptions",
    "markdownDescription",
    "name",
};

struct TypeName {
  std::string_view name;
  unsigned bits;
};
constexpr TypeName kTypeNames[] = {
    {"null", type::kNull},     {"boolean", type::kBoolean}, {"integer", type::kWhole},
    {"number", type::kNumber}, {"string", type::kString},   {"array", type::kArray},
    {"object", type::kObject},
};

// Each is two ways to make the value: 32 objects at the most.
constexpr int kConditionalsMax = 5;

}  // namespace

bool is_annotation(std::string_view name) {
  return std::ranges::find(kAnnotations, name) != std::end(kAnnotations) || name.starts_with("x-");
}

void keep_above(std::optional<Bound>& known, const Decimal& value, bool strict) {
  const int order = known ? value.compare(known->value) : 1;
  if (order > 0 || (order == 0 && strict)) known = Bound{value, strict};
}

void keep_below(std::optional<Bound>& known, const Decimal& value, bool strict) {
  const int order = known ? value.compare(known->value) : -1;
  if (order < 0 || (order == 0 && strict)) known = Bound{value, strict};
}

tl::unexpected<Error> SchemaReader::error(NodeId at, const std::string& what) const {
  drops_.blame(at);
  return fail(ErrorCode::kInvalid,
              "The JSON schema is not valid: " + what + " (at " + tree_.pointer(at) + ").");
}

std::optional<NodeId> SchemaReader::keyword(NodeId schema, std::string_view name) const {
  const auto found = tree_.member(schema, name);
  return found && drops_.has(*found) ? std::nullopt : found;
}

std::optional<NodeId> SchemaReader::find(const SchemaFacts& facts, std::string_view name) const {
  for (const NodeId object : facts.objects)
    if (const auto found = keyword(object, name)) return found;
  return std::nullopt;
}

tl::unexpected<Error> SchemaReader::unsupported(NodeId keyword, const std::string& why) const {
  drops_.blame(keyword);
  return fail(ErrorCode::kUnsupported, "The JSON schema keyword '" +
                                           std::string(tree_.node(keyword).key.substr(0, 64)) +
                                           "' is not supported" + (why.empty() ? "" : ": " + why) +
                                           " (at " + tree_.pointer(keyword) + ").");
}

Result<SchemaFacts> SchemaReader::read(const std::vector<NodeId>& schemas,
                                       const std::vector<SchemaChoice>& settled) const {
  Reading reading{settled, schemas.size(), schemas, {}, {}};
  for (size_t i = 0; i < reading.queue.size(); ++i) {
    const NodeId schema = reading.queue[i];
    if (!reading.seen.insert(schema).second) continue;
    WEIR_TRY(schema < 0 ? read_not(~schema, reading) : read_schema(schema, reading));
  }
  return std::move(reading.facts);
}

Result<void> SchemaReader::read_schema(NodeId schema, Reading& reading) const {
  if (drops_.has(schema)) return {};
  bool flag = false;
  if (tree_.node(schema).value.get(flag) == simdjson::SUCCESS) {
    reading.facts.impossible = reading.facts.impossible || !flag;
    return {};
  }
  if (!tree_.is_object(schema))
    return error(schema, std::string("expected an object or a boolean, found ") +
                             json_type_name(tree_.node(schema).value));
  reading.facts.objects.push_back(schema);
  for (const NodeId keyword : tree_.children(schema))
    WEIR_TRY(read_keyword(schema, keyword, reading));
  return {};
}

// What can be left out is left out here, where nothing has been made of it yet.
Result<void> SchemaReader::read_keyword(NodeId schema, NodeId keyword, Reading& reading) const {
  const std::string_view name = tree_.node(keyword).key;
  ++reading.facts.keywords_read;
  if (is_annotation(name) || (drops_.has(keyword) && name != "oneOf")) return {};
  // Of two members with one name the last one counts.
  if (tree_.member(schema, name) != keyword) return {};
  const Result<bool> known = read_any_keyword(schema, keyword, reading);
  if (known && *known) return {};
  const auto failed = known ? unsupported(keyword) : tl::unexpected<Error>(known.error());
  if (drops_.is_blamed(keyword) && drops_.drop_blamed()) return {};
  return failed;
}

Result<bool> SchemaReader::read_any_keyword(NodeId schema, NodeId keyword, Reading& reading) const {
  const std::string_view name = tree_.node(keyword).key;
  WEIR_ASSIGN(bool known, read_value_keyword(schema, keyword, name, reading));
  if (known) return true;
  WEIR_ASSIGN(known, read_structure_keyword(schema, keyword, name, reading));
  if (known) return true;
  WEIR_ASSIGN(known, read_array_keyword(schema, keyword, name, reading));
  if (known) return true;
  return read_object_keyword(schema, keyword, name, reading);
}

// Keywords about numbers, strings and single values.
Result<bool> SchemaReader::read_value_keyword(NodeId schema, NodeId keyword, std::string_view name,
                                              Reading& reading) const {
  SchemaFacts& facts = reading.facts;
  if (name == "type") {
    WEIR_TRY(read_types(keyword, facts));
  } else if (name == "enum" || name == "const") {
    if (name == "enum" && !tree_.is_array(keyword)) return error(keyword, "enum is not an array");
    facts.values.push_back(keyword);
    facts.is_enum.push_back(name == "enum");
    facts.types_stated = true;
  } else if (name == "minimum" || name == "exclusiveMinimum" || name == "maximum" ||
             name == "exclusiveMaximum") {
    WEIR_TRY(read_bound(schema, keyword, name, facts));
  } else if (name == "multipleOf") {
    facts.keyword_types |= type::kNumber;
    WEIR_ASSIGN(const Decimal step, decimal(keyword));
    if (step.negative || step.is_zero()) return error(keyword, "multipleOf is not positive");
    facts.steps.push_back(step);
  } else if (name == "minLength" || name == "maxLength") {
    facts.keyword_types |= type::kString;
    WEIR_ASSIGN(const int64_t length, count(keyword));
    if (name == "minLength")
      facts.length_min = std::max(facts.length_min, length);
    else
      facts.length_max = std::min(facts.length_max, length);
  } else if (name == "pattern" || name == "format") {
    if (!tree_.string_at(keyword)) return error(keyword, std::string(name) + " is not a string");
    // A format says nothing about numbers (`int32`): types are not to be guessed from it.
    if (name == "pattern") facts.keyword_types |= type::kString;
    (name == "pattern" ? facts.patterns : facts.formats).push_back(keyword);
  } else {
    return false;
  }
  return true;
}

// Draft 4 has a boolean in exclusiveMinimum, which says that `minimum` itself is not allowed.
Result<void> SchemaReader::read_bound(NodeId schema, NodeId keyword, std::string_view name,
                                      SchemaFacts& facts) const {
  facts.keyword_types |= type::kNumber;
  const bool is_min = name.ends_with("nimum");
  bool strict = name.starts_with("ex"), flag = false;
  if (strict && tree_.node(keyword).value.get(flag) == simdjson::SUCCESS) return {};
  const auto beside = strict
                          ? std::nullopt
                          : this->keyword(schema, is_min ? "exclusiveMinimum" : "exclusiveMaximum");
  if (beside && tree_.node(*beside).value.get(flag) == simdjson::SUCCESS) strict = flag;
  WEIR_ASSIGN(const Decimal value, decimal(keyword));
  is_min ? keep_above(facts.min, value, strict) : keep_below(facts.max, value, strict);
  return {};
}

// Keywords about other schemas of the same value.
Result<bool> SchemaReader::read_structure_keyword(NodeId schema, NodeId keyword,
                                                  std::string_view name, Reading& reading) const {
  SchemaFacts& facts = reading.facts;
  if (name == "$ref") {
    WEIR_TRY(read_reference(keyword, reading));
  } else if (name == "allOf") {
    if (!tree_.is_array(keyword)) return error(keyword, "allOf is not an array");
    for (const NodeId part : tree_.children(keyword)) reading.queue.push_back(part);
  } else if (name == "anyOf" || name == "oneOf") {
    const bool left_out = drops_.has(keyword);  // A oneOf is read as anyOf then.
    if (!tree_.is_array(keyword) && left_out) return true;
    if (!tree_.is_array(keyword)) return error(keyword, std::string(name) + " is not an array");
    const SchemaChoice choice{keyword, schema, name == "oneOf" && !left_out};
    if (std::ranges::find(reading.settled, choice) == reading.settled.end())
      facts.choices.push_back(choice);
  } else if (name == "not") {
    WEIR_TRY(read_not(keyword, reading));
  } else if (name == "if") {
    WEIR_TRY(read_conditional(schema, keyword, reading));
  } else if (name == "nullable") {
    bool nullable = false;  // OpenAPI 3.0; read with the type.
    const bool stated = tree_.node(keyword).value.get(nullable) == simdjson::SUCCESS;
    if ((!stated || nullable) && !tree_.member(schema, "type"))
      return unsupported(keyword, "expected a type beside it");
  } else {
    return false;
  }
  return true;
}

// Both ways are read at once, so that what cannot be enforced is found before either is made.
Result<void> SchemaReader::read_conditional(NodeId schema, NodeId keyword, Reading& reading) const {
  if (!tree_.member(schema, "then") && !tree_.member(schema, "else")) return {};
  const SchemaChoice choice{keyword, schema, false, true};
  if (std::ranges::find(reading.settled, choice) != reading.settled.end()) return {};
  if (std::ranges::count(reading.facts.choices, true, &SchemaChoice::conditional) ==
      kConditionalsMax)
    return unsupported(keyword, "expected at most " + std::to_string(kConditionalsMax) +
                                    " that apply to one value");
  const auto holds = read({keyword}), fails = read({~keyword});
  if (!holds || !fails) return not_negatable(keyword);
  reading.facts.keywords_read += holds->keywords_read + fails->keywords_read;
  reading.facts.choices.push_back(choice);
  return {};
}

// unevaluatedProperties and unevaluatedItems. Schemas beside the one that has it would not count:
// but what a reading puts together are mostly its own parts.
Result<void> SchemaReader::read_others(NodeId schema, NodeId keyword, bool& no_others,
                                       Reading& reading) const {
  bool others = false;
  if (tree_.node(keyword).value.get(others) != simdjson::SUCCESS)
    return unsupported(keyword, "expected a boolean");
  if (others) return {};
  for (size_t i = 0; i < reading.roots; ++i) {
    const NodeId root = reading.queue[i];
    const NodeId parent = tree_.node(root < 0 ? ~root : root).parent;
    const bool is_part = std::ranges::any_of(reading.settled, [&](const SchemaChoice& choice) {
      return parent == choice.keyword || parent == choice.owner;
    });
    if (root != schema && !is_part)
      return unsupported(keyword, "expected one schema for this value, found several");
  }
  no_others = true;
  return {};
}

Result<bool> SchemaReader::read_array_keyword(NodeId schema, NodeId keyword, std::string_view name,
                                              Reading& reading) const {
  SchemaFacts& facts = reading.facts;
  if (name == "items" || name == "prefixItems" || name == "additionalItems") {
    // Read with the array.
  } else if (name == "minItems") {
    WEIR_ASSIGN(const int64_t least, count(keyword));
    facts.items_min = std::max(facts.items_min, least);
  } else if (name == "maxItems") {
    WEIR_ASSIGN(const int64_t most, count(keyword));
    facts.items_max = std::min(facts.items_max, most);
  } else if (name == "uniqueItems") {
    bool unique = false;
    if (tree_.node(keyword).value.get(unique) != simdjson::SUCCESS)
      return error(keyword, "uniqueItems is not a boolean");
    facts.unique_items = facts.unique_items || unique;
  } else if (name == "contains") {
    if (tree_.member(schema, "minContains") || tree_.member(schema, "maxContains"))
      return unsupported(keyword, "expected no number of them");
    facts.contained.push_back(keyword);
  } else if (name == "unevaluatedItems") {
    WEIR_TRY(read_others(schema, keyword, facts.no_other_items, reading));
  } else {
    return false;
  }
  facts.keyword_types |= type::kArray;
  return true;
}

Result<bool> SchemaReader::read_object_keyword(NodeId schema, NodeId keyword, std::string_view name,
                                               Reading& reading) const {
  SchemaFacts& facts = reading.facts;
  if (name == "properties" || name == "patternProperties") {
    if (!tree_.is_object(keyword)) return error(keyword, std::string(name) + " is not an object");
  } else if (name == "additionalProperties") {
    // Read with the object.
  } else if (name == "propertyNames") {
    facts.member_names.push_back(keyword);
  } else if (name == "required") {
    WEIR_TRY(read_names(keyword, keyword, facts.required));
  } else if (name == "dependentRequired" || name == "dependencies") {
    WEIR_TRY(read_dependencies(keyword, facts));
  } else if (name == "minProperties") {
    WEIR_ASSIGN(const int64_t least, count(keyword));
    facts.members_min = std::max(facts.members_min, least);
  } else if (name == "maxProperties") {
    WEIR_ASSIGN(const int64_t most, count(keyword));
    facts.members_max = std::min(facts.members_max, most);
  } else if (name == "unevaluatedProperties") {
    WEIR_TRY(read_others(schema, keyword, facts.no_other_members, reading));
  } else {
    return false;
  }
  facts.keyword_types |= type::kObject;
  return true;
}

Result<void> SchemaReader::read_names(NodeId keyword, NodeId list,
                                      std::vector<NodeId>& names) const {
  if (!tree_.is_array(list))
    return error(list, std::string(tree_.node(keyword).key) + " is not an array");
  for (const NodeId name : tree_.children(list)) {
    if (!tree_.string_at(name)) return error(name, "a required name is not a string");
    names.push_back(name);
  }
  return {};
}

// Drafts before 2019 have schemas in `dependencies`, too.
Result<void> SchemaReader::read_dependencies(NodeId keyword, SchemaFacts& facts) const {
  const std::string name(tree_.node(keyword).key);
  if (!tree_.is_object(keyword)) return error(keyword, name + " is not an object");
  for (const NodeId list : tree_.children(keyword)) {
    if (name == "dependencies" && !tree_.is_array(list))
      return unsupported(keyword, "expected lists of names");
    std::vector<NodeId> names;
    WEIR_TRY(read_names(keyword, list, names));
    // Of two members with one name the last one counts.
    if (!names.empty() && tree_.member(keyword, tree_.node(list).key) == list)
      facts.dependencies.push_back(list);
  }
  return {};
}

// A schema that was read already adds nothing. But one whose own choice led here would only lead
// here again: no value satisfies it by this way.
Result<void> SchemaReader::read_reference(NodeId keyword, Reading& reading) const {
  const auto reference = tree_.string_at(keyword);
  if (!reference) return error(keyword, "$ref is not a string");
  if (!reference->empty() && !reference->starts_with('#'))
    return unsupported(keyword,
                       "only references within the schema (#/... and #anchor) are, found '" +
                           std::string(reference->substr(0, 64)) + "'");
  const std::optional<NodeId> target = tree_.target(keyword, *reference);
  if (!target)
    return error(keyword, "$ref '" + std::string(reference->substr(0, 64)) + "' leads nowhere");
  for (const SchemaChoice& choice : reading.settled)
    if (choice.owner == *target) reading.facts.impossible = true;
  reading.queue.push_back(*target);
  return {};
}

Result<unsigned> SchemaReader::types_named(NodeId keyword) const {
  unsigned types = 0;
  std::vector<NodeId> names{keyword};
  if (tree_.is_array(keyword)) names = tree_.children(keyword);
  for (const NodeId id : names) {
    const auto name = tree_.string_at(id);
    const auto found = std::ranges::find(kTypeNames, name.value_or(""), &TypeName::name);
    if (found == std::end(kTypeNames))
      return error(id, "expected a type (null, boolean, integer, number, string, array or object)");
    types |= found->bits;
  }
  return types;
}

Result<void> SchemaReader::read_types(NodeId keyword, SchemaFacts& facts) const {
  WEIR_ASSIGN(unsigned types, types_named(keyword));
  bool nullable = false;
  const auto beside = tree_.member(tree_.node(keyword).parent, "nullable");
  if (beside && tree_.node(*beside).value.get(nullable) == simdjson::SUCCESS && nullable)
    types |= type::kNull;
  facts.types &= types;
  facts.types_stated = true;
  return {};
}

// Larger counts than any output has are as good as none.
Result<int64_t> SchemaReader::count(NodeId keyword) const {
  WEIR_ASSIGN(const Decimal value, decimal(keyword));
  if (value.negative || !value.is_whole())
    return error(keyword, std::string(tree_.node(keyword).key) +
                              ": expected a whole number that is not negative");
  if (value.whole.size() > 9) return int64_t{kUnbounded};
  return std::stoll(value.whole);
}

Result<Decimal> SchemaReader::decimal(NodeId keyword) const {
  const JsonValue value = tree_.node(keyword).value;
  if (value.type() == JsonType::INT64 || value.type() == JsonType::UINT64 ||
      value.type() == JsonType::DOUBLE) {
    std::string text;
    JsonWriter(text).value(value);
    if (const auto parsed = Decimal::parse(text)) return *parsed;
  }
  return error(keyword, std::string("expected a number, found ") + json_type_name(value));
}

unsigned type_of(const SchemaTree& tree, NodeId id) {
  const JsonValue value = tree.node(id).value;
  switch (value.type()) {
    case JsonType::NULL_VALUE:
      return type::kNull;
    case JsonType::BOOL:
      return type::kBoolean;
    case JsonType::INT64:
    case JsonType::UINT64:
      return type::kWhole;
    case JsonType::DOUBLE: {
      double number = 0;
      const bool whole = value.get(number) == simdjson::SUCCESS && number == std::trunc(number);
      return whole ? type::kWhole : type::kFraction;
    }
    case JsonType::STRING:
      return type::kString;
    case JsonType::ARRAY:
      return type::kArray;
    default:
      return type::kObject;
  }
}

}  // namespace weir::grammar
