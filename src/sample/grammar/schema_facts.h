// SchemaFacts: what several JSON Schemas that must all hold say together about one value. Reading
// follows $ref and allOf; choices (anyOf, oneOf) are left to whoever reads.
//
// A keyword that is neither supported nor a mere annotation is an error that names it.
#pragma once

#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "sample/grammar/decimal.h"
#include "sample/grammar/schema_tree.h"

namespace weir::sample::grammar {

// Types of values, or-ed. A number is whole or not.
namespace type {
inline constexpr unsigned kNull = 1, kBoolean = 2, kWhole = 4, kFraction = 8, kString = 16,
                          kArray = 32, kObject = 64;
inline constexpr unsigned kNumber = kWhole | kFraction, kAny = 127;
}  // namespace type

// The alternatives of one anyOf or oneOf.
struct SchemaChoice {
  NodeId array = -1;
  NodeId owner = -1;       // The schema that it stands in.
  bool exclusive = false;  // oneOf.
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

  int64_t items_min = 0, items_max = kUnbounded;
  bool unique_items = false;
  int64_t members_min = 0, members_max = kUnbounded;
  std::vector<NodeId> required;      // Names.
  std::vector<NodeId> member_names;  // propertyNames.
  std::vector<NodeId> dependencies;  // dependentRequired: lists of names, by the name that asks.

  std::vector<NodeId> objects;  // All schemas that hold, after $ref and allOf; none is a boolean.
};

class SchemaReader {
 public:
  explicit SchemaReader(const SchemaTree& tree) : tree_(tree) {}

  // `settled`: choices that have been made already, and are left out of the result.
  Result<SchemaFacts> read(const std::vector<NodeId>& schemas,
                           const std::vector<SchemaChoice>& settled = {}) const;

  tl::unexpected<Error> error(NodeId at, const std::string& what) const;
  tl::unexpected<Error> unsupported(NodeId keyword, const std::string& why = "") const;

 private:
  struct Reading;

  Result<void> read_schema(NodeId schema, Reading& reading) const;
  Result<void> read_keyword(NodeId schema, NodeId keyword, Reading& reading) const;
  Result<bool> read_value_keyword(NodeId keyword, std::string_view name, Reading& reading) const;
  Result<bool> read_structure_keyword(NodeId schema, NodeId keyword, std::string_view name,
                                      Reading& reading) const;
  Result<void> read_names(NodeId keyword, NodeId list, std::vector<NodeId>& names) const;
  Result<void> read_dependencies(NodeId keyword, SchemaFacts& facts) const;
  Result<void> read_reference(NodeId keyword, Reading& reading) const;
  Result<void> read_types(NodeId keyword, SchemaFacts& facts) const;
  Result<int64_t> count(NodeId keyword) const;
  Result<Decimal> decimal(NodeId keyword) const;

  const SchemaTree& tree_;
};

// The type of a JSON value, one of the bits.
unsigned type_of(const SchemaTree& tree, NodeId value);

}  // namespace weir::sample::grammar
