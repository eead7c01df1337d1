#include "api/responses/store.h"

#include <utility>
#include <vector>

namespace weir::api::responses {

namespace {

// Of a response and its turn beside their strings: control blocks, list and index.
constexpr size_t kEntryBytes = 512;

}  // namespace

// One after the other: conversations are long, and destructors within destructors are deep.
ResponseTurn::~ResponseTurn() {
  static thread_local std::vector<std::shared_ptr<ResponseTurn>>* ending = nullptr;
  if (!previous) return;
  if (ending) {
    ending->push_back(std::move(previous));
    return;
  }
  std::vector<std::shared_ptr<ResponseTurn>> turns;
  ending = &turns;
  turns.push_back(std::move(previous));
  while (!turns.empty()) {
    const std::shared_ptr<ResponseTurn> turn = std::move(turns.back());
    turns.pop_back();
  }
  ending = nullptr;
}

void ResponseStore::put(StoredResponse response) {
  const size_t turn_bytes = response.turn->input.size() + response.turn->output.size();
  const size_t bytes = kEntryBytes + turn_bytes + response.head.size() + response.tail.size();
  if (bytes > budget_.bytes_max()) return;
  const uint64_t caller = response.caller;
  const std::lock_guard lock(mutex_);
  drop_expired(response.created);
  const auto count_of = [](uint64_t, const Numbers& numbers) { return numbers.size(); };
  const auto bytes_of = [&](uint64_t holder, const Numbers&) { return budget_.held_by(holder); };
  if (by_age_.size() >= kResponsesMax && !drop_one_for(caller, 1, kResponsesMax, count_of)) return;
  std::optional<MemoryLease> head, turn;
  while (!(turn = budget_.take(caller, turn_bytes)) ||
         !(head = budget_.take(caller, bytes - turn_bytes))) {
    turn.reset();
    if (!drop_one_for(caller, bytes, budget_.bytes_max(), bytes_of)) return;
  }
  response.lease = std::move(*head);
  response.turn->lease = std::move(*turn);
  const uint64_t number = next_number_++;
  auto entry = std::make_shared<const StoredResponse>(std::move(response));
  by_id_[entry->id] = number;
  by_caller_[caller].insert(number);
  by_age_.emplace(number, std::move(entry));
}

// Makes room for `amount` of `whole`: the caller that would have most of it then loses its oldest.
// False if that one has nothing here. A caller that has nothing yet always gets its first eighth.
template <class AmountOf>
bool ResponseStore::drop_one_for(uint64_t caller, size_t amount, size_t whole,
                                 const AmountOf& amount_of) {
  const auto own = by_caller_.find(caller);
  const Numbers* loser = own == by_caller_.end() ? nullptr : &own->second;
  size_t most = loser ? amount_of(caller, *loser) + amount : amount <= whole / 8 ? 0 : amount;
  for (const auto& [holder, numbers] : by_caller_) {
    const size_t held = holder == caller ? 0 : amount_of(holder, numbers);
    if (held <= most) continue;
    most = held;
    loser = &numbers;
  }
  if (!loser) return false;
  drop(*loser->begin());
  return true;
}

void ResponseStore::drop(uint64_t number) {
  const auto found = by_age_.find(number);
  by_id_.erase(found->second->id);
  const auto holder = by_caller_.find(found->second->caller);
  holder->second.erase(number);
  if (holder->second.empty()) by_caller_.erase(holder);
  by_age_.erase(found);
}

void ResponseStore::drop_expired(int64_t now) {
  while (!by_age_.empty() && now - by_age_.begin()->second->created > kResponseAgeMax)
    drop(by_age_.begin()->first);
}

std::optional<uint64_t> ResponseStore::locate(std::string_view id, std::string_view owner) const {
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || by_age_.at(found->second)->owner != owner) return std::nullopt;
  return found->second;
}

std::shared_ptr<const StoredResponse> ResponseStore::find(std::string_view id,
                                                          std::string_view owner, int64_t now) {
  const std::lock_guard lock(mutex_);
  drop_expired(now);
  const auto number = locate(id, owner);
  return number ? by_age_.at(*number) : nullptr;
}

bool ResponseStore::erase(std::string_view id, std::string_view owner, int64_t now) {
  const std::lock_guard lock(mutex_);
  drop_expired(now);
  const auto number = locate(id, owner);
  if (number) drop(*number);
  return number.has_value();
}

size_t ResponseStore::count() const {
  const std::lock_guard lock(mutex_);
  return by_age_.size();
}

}  // namespace weir::api::responses
