// SchemaFacts: what several JSON Schemas that must all hold say together about one value. Reading
// follows $ref and allOf; choices (anyOf, oneOf, if) are left to the caller.
//
// A schema that must not hold stands in a list of schemas as its complement, ~id. Its negation is
// read where it can be said as facts (schema_negation.cpp).
//
// A keyword that is neither supported nor a mere annotation is an error that names it, or left out
// where SchemaDrops allows that.
#pragma once

#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/decimal.h"
#include "grammar/schema_drops.h"
#include "grammar/schema_tree.h"

namespace weir::grammar {

// Types of values, or-ed. A number is whole or not.
namespace type {
inline constexpr unsigned kNull = 1, kBoolean = 2, kWhole = 4, kFraction = 8, kString = 16,
                          kArray = 32, kObject = 64;
inline constexpr unsigned kNumber = kWhole | kFraction, kAny = 127;
}  // namespace type

// The alternatives of one anyOf or oneOf; or of an `if`, which holds, and so does `then`, or does
// not, and then `else` holds.
struct SchemaChoice {
  NodeId keyword = -1;
  NodeId owner = -1;       // The schema that it stands in.
  bool exclusive = false;  // oneOf.
  bool conditional = false;
  friend auto operator<=>(const SchemaChoice&, const SchemaChoice&) = default;
};

struct SchemaFacts {
  bool impossible = false;  // `false`, or a schema that refers to itself and nothing else.
  unsigned types = type::kAny;
  bool types_stated = false;   // By `type`, `enum` or `const`.
  unsigned keyword_types = 0;  // Types that some keyword speaks of.
  std::vector<NodeId> values;  // enum arrays and const values,
  std::vector<bool> is_enum;   // and which of both each one is.
  std::vector<SchemaChoice> choices;

  std::optional<Bound> min, max;
  std::vector<Decimal> steps;

  int64_t length_min = 0, length_max = kUnbounded;
  std::vector<NodeId> patterns, formats;
  std::vector<NodeId> forbidden_patterns;

  int64_t items_min = 0, items_max = kUnbounded;
  bool unique_items = false;
  std::vector<NodeId> contained;  // Schemas of items, at least one of which satisfies each.
  bool no_other_items = false;    // unevaluatedItems,
  bool no_other_members = false;  // and unevaluatedProperties: false.
  int64_t members_min = 0, members_max = kUnbounded;
  std::vector<NodeId> required;          // Names,
  std::vector<std::string_view> needed;  // and those that negations require.
  std::vector<NodeId> member_names;      // propertyNames.
  std::vector<NodeId> dependencies;  // dependentRequired: lists of names, by the name that asks.
  std::vector<NodeId> apart;         // Lists of names that do not all come together.
  // What a member, where it is there, must not satisfy.
  std::vector<std::pair<std::string_view, NodeId>> forbidden_members;

  std::vector<NodeId> objects;  // All schemas that hold, after $ref and allOf; none is a boolean.
  std::vector<NodeId> negated;  // All schemas that must not hold,
  std::vector<NodeId> forbidden_values;  // and the values that they forbid one by one.
  bool negated_twice = false;            // Some of `objects` stood in a `not` within a `not`.
  int64_t keywords_read = 0;             // What reading cost.
};

class SchemaReader {
 public:
  SchemaReader(const SchemaTree& tree, SchemaDrops& drops) : tree_(tree), drops_(drops) {}

  // `settled`: choices that have been made already, and are left out of the result.
  Result<SchemaFacts> read(const std::vector<NodeId>& schemas,
                           const std::vector<SchemaChoice>& settled = {}) const;

  // An error about a schema's part, which is blamed, so that it may be left out.
  tl::unexpected<Error> error(NodeId at, const std::string& what) const;
  tl::unexpected<Error> unsupported(NodeId keyword, const std::string& why = "") const;
  // The negation of a schema cannot be enforced: its `not`, `if` or `oneOf` is blamed.
  tl::unexpected<Error> not_negatable(NodeId schema) const;

  // A schema's keyword, unless it is left out.
  std::optional<NodeId> keyword(NodeId schema, std::string_view name) const;
  // The keyword of the first schema that was read and has it.
  std::optional<NodeId> find(const SchemaFacts& facts, std::string_view name) const;

 private:
  struct Reading;

  Result<void> read_schema(NodeId schema, Reading& reading) const;
  Result<void> read_keyword(NodeId schema, NodeId keyword, Reading& reading) const;
  Result<bool> read_any_keyword(NodeId schema, NodeId keyword, Reading& reading) const;
  Result<bool> read_value_keyword(NodeId schema, NodeId keyword, std::string_view name,
                                  Reading& reading) const;
  Result<bool> read_structure_keyword(NodeId schema, NodeId keyword, std::string_view name,
                                      Reading& reading) const;
  Result<void> read_names(NodeId keyword, NodeId list, std::vector<NodeId>& names) const;
  Result<void> read_dependencies(NodeId keyword, SchemaFacts& facts) const;
  Result<bool> read_object_keyword(NodeId schema, NodeId keyword, std::string_view name,
                                   Reading& reading) const;
  Result<bool> read_array_keyword(NodeId schema, NodeId keyword, std::string_view name,
                                  Reading& reading) const;
  Result<void> read_bound(NodeId schema, NodeId keyword, std::string_view name,
                          SchemaFacts& facts) const;
  Result<void> read_conditional(NodeId schema, NodeId keyword, Reading& reading) const;
  Result<void> read_others(NodeId schema, NodeId keyword, bool& no_others, Reading& reading) const;

  // --- schema_negation.cpp
  Result<void> read_not(NodeId schema, Reading& reading) const;
  Result<void> negate_keywords(NodeId schema, const std::vector<NodeId>& keywords,
                               Reading& reading) const;
  Result<void> negate_keyword(NodeId schema, NodeId keyword, Reading& reading) const;
  Result<void> negate_values(NodeId schema, NodeId keyword, std::optional<NodeId> types,
                             SchemaFacts& facts) const;
  Result<void> negate_members(NodeId schema, NodeId properties, std::optional<NodeId> required,
                              SchemaFacts& facts) const;
  std::vector<NodeId> assertions(NodeId schema) const;
  Result<unsigned> types_named(NodeId keyword) const;
  Result<void> read_reference(NodeId keyword, Reading& reading) const;
  Result<void> read_types(NodeId keyword, SchemaFacts& facts) const;
  Result<int64_t> count(NodeId keyword) const;
  Result<Decimal> decimal(NodeId keyword) const;

  const SchemaTree& tree_;
  SchemaDrops& drops_;
};

struct SchemaReader::Reading {
  const std::vector<SchemaChoice>& settled;
  size_t roots = 0;  // So many of the queue are what is read; the others follow from them.
  std::vector<NodeId> queue;
  std::set<NodeId> seen;
  SchemaFacts facts;
};

// Says something about a schema, but nothing about which values are valid.
bool is_annotation(std::string_view keyword);

// Keeps the tighter one of two bounds.
void keep_above(std::optional<Bound>& known, const Decimal& value, bool strict);
void keep_below(std::optional<Bound>& known, const Decimal& value, bool strict);

// The type of a JSON value, one of the bits.
unsigned type_of(const SchemaTree& tree, NodeId value);

}  // namespace weir::grammar
