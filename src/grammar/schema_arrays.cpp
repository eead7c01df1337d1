// The part of SchemaBuilder that makes arrays.
#include <algorithm>
#include <bit>
#include <map>
#include <string>

#include "grammar/schema_builder.h"

namespace weir::grammar {

namespace {

// Each item of a prefix nests an expression.
constexpr size_t kPrefixMax = 200;
// Of items that differ: every set of values that have come is a rule. Seven values in any number,
// or ten of which two may come.
constexpr size_t kUniqueSetsMax = 128;
constexpr size_t kUniqueValuesMax = 20;

}  // namespace

// Of each schema, its first items and the others.
struct SchemaBuilder::Items {
  struct Part {
    Schemas first;
    std::optional<NodeId> rest;
  };
  std::vector<Part> parts;
  size_t prefix = 0;
  bool has_rest = false;

  Schemas at(size_t index) const {
    Schemas schemas;
    for (const Part& part : parts) {
      if (index < part.first.size())
        schemas.push_back(part.first[index]);
      else if (part.rest)
        schemas.push_back(*part.rest);
    }
    return schemas;
  }
};

Result<SchemaBuilder::Items> SchemaBuilder::items_of(const SchemaFacts& facts) const {
  Items all;
  for (const NodeId object : facts.objects) {
    Items::Part part{{}, reader_.keyword(object, "items")};
    auto first = reader_.keyword(object, "prefixItems");
    if (part.rest && tree_.is_array(*part.rest)) {  // As drafts before 2020-12 write it.
      first = part.rest;
      part.rest = reader_.keyword(object, "additionalItems");
    }
    if (first) {
      if (!tree_.is_array(*first)) return reader_.error(*first, "prefixItems is not an array");
      part.first = tree_.children(*first);
      if (part.first.size() > kPrefixMax) return reader_.unsupported(*first, "it is too long");
    }
    all.prefix = std::max(all.prefix, part.first.size());
    all.has_rest = all.has_rest || part.rest;
    all.parts.push_back(std::move(part));
  }
  return all;
}

Result<ExprId> SchemaBuilder::array_of(const SchemaFacts& facts) {
  WEIR_ASSIGN(const Items items, items_of(facts));
  const size_t prefix = items.prefix;
  const bool closed = prefix > 0 && reading_ == SchemaReading::kAsMeant;
  int64_t most = facts.items_max;
  for (size_t i = 0; i <= prefix; ++i)
    if (has_false(items.at(i))) most = std::min(most, static_cast<int64_t>(i));
  if (!items.has_rest && (closed || facts.no_other_items))
    most = std::min(most, static_cast<int64_t>(prefix));
  if (facts.items_min > most) return grammar_.nothing();
  if (facts.no_other_items && facts.negated_twice)
    return reader_.unsupported(*reader_.find(facts, "unevaluatedItems"),
                               "beside a `not` within a `not`");
  const auto different = reader_.find(facts, "uniqueItems");
  if (facts.unique_items && different && most > 1) {
    if (prefix > 0) return reader_.unsupported(*different, "beside prefixItems");
    return unique_items(facts, items.at(0), most);
  }
  if (!facts.contained.empty()) {
    if (prefix > 0) return reader_.unsupported(facts.contained.front(), "beside prefixItems");
    return containing_items(facts, items.at(0), most);
  }
  const auto item = [&](size_t index) {
    const Schemas schemas = items.at(index);
    return schemas.empty() ? parts_.value() : schema(schemas);
  };
  const auto min = static_cast<int32_t>(facts.items_min), max = static_cast<int32_t>(most);
  if (max == 0) return parts_.bracketed('[', grammar_.empty(), ']');
  if (prefix == 0)
    return parts_.bracketed('[', parts_.items(item(0), std::max(min, 1), max), ']', min == 0);
  const auto fixed = static_cast<int32_t>(std::min<int64_t>(static_cast<int64_t>(prefix), most));
  const int32_t more = max == kUnbounded ? kUnbounded : max - fixed;
  ExprId tail = grammar_.empty();
  if (more > 0)
    tail = grammar_.repeat(grammar_.concat({parts_.comma(), item(prefix)}),
                           std::max(0, min - fixed), more);
  for (int32_t i = fixed; i-- > 0;) {
    const ExprId one = item(static_cast<size_t>(i));
    tail = grammar_.concat({i == 0 ? grammar_.empty() : parts_.comma(), one, tail});
    if (i >= min && i > 0) tail = grammar_.optional(tail);
  }
  return parts_.bracketed('[', tail, ']', min == 0);
}

// Of listed values. A rule for each set of values that have come: one that has not, and what
// follows.
Result<ExprId> SchemaBuilder::unique_items(const SchemaFacts& facts, const Schemas& item,
                                           int64_t most) {
  const NodeId keyword = *reader_.find(facts, "uniqueItems");
  const auto too_many = [&] {
    return reader_.unsupported(keyword,
                               "expected false, maxItems of at most 1, or items with an enum "
                               "of a few values");
  };
  if (!facts.contained.empty()) return reader_.unsupported(keyword, "beside contains");
  WEIR_ASSIGN(const Schemas listed, listed_values(item));
  Schemas values;
  for (const NodeId value : listed) {
    if (values.size() > kUniqueValuesMax) return too_many();
    if (std::ranges::none_of(values, [&](NodeId known) { return check_.equal(known, value); }))
      values.push_back(value);
  }
  if (listed.empty() || values.size() > kUniqueValuesMax) return too_many();
  most = std::min(most, std::ssize(values));
  if (facts.items_min > most) return grammar_.nothing();
  std::map<uint32_t, RuleId> rules;
  std::vector<uint32_t> queue{0};
  const auto rule_of = [&](uint32_t set) {
    const auto [found, fresh] = rules.try_emplace(set, -1);
    if (fresh) found->second = grammar_.add_rule("different items", /*keep=*/true);
    return found->second;
  };
  const RuleId first = rule_of(0);
  for (size_t i = 0; i < queue.size(); ++i) {
    const uint32_t set = queue[i];
    const auto count = static_cast<int64_t>(std::popcount(set));
    std::vector<ExprId> ways;
    if (count > 0 && count >= facts.items_min) ways.push_back(grammar_.empty());
    for (size_t k = 0; k < values.size() && count < most; ++k) {
      const uint32_t next = set | 1u << k;
      if (next == set) continue;
      if (!rules.contains(next)) queue.push_back(next);
      if (queue.size() > kUniqueSetsMax) return too_many();
      ways.push_back(grammar_.concat({set == 0 ? grammar_.empty() : parts_.comma(),
                                      constant(values[k]), grammar_.rule(rule_of(next))}));
    }
    grammar_.define(rules[set], grammar_.any(ways));
  }
  return parts_.bracketed('[', grammar_.rule(first), ']', facts.items_min == 0);
}

// Items, one that is as `contains` has it, and items again.
Result<ExprId> SchemaBuilder::containing_items(const SchemaFacts& facts, const Schemas& item,
                                               int64_t most) {
  const NodeId keyword = facts.contained.front();
  if (facts.contained.size() > 1 || facts.items_min > 1 || most < kUnbounded)
    return reader_.unsupported(keyword, "expected one of it, and no number of items");
  Schemas wanted = item;
  wanted.push_back(keyword);
  const ExprId any = item.empty() ? parts_.value() : schema(item);
  const ExprId before = grammar_.repeat(grammar_.concat({any, parts_.comma()}), 0, kUnbounded);
  const ExprId after = grammar_.repeat(grammar_.concat({parts_.comma(), any}), 0, kUnbounded);
  return parts_.bracketed('[', grammar_.concat({before, schema(wanted), after}), ']');
}

}  // namespace weir::grammar
