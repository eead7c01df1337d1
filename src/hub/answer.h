// What an answer of the hub that is not what was asked for means: what to tell people, or for how
// long to wait before the next try.
//
// Threads: any.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/result.h"
#include "hub/transport.h"

namespace weir::hub {

// What was asked, for messages.
struct Asked {
  std::string id = {};        // "org/name"; empty: no model (a search).
  std::string revision = {};  // The revision or commit.
  std::string file = {};      // Empty: the model itself.
  bool with_token = false;
  std::string endpoint = {};
};

// Of a status of 400 or more that no further try can change.
Error error_of(const ResponseHead& head, const Asked& asked);

// 408, 429 and 5xx: the same may come right by itself.
bool may_come_right(int status);

// The time that a 429 asks for, from RateLimit or Retry-After, a second added; at most an hour.
std::optional<std::chrono::milliseconds> wait_asked(const ResponseHead& head);

// What the hub says of an error itself, in a line without control characters; may be empty.
std::string hub_message(const ResponseHead& head);

// Tries without progress: after 1, 2, 4, 8 and 8 seconds, and then no more.
class Tries {
 public:
  void progress() { count_ = 0; }
  std::optional<std::chrono::milliseconds> next();

 private:
  size_t count_ = 0;
};

}  // namespace weir::hub
