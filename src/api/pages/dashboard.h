// Dashboard: the server's figures of the last seconds, made once a second for all who look on.
// They are differences of what /metrics counts, by model.
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

  struct Model {
    const ApiConfig& config;
    const AnswerTimes& times;
    int32_t context_max = 0;  // Of one sequence.
    bool draining = false;
  };
  struct Pull {
    std::string model;
    int64_t bytes = 0, bytes_done = 0;  // 0 of 0: not known yet.
  };
  // Models are those that are loaded.
  struct Source {
    std::vector<Model> models;
    std::vector<Pull> pulls;
    const ApiStats& api;
    const net::HttpStats* http = nullptr;
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
    uint64_t steps = 0, output_tokens = 0, prompt_tokens = 0, looked_up = 0, found = 0;
    Counts first_token{}, gap{}, step{};
    ExpertCounts experts{};
  };
  struct History {
    std::string model;
    std::deque<Sample> samples;  // The oldest first; at most kWindowS + 1.
  };
  static Sample take(const Model& model);
  static Counts counts_of(const Histogram& histogram);
  static void write_quantiles(JsonWriter& json, const Counts& from, const Counts& to);
  static void write_experts(JsonWriter& json, const Sample& from, const Sample& to, double seconds);
  void write_model(JsonWriter& json, const Model& model, double oldest_wait_s) const;
  // Of the model as it was loaded last; null: there is none.
  const History* history(const std::string& model, uint64_t steps) const;

  std::vector<History> histories_;  // Of those that are loaded.
  std::vector<ExchangePtr> listeners_;
};

}  // namespace weir::api::pages
