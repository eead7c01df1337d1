// The part of SchemaBuilder that reads dependentRequired: which sets of members an object may have.
// Each name that asks for others is there, and so are they, or it is not.
#include <algorithm>
#include <string>

#include "sample/grammar/schema_builder.h"

namespace weir::sample::grammar {

namespace {

// Each is an object of its own in the grammar: six names that know nothing of one another.
constexpr size_t kPresencesMax = 64;
// To look a name up.
constexpr int64_t kNameWork = 10;

}  // namespace

// Those whose name may come at all.
Result<std::vector<NodeId>> SchemaBuilder::possible_dependencies(const SchemaFacts& facts,
                                                                 const Presence& presence) {
  std::vector<NodeId> possible;
  const bool is_open = open(facts);
  for (const NodeId list : facts.dependencies) {
    const std::string_view name = tree_.node(list).key;
    WEIR_ASSIGN(const Schemas schemas, member_schemas(facts, name));
    const bool unknown = schemas.empty() && !is_open;
    if (presence.required.contains(name) || (!has_false(schemas) && !unknown))
      possible.push_back(list);
  }
  return possible;
}

// Adds what the required names ask for, and what that asks for.
void SchemaBuilder::require_dependents(const std::vector<NodeId>& dependencies,
                                       Presence& presence) {
  size_t before = 0;
  while (before != presence.required.size() && !grammar_.budget.exhausted()) {
    before = presence.required.size();
    for (const NodeId list : dependencies) {
      grammar_.budget.work -= kNameWork;
      if (!presence.required.contains(tree_.node(list).key)) continue;
      grammar_.budget.work -= kNameWork * tree_.node(list).child_count;
      tree_.for_children(list,
                         [&](NodeId name) { presence.required.insert(*tree_.string_at(name)); });
    }
  }
}

Result<std::vector<SchemaBuilder::Presence>> SchemaBuilder::presences(const SchemaFacts& facts) {
  Presence first;
  for (const NodeId name : facts.required) first.required.insert(*tree_.string_at(name));
  std::vector<Presence> open_ways{std::move(first)}, ways;
  if (facts.dependencies.empty()) return open_ways;
  WEIR_ASSIGN(const auto possible, possible_dependencies(facts, open_ways.front()));
  while (!open_ways.empty()) {
    Presence way = std::move(open_ways.back());
    open_ways.pop_back();
    require_dependents(facts.dependencies, way);
    grammar_.budget.work -= kNameWork * static_cast<int64_t>(way.required.size() + possible.size());
    if (grammar_.budget.exhausted()) return too_complex();
    if (std::ranges::any_of(way.absent, [&](auto name) { return way.required.contains(name); }))
      continue;
    const auto undecided = std::ranges::find_if(possible, [&](NodeId list) {
      const std::string_view name = tree_.node(list).key;
      return !way.required.contains(name) && !way.absent.contains(name);
    });
    if (undecided == possible.end()) {
      ways.push_back(std::move(way));
    } else {
      const std::string_view name = tree_.node(*undecided).key;
      Presence without = way;
      without.absent.insert(name);
      way.required.insert(name);
      open_ways.push_back(std::move(without));
      open_ways.push_back(std::move(way));
    }
    if (ways.size() + open_ways.size() > kPresencesMax)
      return reader_.unsupported(
          tree_.node(facts.dependencies.front()).parent,
          "expected at most " + std::to_string(kPresencesMax) +
              " ways in which the names that it speaks of may come together");
  }
  return ways;
}

}  // namespace weir::sample::grammar
