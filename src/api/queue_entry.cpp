// How answers come into the engine's queue: at once while it has room, else as soon as those have
// left it that are ended for them.
#include <algorithm>
#include <utility>

#include "api/access/queue_room.h"
#include "api/api_impl.h"
#include "api/stream/deadline.h"

namespace weir::api {

void Api::Impl::enter_queue(ServedModel& model, const ExchangePtr& exchange, int32_t choices,
                            std::function<void()> begin) {
  const int32_t queue_max = model.config.engine->queue_max();
  if (model.entries.empty() && model.config.engine->open() + choices <= queue_max) return begin();
  const uint64_t caller = exchange->caller();
  const std::vector<QueuedAnswer> queued = queued_answers(model);
  if (const int32_t missing = choices - free_places(model); missing > 0) {
    const auto ended = make_room(queued, missing, caller, choices);
    if (!ended) return exchange->respond_error(model.config.engine->queue_full());
    for (const size_t i : *ended) {
      if (i < model.streams.size())
        model.streams[i]->fail(pushed_out(queue_max));
      else
        model.batches[i - model.streams.size()]->fail(pushed_out(queue_max));
    }
  }
  model.entries.push_back({exchange, choices, std::move(begin)});
}

// Of the queue, when all that is cancelled has left it and all that may enter it has.
int32_t Api::Impl::free_places(const ServedModel& model) {
  int32_t places = model.config.engine->queue_max() - model.config.engine->open();
  for (const OwnedRequest& owned : model.host.retired) places += !owned.request->log.finished();
  for (const ServedModel::QueueEntry& entry : model.entries) places -= entry.choices;
  return places;
}

// Streams, then batches, then what is about to enter.
std::vector<QueuedAnswer> Api::Impl::queued_answers(const ServedModel& model) {
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
  for (const auto& stream : model.streams) add(stream);
  for (const auto& batch : model.batches) add(batch);
  for (const ServedModel::QueueEntry& entry : model.entries)
    queued.push_back({.caller = entry.exchange->caller(), .choices = entry.choices, .fixed = true});
  return queued;
}

// In the order of their arrival, and none before the queue has room for all of it.
void Api::Impl::begin_entries(ServedModel& model) {
  while (!model.entries.empty()) {
    const ServedModel::QueueEntry& first = model.entries.front();
    const bool closed = first.exchange->responder().closed();
    const sched::EngineHandle& engine = *model.config.engine;
    if (!closed && engine.open() + first.choices > engine.queue_max()) return;
    const ServedModel::QueueEntry entry = std::move(model.entries.front());
    model.entries.erase(model.entries.begin());
    closed ? entry.exchange->abandon() : entry.begin();
  }
}

void Api::Impl::expire_entries(ServedModel& model, sched::Clock::time_point now) {
  std::erase_if(model.entries, [&](const ServedModel::QueueEntry& entry) {
    const std::chrono::duration<double> age = now - entry.exchange->arrived();
    auto expiry = check_deadlines(model.host, age.count(), age.count());
    if (expiry) entry.exchange->respond_error(expiry->error, std::move(expiry->headers));
    return expiry.has_value();
  });
}

void Api::Impl::refuse_entries(ServedModel& model, const Error& error) {
  for (const ServedModel::QueueEntry& entry : std::exchange(model.entries, {}))
    entry.exchange->respond_error(error);
}

}  // namespace weir::api
