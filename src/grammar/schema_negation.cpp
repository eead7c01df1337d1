// The part of SchemaReader that reads schemas which must not hold: of `not`, of an `if` that does
// not hold, of the other alternatives of a oneOf. One whose negation is facts about the value is
// read as these; any other one is refused: a type, a bound, a pattern, listed values, names that do
// not come together, a member that has another value, and a choice of such schemas.
#include <algorithm>
#include <string>

#include "grammar/schema_facts.h"

namespace weir::grammar {

namespace {

struct Negatable {
  std::string_view name;
  unsigned type;  // Values of all other types satisfy the keyword, so not its negation.
};
constexpr Negatable kNegatable[] = {
    {"minimum", type::kNumber},          {"maximum", type::kNumber},
    {"exclusiveMinimum", type::kNumber}, {"exclusiveMaximum", type::kNumber},
    {"minLength", type::kString},        {"maxLength", type::kString},
    {"pattern", type::kString},          {"minItems", type::kArray},
    {"maxItems", type::kArray},          {"required", type::kObject},
};

// References from one to the next are followed that far.
constexpr size_t kNegatedMax = 64;

}  // namespace

tl::unexpected<Error> SchemaReader::not_negatable(NodeId schema) const {
  const auto negates = [&](NodeId at) {
    const std::string_view key = tree_.node(at).key;
    return tree_.node(tree_.node(at).parent).place == SchemaTree::Place::kSchema &&
           (key == "not" || key == "if" || key == "oneOf");
  };
  for (NodeId at = schema; tree_.node(at).parent >= 0; at = tree_.node(at).parent)
    if (negates(at))
      return unsupported(at, "what is not to hold is more than this server can exclude");
  // After a reference: what leads there is not known, so nothing can be left out.
  const auto failed = unsupported(schema, "it is not to hold, which this server cannot exclude");
  drops_.forgive();
  return failed;
}

std::vector<NodeId> SchemaReader::assertions(NodeId schema) const {
  std::vector<NodeId> found;
  tree_.for_children(schema, [&](NodeId keyword) {
    const std::string_view name = tree_.node(keyword).key;
    if (!is_annotation(name) && tree_.member(schema, name) == keyword) found.push_back(keyword);
  });
  return found;
}

Result<void> SchemaReader::read_not(NodeId schema, Reading& reading) const {
  bool flag = false;
  if (tree_.node(schema).value.get(flag) == simdjson::SUCCESS) {
    reading.facts.impossible = reading.facts.impossible || flag;
    return {};
  }
  if (std::ranges::find(reading.facts.negated, schema) != reading.facts.negated.end()) return {};
  if (!tree_.is_object(schema) || reading.facts.negated.size() > kNegatedMax)
    return not_negatable(schema);
  reading.facts.negated.push_back(schema);
  const std::vector<NodeId> keywords = assertions(schema);
  reading.facts.keywords_read += std::ssize(keywords) + 1;
  if (keywords.empty()) reading.facts.impossible = true;
  // Whatever is wrong within it, it is this schema that cannot be excluded.
  if (!keywords.empty() && !negate_keywords(schema, keywords, reading))
    return not_negatable(schema);
  return {};
}

// Of several keywords it is enough that one does not hold, which is no fact; but for a type beside
// a keyword about values of that type, and for what is said of one member.
Result<void> SchemaReader::negate_keywords(NodeId schema, const std::vector<NodeId>& keywords,
                                           Reading& reading) const {
  SchemaFacts& facts = reading.facts;
  if (keywords.size() == 1 && tree_.node(keywords[0]).key != "properties")
    return negate_keyword(schema, keywords[0], reading);
  const auto type = tree_.member(schema, "type"), required = tree_.member(schema, "required");
  const auto properties = tree_.member(schema, "properties");
  const size_t counted = keywords.size() - (type ? 1 : 0);
  unsigned types = type::kAny;
  if (type) {
    WEIR_ASSIGN(types, types_named(*type));
  }
  for (const std::string_view name : {"enum", "const"})
    if (const auto values = tree_.member(schema, name); values && counted == 1)
      return negate_values(schema, *values, type, facts);
  const unsigned before = facts.types;
  if (properties && counted == (required ? 2u : 1u) && (!type || types == type::kObject)) {
    WEIR_TRY(negate_members(schema, *properties, required, facts));
  } else if (counted == 1) {
    const NodeId other = keywords[0] == type ? keywords[1] : keywords[0];
    const auto known = std::ranges::find(kNegatable, tree_.node(other).key, &Negatable::name);
    if (known == std::end(kNegatable) || types != known->type) return not_negatable(schema);
    WEIR_TRY(negate_keyword(schema, other, reading));
  } else {
    return not_negatable(schema);
  }
  if (type) facts.types = before;  // Values of other types do not satisfy the schema, either.
  return {};
}

Result<void> SchemaReader::negate_keyword(NodeId schema, NodeId keyword, Reading& reading) const {
  SchemaFacts& facts = reading.facts;
  const std::string_view name = tree_.node(keyword).key;
  if (name == "not") {
    reading.queue.push_back(keyword);
    facts.negated_twice = true;
  } else if (name == "$ref") {
    const auto target = tree_.target(keyword, tree_.string_at(keyword).value_or("?"));
    if (!target) return not_negatable(schema);
    WEIR_TRY(read_not(*target, reading));
  } else if (name == "anyOf" || (name == "allOf" && tree_.node(keyword).child_count == 1)) {
    for (const NodeId branch : tree_.children(keyword)) WEIR_TRY(read_not(branch, reading));
  } else if (name == "type") {
    WEIR_ASSIGN(const unsigned types, types_named(keyword));
    facts.types &= ~types;
  } else if (name == "enum" || name == "const") {
    return negate_values(schema, keyword, std::nullopt, facts);
  } else {
    const auto known = std::ranges::find(kNegatable, name, &Negatable::name);
    if (known == std::end(kNegatable)) return not_negatable(schema);
    facts.types &= known->type;
    facts.keyword_types |= known->type;
    const bool is_min = name.starts_with("min");
    if (name == "required") {
      std::vector<NodeId> names;
      WEIR_TRY(read_names(keyword, keyword, names));
      facts.impossible = facts.impossible || names.empty();
      facts.apart.push_back(keyword);
    } else if (name == "pattern") {
      if (!tree_.string_at(keyword)) return not_negatable(schema);
      facts.forbidden_patterns.push_back(keyword);
    } else if (known->type == type::kNumber) {
      WEIR_ASSIGN(const Decimal bound, decimal(keyword));
      const bool strict = !name.starts_with("ex");
      name.ends_with("nimum") ? keep_below(facts.max, bound, strict)
                              : keep_above(facts.min, bound, strict);
    } else {
      WEIR_ASSIGN(const int64_t bound, count(keyword));
      const bool of_string = known->type == type::kString;
      int64_t& least = of_string ? facts.length_min : facts.items_min;
      int64_t& most = of_string ? facts.length_max : facts.items_max;
      if (is_min && bound == 0) facts.impossible = true;
      if (is_min)
        most = std::min(most, std::max<int64_t>(bound - 1, 0));
      else
        least = std::max(least, bound + 1);
    }
  }
  return {};
}

Result<void> SchemaReader::negate_values(NodeId schema, NodeId keyword, std::optional<NodeId> types,
                                         SchemaFacts& facts) const {
  std::vector<NodeId> values{keyword};
  if (tree_.node(keyword).key == "enum") values = tree_.children(keyword);
  unsigned allowed = type::kAny;
  if (types) {
    WEIR_ASSIGN(allowed, types_named(*types));
  }
  if (tree_.node(keyword).key == "enum" && !tree_.is_array(keyword)) return not_negatable(schema);
  for (const NodeId value : values) {
    const unsigned type = type_of(tree_, value);
    if (!(type & allowed)) continue;
    if (type == type::kNull) facts.types &= ~type::kNull;
    if (type != type::kNull) facts.forbidden_values.push_back(value);
  }
  return {};
}

// {"properties": {"a": A}, "required": ["a"]}: no `a`, or one that does not satisfy A. Where it is
// not required: an `a` that does not satisfy A.
Result<void> SchemaReader::negate_members(NodeId schema, NodeId properties,
                                          std::optional<NodeId> required,
                                          SchemaFacts& facts) const {
  std::vector<NodeId> names;
  if (required) WEIR_TRY(read_names(*required, *required, names));
  if (tree_.node(properties).child_count != 1 || names.size() > 1) return not_negatable(schema);
  const NodeId member = tree_.node(properties).first_child;
  if (!names.empty() && *tree_.string_at(names[0]) != tree_.node(member).key)
    return not_negatable(schema);
  if (!read({~member})) return not_negatable(schema);
  facts.types &= type::kObject;
  facts.keyword_types |= type::kObject;
  facts.forbidden_members.emplace_back(tree_.node(member).key, member);
  if (names.empty()) facts.needed.push_back(tree_.node(member).key);
  return {};
}

}  // namespace weir::grammar
