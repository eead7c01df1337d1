// SchemaBuilder: makes the rules of a JSON Schema's grammar. One per schema; see json_schema.h.
//
// A set of schemas that must all hold (properties of several allOf parts, say) becomes one rule, so
// recursion through $ref ends; what a rule needs is built later, from a queue. A rule that cannot
// be built for a keyword that may be left out is built once more, without it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/json_schema.h"
#include "grammar/json_value.h"
#include "grammar/schema_check.h"
#include "grammar/schema_facts.h"
#include "grammar/schema_tree.h"

namespace weir::grammar {

class SchemaBuilder {
 public:
  // What `drops` allows to leave out is left out.
  SchemaBuilder(Grammar& grammar, const SchemaTree& tree, SchemaReading reading,
                SchemaDrops& drops);

  Result<ExprId> build();

 private:
  using Schemas = std::vector<NodeId>;  // As SchemaReader reads them: ~id must not hold.

  // The values of all of them; a rule that may not be built yet.
  ExprId schema(Schemas schemas);
  NodeId behind_references(NodeId schema) const;
  Result<ExprId> value(const Schemas& schemas, const std::vector<SchemaChoice>& settled);
  Result<ExprId> value_or_less(const Schemas& schemas);
  Result<ExprId> build_once();
  Result<ExprId> choice(const Schemas& schemas, const std::vector<SchemaChoice>& settled,
                        const SchemaFacts& facts);
  Result<ExprId> listed(const Schemas& schemas, const SchemaFacts& facts);
  // What holds in each of a choice's ways.
  Result<std::vector<Schemas>> ways_of(const SchemaChoice& choice);
  ExprId constant(NodeId value);
  // Values of the types that are possible, without choices and listed values.
  Result<ExprId> typed(const SchemaFacts& facts);
  unsigned types_of(const SchemaFacts& facts) const;

  Result<ExprId> number_of(const SchemaFacts& facts, unsigned types);
  Result<ExprId> string_of(const SchemaFacts& facts);
  // Inside the quotes.
  Result<ExprId> string_content(const SchemaFacts& facts);
  Result<ExprId> allowed_text(const SchemaFacts& facts);
  Result<void> check_forbidden(const SchemaFacts& facts, unsigned types) const;
  Result<ExprId> array_of(const SchemaFacts& facts);
  struct Items;
  Result<Items> items_of(const SchemaFacts& facts) const;
  Result<ExprId> unique_items(const SchemaFacts& facts, const Schemas& item, int64_t most);
  Result<ExprId> containing_items(const SchemaFacts& facts, const Schemas& item, int64_t most);
  // enum and const: the values of the first; and those of them that satisfy all of the schemas,
  // none where none are listed.
  Schemas values_of(const SchemaFacts& facts) const;
  Result<Schemas> listed_values(const Schemas& schemas);
  Result<ExprId> object_of(const SchemaFacts& facts);

  // Names of members that the schemas speak of, in order.
  std::vector<std::string_view> member_names(const SchemaFacts& facts) const;
  // Adds the names that propertyNames lists.
  Result<void> add_listed_names(const SchemaFacts& facts, std::vector<std::string_view>& names);
  // What holds for a member of that name.
  Result<Schemas> member_schemas(const SchemaFacts& facts, std::string_view name);
  bool has_false(const Schemas& schemas) const;
  static bool speak_of(const Schemas& schemas);  // And not only forbid.
  bool is_false(NodeId schema) const;
  struct Members;
  // Which members an object has and lacks, as far as dependentRequired and `not` ask.
  struct Presence {
    std::set<std::string_view> required, absent;
  };
  Result<std::vector<Presence>> presences(const SchemaFacts& facts);
  Result<std::vector<NodeId>> possible_dependencies(const SchemaFacts& facts,
                                                    const Presence& presence);
  void require_dependents(const std::vector<NodeId>& dependencies, Presence& presence);
  Result<bool> may_come(const SchemaFacts& facts, std::string_view name);
  Result<std::optional<NodeId>> not_yet_apart(const SchemaFacts& facts, const Presence& presence);
  Result<void> add_named(const SchemaFacts& facts, const Presence& presence, Members& members);
  Result<ExprId> members_of(const SchemaFacts& facts, Members members);
  Result<void> add_others(const SchemaFacts& facts, Members& members);
  Result<ExprId> other_names(const SchemaFacts& facts, const Members& members,
                             const std::vector<Dfa>& patterns, unsigned mask);
  std::optional<NodeId> additional_of(NodeId object) const;
  bool open(const SchemaFacts& facts) const;
  Result<Dfa> allowed_names(const SchemaFacts& facts);

  // oneOf: by alternative, the others that a value made for it might satisfy, too.
  Result<std::vector<Schemas>> rivals(const SchemaChoice& choice);
  Result<bool> never_both(const SchemaFacts& made, const SchemaFacts& other, NodeId other_schema);
  Result<bool> objects_differ(const SchemaFacts& made, const SchemaFacts& other);
  Result<bool> strings_differ(const SchemaFacts& a, const SchemaFacts& b);

  // An expression that several schemas describe by the same words is one rule.
  template <class Make>
  Result<ExprId> shared(const std::string& description, Make make);

  Grammar& grammar_;
  const SchemaTree& tree_;
  const SchemaReading reading_;
  SchemaDrops& drops_;
  SchemaReader reader_;
  SchemaCheck check_;
  JsonParts parts_;
  std::map<Schemas, RuleId> rules_;
  std::vector<std::pair<RuleId, Schemas>> queue_;
  std::map<std::string, RuleId> shared_;
  int depth_ = 0;
  bool begin_again_ = false;  // Something was left out that rules already made may be part of.
};

}  // namespace weir::grammar
