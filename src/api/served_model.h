// ServedModel: a loaded model as the Api answers with it: what its requests are prepared with, and
// what is open of it. A request uses it from before its preparation to its end (ModelUse).
//
// Threads: the loop's; the pool's threads read `config` and `serving` while a ModelUse is held for
// them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "api/access/queue_share.h"
#include "api/exchange/exchange.h"
#include "api/models/model_registry.h"
#include "api/serving/serving_context.h"
#include "api/stream/batch_answer.h"
#include "api/stream/stream.h"

namespace weir::api {

struct ServedModel {
  ServedModel(ApiConfig config_in, ApiStats& stats)
      : config(std::move(config_in)), serving(config), queue_share(config.engine->queue_max()) {
    host.tokenizer = config.tokenizer;
    host.engine = config.engine;
    host.stats = &stats;
    host.loop = config.loop;
    host.queue_share = &queue_share;
    host.queue_timeout = std::chrono::duration<double>(config.queue_timeout_s);
    host.request_timeout = std::chrono::duration<double>(config.request_timeout_s);
    host.pause_bytes = config.stream_pause_bytes;
    host.keep_alive = std::chrono::milliseconds(config.keep_alive_ms);
  }

  // Prompt and output of one sequence together.
  int32_t tokens_max() const {
    const int32_t fit = config.engine->max_tokens_fit();
    return fit > 0 ? std::min(fit, config.context_max) : config.context_max;
  }
  // Nothing is open of it, and its engine has nothing.
  bool empty() const {
    return streams.empty() && batches.empty() && entries.empty() && host.retired.empty();
  }
  void reap() {
    std::erase_if(streams, [](const std::shared_ptr<Stream>& stream) { return stream->done(); });
    std::erase_if(batches, [](const std::shared_ptr<BatchAnswer>& batch) { return batch->done(); });
    std::erase_if(host.retired,
                  [](const OwnedRequest& owned) { return owned.request->log.finished(); });
  }

  struct QueueEntry {
    ExchangePtr exchange;
    int32_t choices = 0;
    std::function<void()> begin;
  };

  const ApiConfig config;
  const ServingContext serving;
  QueueShare queue_share;
  StreamHost host;
  std::vector<std::shared_ptr<Stream>> streams;
  std::vector<std::shared_ptr<BatchAnswer>> batches;
  std::vector<QueueEntry> entries;  // For which room is being made in its queue.
};

// A request's hold on its model, shared by all that works on it.
struct ModelUse {
  ModelLease lease;
  std::shared_ptr<ServedModel> model;
};
using ModelUsePtr = std::shared_ptr<const ModelUse>;

}  // namespace weir::api
