#include "api/access/refusal_turns.h"

#include <utility>

namespace weir::api {

void RefusalTurns::respond(uint64_t caller, net::HttpResponderPtr responder, int status,
                           net::HttpResponder::Headers headers, std::string_view body) {
  if (ended_ || ++answered_[caller] <= kAtOnce) return responder->respond(status, headers, body);
  held_count_.add();
  held_.push_back({.caller = caller,
                   .status = status,
                   .responder = std::move(responder),
                   .headers = std::move(headers),
                   .body = std::string(body)});
  if (held_.size() > kHeldMax) take_first().give();
}

RefusalTurns::Held RefusalTurns::take_first() {
  Held held = std::move(held_.front());
  held_.pop_front();
  return held;
}

// A client that is given one may ask again at once: what is held then is not looked at in this
// tick.
void RefusalTurns::tick() {
  answered_.clear();
  for (size_t left = held_.size(); left > 0; --left) {
    Held held = take_first();
    if (held.responder->closed()) continue;
    if (++answered_[held.caller] <= kAtOnce || ++held.ticks >= kTicksMax)
      held.give();
    else
      held_.push_back(std::move(held));
  }
}

void RefusalTurns::end() {
  ended_ = true;
  for (const Held& held : std::exchange(held_, {})) held.give();
}

}  // namespace weir::api
