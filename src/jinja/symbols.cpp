// Symbols: the rules.
#include "jinja/symbols.h"

#include <unordered_set>

namespace weir::jinja {

uint32_t Function::slot(int level, std::string_view name) {
  const auto [found, is_new] = slots.try_emplace({level, name}, slot_count);
  if (is_new) ++slot_count;
  return found->second;
}

const Place* Symbols::find(std::string_view name) const {
  for (const Symbols* at = this; at; at = at->parent_)
    if (const auto found = at->names_.find(name); found != at->names_.end())
      return &found->second.place;
  return nullptr;
}

Source Symbols::outer_source(std::string_view name, Source::Kind otherwise) const {
  if (const Place* outer = parent_ ? parent_->find(name) : nullptr)
    return {Source::Kind::kAlias, *outer, {}};
  return {otherwise, {}, name};
}

void Symbols::load(std::string_view name) {
  if (!find(name)) set(name, {place(name), {Source::Kind::kResolve, {}, name}, false});
}

void Symbols::store(std::string_view name) {
  if (const auto found = names_.find(name); found != names_.end()) {
    if (!found->second.stored) set(name, {found->second.place, found->second.source, true});
    return;
  }
  set(name, {place(name), outer_source(name, Source::Kind::kUndefined), true});
}

Place Symbols::declare_parameter(std::string_view name) {
  set(name, {place(name), {Source::Kind::kParameter, {}, name}, true});
  return place(name);
}

bool Symbols::stored(std::string_view name) const {
  const auto found = names_.find(name);
  return found != names_.end() && found->second.stored;
}

void Symbols::set(std::string_view name, const NameState& state) {
  const auto [entry, is_new] = names_.try_emplace(name, state);
  if (log_)
    log_->emplace_back(name, is_new ? std::nullopt : std::optional<NameState>(entry->second));
  entry->second = state;
}

Symbols::Changes Symbols::take_back(const Log& log) {
  Changes changes;
  std::unordered_set<std::string_view> seen;
  for (const auto& [name, former] : log)
    if (seen.insert(name).second) changes.emplace_back(name, names_.at(name));
  for (auto entry = log.rbegin(); entry != log.rend(); ++entry) {
    if (entry->second) {
      names_[entry->first] = *entry->second;
    } else {
      names_.erase(entry->first);
    }
  }
  return changes;
}

void Symbols::merge(const std::vector<Changes>& branches) {
  std::unordered_map<std::string_view, size_t> counts;  // Branches that store a name first.
  for (const Changes& branch : branches)
    for (const auto& [name, state] : branch)
      if (state.stored && !stored(name)) ++counts[name];
  for (const Changes& branch : branches)
    for (const auto& [name, state] : branch)
      set(name, {state.place, state.source, state.stored || stored(name)});
  for (const auto& [name, count] : counts) {
    if (count == branches.size()) continue;
    NameState state = names_.at(name);
    state.source = outer_source(name, Source::Kind::kResolve);
    set(name, state);
  }
}

}  // namespace weir::jinja
