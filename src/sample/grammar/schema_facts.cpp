#include "sample/grammar/schema_facts.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace weir::sample::grammar {

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

template <class T>
void keep_tighter(std::optional<Bound>& known, const Decimal& value, bool strict, T tighter) {
  const int order = known ? value.compare(known->value) : 0;
  if (!known || tighter(order) || (order == 0 && strict)) known = Bound{value, strict};
}

}  // namespace

struct SchemaReader::Reading {
  const std::vector<SchemaChoice>& settled;
  std::vector<NodeId> queue;
  std::set<NodeId> seen;
  SchemaFacts facts;
};

tl::unexpected<Error> SchemaReader::error(NodeId at, const std::string& what) const {
  return fail(ErrorCode::kInvalid,
              "The JSON schema is not valid: " + what + " (at " + tree_.pointer(at) + ").");
}

tl::unexpected<Error> SchemaReader::unsupported(NodeId keyword, const std::string& why) const {
  return fail(ErrorCode::kUnsupported, "The JSON schema keyword '" +
                                           std::string(tree_.node(keyword).key.substr(0, 64)) +
                                           "' is not supported" + (why.empty() ? "" : ": " + why) +
                                           " (at " + tree_.pointer(keyword) + ").");
}

Result<SchemaFacts> SchemaReader::read(const std::vector<NodeId>& schemas,
                                       const std::vector<SchemaChoice>& settled) const {
  Reading reading{settled, schemas, {}, {}};
  for (size_t i = 0; i < reading.queue.size(); ++i) {
    const NodeId schema = reading.queue[i];
    if (!reading.seen.insert(schema).second) continue;
    WEIR_TRY(read_schema(schema, reading));
  }
  return std::move(reading.facts);
}

Result<void> SchemaReader::read_schema(NodeId schema, Reading& reading) const {
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

Result<void> SchemaReader::read_keyword(NodeId schema, NodeId keyword, Reading& reading) const {
  const std::string_view name = tree_.node(keyword).key;
  if (std::ranges::find(kAnnotations, name) != std::end(kAnnotations) || name.starts_with("x-"))
    return {};
  // Of two members with one name the last one counts.
  if (tree_.member(schema, name) != keyword) return {};
  WEIR_ASSIGN(bool known, read_value_keyword(keyword, name, reading));
  if (known) return {};
  WEIR_ASSIGN(known, read_structure_keyword(schema, keyword, name, reading));
  return known ? Result<void>() : unsupported(keyword);
}

// Keywords about numbers, strings and single values.
Result<bool> SchemaReader::read_value_keyword(NodeId keyword, std::string_view name,
                                              Reading& reading) const {
  SchemaFacts& facts = reading.facts;
  const auto less = [](int order) { return order < 0; };
  const auto greater = [](int order) { return order > 0; };
  if (name == "type") {
    WEIR_TRY(read_types(keyword, facts));
  } else if (name == "enum" || name == "const") {
    if (name == "enum" && !tree_.is_array(keyword)) return error(keyword, "enum is not an array");
    facts.values.push_back(keyword);
    facts.is_enum.push_back(name == "enum");
    facts.types_stated = true;
  } else if (name == "minimum" || name == "exclusiveMinimum" || name == "maximum" ||
             name == "exclusiveMaximum") {
    facts.keyword_types |= type::kNumber;
    bool old_form = false;  // Draft 4's boolean beside `minimum`.
    const bool strict = name.starts_with("ex");
    if (strict && tree_.node(keyword).value.get(old_form) == simdjson::SUCCESS)
      return unsupported(keyword, "expected a number, found a boolean as in draft 4");
    WEIR_ASSIGN(const Decimal value, decimal(keyword));
    if (name.ends_with("nimum"))
      keep_tighter(facts.min, value, strict, greater);
    else
      keep_tighter(facts.max, value, strict, less);
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

// Keywords about arrays, objects and other schemas.
Result<bool> SchemaReader::read_structure_keyword(NodeId schema, NodeId keyword,
                                                  std::string_view name, Reading& reading) const {
  SchemaFacts& facts = reading.facts;
  const auto count_into = [&](int64_t& known, unsigned types) -> Result<void> {
    facts.keyword_types |= types;
    WEIR_ASSIGN(const int64_t value, count(keyword));
    known = name.starts_with("min") ? std::max(known, value) : std::min(known, value);
    return {};
  };
  if (name == "$ref") {
    WEIR_TRY(read_reference(keyword, reading));
  } else if (name == "allOf") {
    if (!tree_.is_array(keyword)) return error(keyword, "allOf is not an array");
    for (const NodeId part : tree_.children(keyword)) reading.queue.push_back(part);
  } else if (name == "anyOf" || name == "oneOf") {
    if (!tree_.is_array(keyword)) return error(keyword, std::string(name) + " is not an array");
    const SchemaChoice choice{keyword, schema, name == "oneOf"};
    if (std::ranges::find(reading.settled, choice) == reading.settled.end())
      facts.choices.push_back(choice);
  } else if (name == "nullable") {
    bool nullable = false;  // OpenAPI 3.0; read with the type.
    const bool stated = tree_.node(keyword).value.get(nullable) == simdjson::SUCCESS;
    if ((!stated || nullable) && !tree_.member(schema, "type"))
      return unsupported(keyword, "expected a type beside it");
  } else if (name == "items" || name == "prefixItems" || name == "additionalItems") {
    facts.keyword_types |= type::kArray;
  } else if (name == "minItems") {
    WEIR_TRY(count_into(facts.items_min, type::kArray));
  } else if (name == "maxItems") {
    WEIR_TRY(count_into(facts.items_max, type::kArray));
  } else if (name == "uniqueItems") {
    bool unique = false;
    if (tree_.node(keyword).value.get(unique) != simdjson::SUCCESS)
      return error(keyword, "uniqueItems is not a boolean");
    facts.keyword_types |= type::kArray;
    facts.unique_items = facts.unique_items || unique;
  } else if (name == "properties" || name == "patternProperties") {
    if (!tree_.is_object(keyword)) return error(keyword, std::string(name) + " is not an object");
    facts.keyword_types |= type::kObject;
  } else if (name == "additionalProperties") {
    facts.keyword_types |= type::kObject;
  } else if (name == "propertyNames") {
    facts.keyword_types |= type::kObject;
    facts.member_names.push_back(keyword);
  } else if (name == "required") {
    facts.keyword_types |= type::kObject;
    WEIR_TRY(read_names(keyword, keyword, facts.required));
  } else if (name == "dependentRequired") {
    facts.keyword_types |= type::kObject;
    WEIR_TRY(read_dependencies(keyword, facts));
  } else if (name == "minProperties") {
    WEIR_TRY(count_into(facts.members_min, type::kObject));
  } else if (name == "maxProperties") {
    WEIR_TRY(count_into(facts.members_max, type::kObject));
  } else {
    return false;
  }
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

Result<void> SchemaReader::read_dependencies(NodeId keyword, SchemaFacts& facts) const {
  if (!tree_.is_object(keyword)) return error(keyword, "dependentRequired is not an object");
  for (const NodeId list : tree_.children(keyword)) {
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

Result<void> SchemaReader::read_types(NodeId keyword, SchemaFacts& facts) const {
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

}  // namespace weir::sample::grammar
