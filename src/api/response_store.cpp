#include "api/response_store.h"

#include <utility>
#include <vector>

namespace weir::api {

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
  const std::lock_guard lock(mutex_);
  drop_expired(response.created);
  if (by_age_.size() >= kResponsesMax) drop_oldest();
  std::optional<MemoryLease> head, turn;
  while (!(turn = budget_.take(turn_bytes)) || !(head = budget_.take(bytes - turn_bytes))) {
    turn.reset();
    if (by_age_.empty()) return;  // Turns of open answers fill it.
    drop_oldest();
  }
  response.lease = std::move(*head);
  response.turn->lease = std::move(*turn);
  by_age_.push_back(std::make_shared<const StoredResponse>(std::move(response)));
  by_id_[by_age_.back()->id] = std::prev(by_age_.end());
}

void ResponseStore::drop_oldest() {
  by_id_.erase(by_age_.front()->id);
  by_age_.pop_front();
}

void ResponseStore::drop_expired(int64_t now) {
  while (!by_age_.empty() && now - by_age_.front()->created > kResponseAgeMax) drop_oldest();
}

std::list<ResponseStore::Entry>::iterator ResponseStore::locate(std::string_view id,
                                                                std::string_view owner) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || (*found->second)->owner != owner) return by_age_.end();
  return found->second;
}

std::shared_ptr<const StoredResponse> ResponseStore::find(std::string_view id,
                                                          std::string_view owner, int64_t now) {
  const std::lock_guard lock(mutex_);
  drop_expired(now);
  const auto found = locate(id, owner);
  return found == by_age_.end() ? nullptr : *found;
}

bool ResponseStore::erase(std::string_view id, std::string_view owner, int64_t now) {
  const std::lock_guard lock(mutex_);
  drop_expired(now);
  const auto found = locate(id, owner);
  if (found == by_age_.end()) return false;
  by_id_.erase((*found)->id);
  by_age_.erase(found);
  return true;
}

size_t ResponseStore::count() const {
  const std::lock_guard lock(mutex_);
  return by_age_.size();
}

}  // namespace weir::api
