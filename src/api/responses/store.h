// ResponseStore: responses that clients may read again and continue (`previous_response_id`), in
// memory, within a budget. One caller alone may fill it. Where several do, the caller that holds
// most loses its oldest first, so that no caller can drop the responses of others by making many.
//
// Threads: any; one lock, never held for long. What find() returns does not change.
//
// Invariants:
// (1) A conversation is a chain of turns; each is held by its own response, if that is still here,
//     and by the turns after it. So what continues a response can be continued, and counts, even
//     when the response itself is gone.
// (2) The bytes of all responses and turns together are at most bytes_max.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "api/memory/memory_lease.h"

namespace weir::api::responses {

// OpenAI keeps them as long.
inline constexpr int64_t kResponseAgeMax = 30 * 24 * 3600;
// So that a flood of tiny ones does not make the index long.
inline constexpr size_t kResponsesMax = 1 << 16;

// What one request added to a conversation: items, as members of a JSON array.
struct ResponseTurn {
  ResponseTurn() = default;
  ResponseTurn(const ResponseTurn&) = delete;
  ResponseTurn& operator=(const ResponseTurn&) = delete;
  ~ResponseTurn();

  MemoryLease lease;
  std::shared_ptr<ResponseTurn> previous;
  std::string input;
  std::string output;
};

struct StoredResponse {
  std::string id;
  std::string owner;       // The key's id; requests with other keys do not see it.
  uint64_t caller = 0;     // Exchange::caller(): whose share of the store it takes.
  int64_t created = 0;     // Seconds since the epoch.
  std::string head, tail;  // The response's JSON, before and after the members of its output.
  std::shared_ptr<ResponseTurn> turn;
  MemoryLease lease;
};

class ResponseStore {
 public:
  // 0: keeps nothing.
  explicit ResponseStore(size_t bytes_max) : budget_(bytes_max) {}

  bool enabled() const { return budget_.bytes_max() > 0; }

  // Nothing happens if it is larger than the whole store, or than all that its caller may have
  // beside the others.
  void put(StoredResponse response);
  // Null: never stored, deleted, forgotten, or another key's.
  std::shared_ptr<const StoredResponse> find(std::string_view id, std::string_view owner,
                                             int64_t now);
  bool erase(std::string_view id, std::string_view owner, int64_t now);

  size_t count() const;
  size_t bytes() const { return budget_.used(); }

 private:
  using Entry = std::shared_ptr<const StoredResponse>;
  using Numbers = std::set<uint64_t>;

  template <class AmountOf>
  bool drop_one_for(uint64_t caller, size_t amount, size_t whole, const AmountOf& amount_of);
  void drop(uint64_t number);
  void drop_expired(int64_t now);
  // Its number; nullopt where find() is null.
  std::optional<uint64_t> locate(std::string_view id, std::string_view owner) const;

  StoreBudget budget_;
  mutable std::mutex mutex_;
  uint64_t next_number_ = 0;
  std::map<uint64_t, Entry> by_age_;                      // By number: the oldest first.
  std::unordered_map<std::string_view, uint64_t> by_id_;  // Keys: the entries'.
  std::unordered_map<uint64_t, Numbers> by_caller_;       // None is empty.
};

}  // namespace weir::api::responses
