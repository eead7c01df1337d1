// The part of SchemaBuilder that reads dependentRequired and names that do not come together: which
// sets of members an object may have. Each name that asks for others is there, and so are they, or
// it is not; of names that do not come together one is not there.
#include <algorithm>
#include <string>

#include "grammar/schema_builder.h"

namespace weir::grammar {

namespace {

// Each is an object of its own in the grammar: six names that know nothing of one another.
constexpr size_t kPresencesMax = 64;
// To look a name up.
constexpr int64_t kNameWork = 10;

}  // namespace

// A member of that name may come at all.
Result<bool> SchemaBuilder::may_come(const SchemaFacts& facts, std::string_view name) {
  WEIR_ASSIGN(const Schemas schemas, member_schemas(facts, name));
  return !has_false(schemas) && (speak_of(schemas) || open(facts));
}

// Those whose name may come at all.
Result<std::vector<NodeId>> SchemaBuilder::possible_dependencies(const SchemaFacts& facts,
                                                                 const Presence& presence) {
  std::vector<NodeId> possible;
  for (const NodeId list : facts.dependencies) {
    const std::string_view name = tree_.node(list).key;
    WEIR_ASSIGN(const bool may, may_come(facts, name));
    if (presence.required.contains(name) || may) possible.push_back(list);
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

// A list of names that do not come together, of which none is absent yet.
Result<std::optional<NodeId>> SchemaBuilder::not_yet_apart(const SchemaFacts& facts,
                                                           const Presence& presence) {
  for (const NodeId list : facts.apart) {
    bool apart = false;
    for (const NodeId id : tree_.children(list)) {
      const std::string_view name = *tree_.string_at(id);
      grammar_.budget.work -= kNameWork;
      apart = apart || presence.absent.contains(name);
      if (apart || presence.required.contains(name)) continue;
      WEIR_ASSIGN(const bool may, may_come(facts, name));
      apart = !may;
    }
    if (!apart) return list;
  }
  return std::nullopt;
}

Result<std::vector<SchemaBuilder::Presence>> SchemaBuilder::presences(const SchemaFacts& facts) {
  Presence first;
  for (const NodeId name : facts.required) first.required.insert(*tree_.string_at(name));
  first.required.insert(facts.needed.begin(), facts.needed.end());
  std::vector<Presence> open_ways{std::move(first)}, ways;
  if (facts.dependencies.empty() && facts.apart.empty()) return open_ways;
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
    WEIR_ASSIGN(const std::optional<NodeId> together, not_yet_apart(facts, way));
    if (together) {
      // The first of them that is absent.
      for (const NodeId id : tree_.children(*together)) {
        const std::string_view name = *tree_.string_at(id);
        if (way.required.contains(name)) continue;
        Presence without = way;
        without.absent.insert(name);
        open_ways.push_back(std::move(without));
        way.required.insert(name);
      }
    } else if (undecided == possible.end()) {
      ways.push_back(std::move(way));
    } else {
      const std::string_view name = tree_.node(*undecided).key;
      Presence without = way;
      without.absent.insert(name);
      way.required.insert(name);
      open_ways.push_back(std::move(without));
      open_ways.push_back(std::move(way));
    }
    if (ways.size() + open_ways.size() <= kPresencesMax) continue;
    if (facts.dependencies.empty()) return reader_.not_negatable(facts.apart.front());
    return reader_.unsupported(tree_.node(facts.dependencies.front()).parent,
                               "expected at most " + std::to_string(kPresencesMax) +
                                   " ways in which the names that it speaks of may come together");
  }
  return ways;
}

}  // namespace weir::grammar
