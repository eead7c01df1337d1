// ResponseStore: responses that clients may read again and continue (`previous_response_id`), in
// memory, within a budget: the oldest go first.
//
// Threads: any; one lock, never held for long. What find() returns does not change.
//
// Invariants:
// (1) A conversation is a chain of turns; each is held by its own response, if that is still here,
//     and by the turns behind it. So what continues a response can be continued, and counts, even
//     when the response itself is gone.
// (2) The bytes of all responses and turns together are at most bytes_max.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "api/memory_lease.h"

namespace weir::api {

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
  std::string owner;       // The key's id; nobody else sees it.
  int64_t created = 0;     // Seconds since the epoch.
  std::string head, tail;  // The response's JSON, before and behind the members of its output.
  std::shared_ptr<ResponseTurn> turn;
  MemoryLease lease;
};

class ResponseStore {
 public:
  // 0: keeps nothing.
  explicit ResponseStore(size_t bytes_max) : budget_(bytes_max) {}

  bool enabled() const { return budget_.bytes_max() > 0; }

  // Nothing happens if it is larger than the whole store.
  void put(StoredResponse response);
  // Null: never stored, deleted, forgotten, or another key's.
  std::shared_ptr<const StoredResponse> find(std::string_view id, std::string_view owner,
                                             int64_t now);
  bool erase(std::string_view id, std::string_view owner, int64_t now);

  size_t count() const;
  size_t bytes() const { return budget_.used(); }

 private:
  using Entry = std::shared_ptr<const StoredResponse>;

  void drop_oldest();
  void drop_expired(int64_t now);
  std::list<Entry>::iterator locate(std::string_view id, std::string_view owner);

  StoreBudget budget_;
  mutable std::mutex mutex_;
  std::list<Entry> by_age_;                                                 // The oldest first.
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_id_;  // Keys: the entries'.
};

}  // namespace weir::api
