// SchemaBuilder: makes the rules of a JSON Schema's grammar. One per schema; see json_schema.h.
//
// A set of schemas that must all hold (properties of several allOf parts, say) becomes one rule, so
// recursion through $ref ends; what a rule needs is built later, from a queue.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sample/grammar/json_schema.h"
#include "sample/grammar/json_value.h"
#include "sample/grammar/schema_check.h"
#include "sample/grammar/schema_facts.h"
#include "sample/grammar/schema_tree.h"

namespace weir::sample::grammar {

class SchemaBuilder {
 public:
  SchemaBuilder(Grammar& grammar, const SchemaTree& tree, SchemaReading reading);

  Result<ExprId> build();

 private:
  using Schemas = std::vector<NodeId>;

  // The values of all of them; a rule that may not be built yet.
  ExprId schema(Schemas schemas);
  NodeId behind_references(NodeId schema) const;
  Result<ExprId> value(const Schemas& schemas, const std::vector<SchemaChoice>& settled);
  Result<ExprId> choice(const Schemas& schemas, const std::vector<SchemaChoice>& settled,
                        const SchemaFacts& facts);
  Result<ExprId> listed(const Schemas& schemas, const SchemaFacts& facts);
  ExprId constant(NodeId value);
  // Of the types that are possible, without choices and listed values.
  Result<ExprId> typed(const SchemaFacts& facts);
  unsigned types_of(const SchemaFacts& facts) const;

  Result<ExprId> number_of(const SchemaFacts& facts, unsigned types);
  Result<ExprId> string_of(const SchemaFacts& facts);
  // Inside the quotes.
  Result<ExprId> string_content(const SchemaFacts& facts);
  Result<ExprId> array_of(const SchemaFacts& facts);
  Result<ExprId> object_of(const SchemaFacts& facts);

  // Names of members that the schemas speak of, in order.
  std::vector<std::string_view> member_names(const SchemaFacts& facts) const;
  // What holds for a member of that name.
  Result<Schemas> member_schemas(const SchemaFacts& facts, std::string_view name);
  bool has_false(const Schemas& schemas) const;
  bool is_false(NodeId schema) const;
  struct Members;
  // Which members an object has and lacks, as far as dependentRequired asks.
  struct Presence {
    std::set<std::string_view> required, absent;
  };
  Result<std::vector<Presence>> presences(const SchemaFacts& facts);
  Result<std::vector<NodeId>> possible_dependencies(const SchemaFacts& facts,
                                                    const Presence& presence);
  void require_dependents(const std::vector<NodeId>& dependencies, Presence& presence);
  Result<void> add_named(const SchemaFacts& facts, const Presence& presence, Members& members);
  Result<ExprId> members_of(const SchemaFacts& facts, Members members);
  Result<void> add_others(const SchemaFacts& facts, Members& members);
  Result<ExprId> other_names(const SchemaFacts& facts, const Members& members,
                             const std::vector<Dfa>& patterns, unsigned mask);
  bool open(const SchemaFacts& facts) const;
  Result<Dfa> allowed_names(const SchemaFacts& facts);

  // oneOf: no value that one alternative makes satisfies another one.
  Result<void> check_exclusive(const SchemaChoice& choice);
  Result<bool> never_both(const SchemaFacts& made, const SchemaFacts& other, NodeId other_schema);
  Result<bool> objects_differ(const SchemaFacts& made, const SchemaFacts& other);
  Result<bool> strings_differ(const SchemaFacts& a, const SchemaFacts& b);

  // An expression that several schemas describe by the same words is one rule.
  template <class Make>
  Result<ExprId> shared(const std::string& description, Make make);

  Grammar& grammar_;
  const SchemaTree& tree_;
  const SchemaReading reading_;
  SchemaReader reader_;
  SchemaCheck check_;
  JsonParts parts_;
  std::map<Schemas, RuleId> rules_;
  std::vector<std::pair<RuleId, Schemas>> queue_;
  std::map<std::string, RuleId> shared_;
  int depth_ = 0;
};

}  // namespace weir::sample::grammar
