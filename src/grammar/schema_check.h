// Whether a JSON value satisfies a schema: for the values of `enum` and `const`, which must satisfy
// what stands beside them, and for alternatives that must exclude one another.
#pragma once

#include <string_view>
#include <vector>

#include "grammar/schema_facts.h"

namespace weir::grammar {

class SchemaCheck {
 public:
  SchemaCheck(const SchemaTree& tree, const SchemaReader& reader, Budget& budget)
      : tree_(tree), reader_(reader), budget_(budget) {}

  // `value` is a node of the schema's own document.
  Result<bool> satisfies(NodeId value, const std::vector<NodeId>& schemas, int depth = 0);
  // A member's name, for instance; the pattern may match anywhere in it.
  Result<bool> matches(std::string_view text, std::string_view pattern);
  bool equal(NodeId a, NodeId b) const;

 private:
  Result<bool> in_values(NodeId value, const SchemaFacts& facts);
  Result<bool> choices_hold(NodeId value, const SchemaFacts& facts, int depth);
  Result<bool> number_holds(NodeId value, const SchemaFacts& facts);
  Result<bool> string_holds(std::string_view text, const SchemaFacts& facts);
  Result<bool> array_holds(NodeId value, const SchemaFacts& facts, int depth);
  Result<bool> object_holds(NodeId value, const SchemaFacts& facts, int depth);
  Result<bool> member_holds(NodeId member, NodeId schema, int depth);

  const SchemaTree& tree_;
  const SchemaReader& reader_;
  Budget& budget_;
};

}  // namespace weir::grammar
