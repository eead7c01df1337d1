#include "api/pages/model_feed.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace weir::api::pages {

namespace {

constexpr std::string_view kEvents = "text/event-stream; charset=utf-8";
// Pages that people look at.
constexpr size_t kListenersMax = 64;
// Proxies give up on what says nothing for longer.
constexpr auto kSilence = std::chrono::seconds(10);

}  // namespace

void ModelFeed::add(const ExchangePtr& exchange, std::string_view states) {
  if (listeners_.size() >= kListenersMax)
    return exchange->respond_error(
        Error{ErrorCode::kOverloaded,
              "Expected at most " + std::to_string(kListenersMax) +
                  " clients that listen to the models' states; try again later."});
  exchange->start_stream(kEvents);
  exchange->responder().write(states);
  listeners_.push_back(exchange);
  exchange->responder().on_closed([this, weak = std::weak_ptr(exchange)] {
    const ExchangePtr left = weak.lock();
    if (!left) return;
    forget(*left);
    left->abandon();
  });
}

void ModelFeed::tell(std::string_view event) {
  // One that is dropped leaves the list.
  for (const ExchangePtr& listener : std::vector(listeners_)) {
    if (listener->responder().closed()) continue;
    if (listener->responder().queued_bytes() <= unread_max_) {
      listener->responder().write(event);
      continue;
    }
    forget(*listener);
    listener->end_stream();
  }
}

void ModelFeed::keep_alive(sched::Clock::time_point now) {
  if (now - told_ < kSilence) return;
  told_ = now;
  for (const ExchangePtr& listener : listeners_)
    if (!listener->responder().closed()) listener->responder().write(": \n\n");
}

void ModelFeed::end() {
  for (const ExchangePtr& listener : std::exchange(listeners_, {}))
    if (!listener->responder().closed()) listener->end_stream();
}

void ModelFeed::forget(const Exchange& exchange) {
  std::erase_if(listeners_, [&](const ExchangePtr& one) { return one.get() == &exchange; });
}

}  // namespace weir::api::pages
