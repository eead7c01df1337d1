// ResponseEvents: the frame of /v1/responses' events: a name, a number, the item that an event is
// of. What stands in it is the caller's. And a stored response as the events that it came as.
//
// Threads: used by one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

namespace weir::api::responses {

class ResponseEvents {
 public:
  // An event is opened, then gets its own members (each begins with a comma), then is closed.
  void open(std::string& out, std::string_view type);
  // Opens one of an item, by its place in the output,
  void open_item(std::string& out, std::string_view type, int32_t output_index);
  // and one of its text: in a part that `index_key` names ("content_index"), or of the item itself
  // (empty).
  void open_text(std::string& out, std::string_view type, int32_t output_index,
                 std::string_view item_id, std::string_view index_key, int32_t index = 0);
  static void close(std::string& out) { out.append("}\n\n"); }

  // The next event's number.
  int64_t number() const { return number_; }

 private:
  int64_t number_ = 0;
};

// The events of a response that has ended, but for those up to the number `after`. Each text comes
// in one piece. `whole`: the response's JSON.
std::string replay_events(JsonObject response, std::string_view whole, int64_t after);

}  // namespace weir::api::responses
