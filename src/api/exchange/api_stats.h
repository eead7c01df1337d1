// ApiStats: what the endpoints count, and the page of /metrics.
//
// Threads: as base/metrics.h: updated by anybody, read at any time.
#pragma once

#include <string>
#include <string_view>

#include "api/access/keys.h"
#include "base/metrics.h"
#include "net/http.h"
#include "sched/engine_stats.h"

namespace weir::api {

// How long the clients of one model wait.
struct AnswerTimes {
  Histogram first_token, inter_token;  // As in ApiStats.
};

struct ApiStats {
  Counter answered_2xx, answered_4xx, answered_5xx;
  Counter finished_stop, finished_length;  // Choices.
  Counter disconnects;                     // Clients that left before their answer was complete.
  Counter failures;                        // Answers that ended with an error of ours.
  Counter cached_prompt_tokens, prompt_tokens, output_tokens;
  Counter ignored;        // Parts of requests that were not done (x-weir-ignored).
  Counter held_refusals;  // That were not given at once (RefusalTurns).
  Counter queue_timeouts, request_timeouts;
  Gauge open_answers, preparing, reading_media;
  Counter pictures, videos, sounds, fetched_media;  // Read, and of these from web addresses.
  Gauge oldest_waiting;   // Seconds.
  Histogram first_token;  // From arrival to the first sampled token.
  Histogram inter_token;  // Between two tokens of a choice, as the network loop sees them.
  Histogram answer_time;  // From arrival to the end.
  // Of choices that have ended as they should.
  Histogram prefill_time;     // From the first planned slice to the first token.
  Histogram decode_time;      // From there to the last token.
  Histogram mean_token_time;  // The same by token, of those with two at least.
  Histogram prompt_length{Histogram::Scale::kCounts};  // Tokens.
  Histogram answer_length{Histogram::Scale::kCounts};
};

// What the page tells beside figures.
struct MetricsFacts {
  std::string_view model, version, commit, kernels;
  int32_t context_max = 0, running_max = 0, open_max = 0;
};

// Prometheus text format 0.0.4. `http` may be nullptr.
std::string metrics_page(const ApiStats& api, const sched::EngineStats& engine,
                         const net::HttpStats* http, const MetricsFacts& facts);

// What each key was used for, by its name.
void render_keys(std::string& out, const Keyring& keys);

}  // namespace weir::api
