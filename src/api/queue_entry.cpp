// How answers come into the engine's queue: at once while it has room, else as soon as those have
// left it that are ended for them.
#include <algorithm>
#include <utility>

#include "api/access/queue_room.h"
#include "api/api_impl.h"
#include "api/stream/deadline.h"

namespace weir::api {

void Api::Impl::enter_queue(const ExchangePtr& exchange, int32_t choices,
                            std::function<void()> begin) {
  const int32_t queue_max = config.engine->queue_max();
  if (entries.empty() && config.engine->open() + choices <= queue_max) return begin();
  const uint64_t caller = exchange->caller();
  const std::vector<QueuedAnswer> queued = queued_answers();
  if (const int32_t missing = choices - free_places(); missing > 0) {
    const auto ended = make_room(queued, missing, caller, choices);
    if (!ended) return exchange->respond_error(config.engine->queue_full());
    for (const size_t i : *ended) {
      if (i < streams.size())
        streams[i]->fail(pushed_out(queue_max));
      else
        batches[i - streams.size()]->fail(pushed_out(queue_max));
    }
  }
  entries.push_back({exchange, choices, std::move(begin)});
}

// Of the queue, when all that is cancelled has left it and all that may enter it has.
int32_t Api::Impl::free_places() const {
  int32_t places = config.engine->queue_max() - config.engine->open();
  for (const OwnedRequest& owned : host.retired) places += !owned.request->log.finished();
  for (const QueueEntry& entry : entries) places -= entry.choices;
  return places;
}

// Streams, then batches, then what is about to enter.
std::vector<QueuedAnswer> Api::Impl::queued_answers() const {
  std::vector<QueuedAnswer> queued;
  std::vector<OpenRequest> open;
  const auto add = [&](const auto& answer) {
    open.clear();
    answer->list_open(open, {});
    queued.push_back(
        {.caller = answer->caller(),
         .choices = static_cast<int32_t>(open.size()),
         .begun = static_cast<int32_t>(std::ranges::count_if(open, &OpenRequest::begun))});
  };
  for (const auto& stream : streams) add(stream);
  for (const auto& batch : batches) add(batch);
  for (const QueueEntry& entry : entries)
    queued.push_back({.caller = entry.exchange->caller(), .choices = entry.choices, .fixed = true});
  return queued;
}

// In the order of their arrival, and none before the queue has room for all of it.
void Api::Impl::begin_entries() {
  while (!entries.empty()) {
    const QueueEntry& first = entries.front();
    const bool closed = first.exchange->responder().closed();
    if (!closed && config.engine->open() + first.choices > config.engine->queue_max()) return;
    const QueueEntry entry = std::move(entries.front());
    entries.erase(entries.begin());
    closed ? entry.exchange->abandon() : entry.begin();
  }
}

void Api::Impl::expire_entries(sched::Clock::time_point now) {
  std::erase_if(entries, [&](const QueueEntry& entry) {
    const std::chrono::duration<double> age = now - entry.exchange->arrived();
    auto expiry = check_deadlines(host, age.count(), age.count());
    if (expiry) entry.exchange->respond_error(expiry->error, std::move(expiry->headers));
    return expiry.has_value();
  });
}

void Api::Impl::refuse_entries(const Error& error) {
  for (const QueueEntry& entry : std::exchange(entries, {})) entry.exchange->respond_error(error);
}

}  // namespace weir::api
