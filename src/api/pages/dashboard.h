// Dashboard: the server's figures of the last seconds, made once a second for all who look on.
// They are differences of what /metrics counts; nothing new is counted for them. Of several models
// they are those of the first that is loaded.
//
// Threads: the loop's.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "api/exchange/api_stats.h"
#include "api/exchange/exchange.h"
#include "api/serving/api_config.h"
#include "base/json.h"
#include "net/http.h"
#include "sched/engine_stats.h"

namespace weir::api::pages {

class Dashboard {
 public:
  // More are refused: each is a connection that stays, and the figures are the same for all.
  static constexpr size_t kListenersMax = 16;
  // What rates and quantiles are taken over.
  static constexpr size_t kWindowS = 10;

  struct Source {
    const ApiConfig& config;
    const ApiStats& api;
    const sched::EngineStats& engine;
    const net::HttpStats* http = nullptr;
    bool draining = false;
  };

  // Once a second: takes the figures and sends them to all listeners.
  void tick(const Source& source);
  // The figures now, as one object.
  std::string figures(const Source& source) const;

  // Answers with events, one a second, until the client leaves.
  void listen(const ExchangePtr& exchange, const Source& source);
  void end();  // Of all streams: the server shuts down.

 private:
  using Counts = std::array<uint64_t, Histogram::kBuckets + 1>;  // Cumulative.
  struct Sample {
    std::chrono::steady_clock::time_point at{};
    uint64_t output_tokens = 0, prompt_tokens = 0, looked_up = 0, found = 0;
    Counts first_token{}, gap{}, step{};
  };
  static Sample take(const Source& source);
  static Counts counts_of(const Histogram& histogram);
  static void write_quantiles(JsonWriter& json, const Counts& from, const Counts& to);

  std::string model_;           // Whose samples they are.
  std::deque<Sample> samples_;  // The oldest first; at most kWindowS + 1.
  std::vector<ExchangePtr> listeners_;
};

}  // namespace weir::api::pages
