// Runner: sends the work as the options say, in a closed or an open loop, and collects the figures.
//
// Threads: the one that calls run(), which is the loop's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "load/figures.h"
#include "load/load_client.h"
#include "load/load_options.h"
#include "load/work.h"
#include "net/loop.h"

namespace weir::load {

class Runner {
 public:
  Runner(const LoadOptions& options, net::HttpTarget target);

  // The error says why nothing could be measured.
  Result<void> run();
  const Figures& figures() const { return figures_; }

 private:
  enum class Phase : uint8_t { kModel, kIdle, kWarmup, kMeasure, kEnd };

  void ask_model();
  void open_idle();
  void next_idle();
  void begin(Phase phase);
  void tick();
  void start_arrivals(int64_t now);
  void start_free(int64_t now);
  // Whether the phase has another request, and one for this client.
  bool may_start(int64_t now) const;
  bool may_start(int64_t now, const LoadClient& client) const;
  void start_next(LoadClient& client, int64_t due_ns);
  LoadClient& add_client();
  void on_done(LoadClient& client, const Outcome& outcome);
  void end_if_done();
  // Of the process that --pid names; unknown without.
  ProcessUsage server_usage() const;
  void end();

  const LoadOptions options_;
  const net::HttpTarget target_;
  net::Loop loop_;
  Figures figures_;
  std::unique_ptr<Work> work_;
  std::unique_ptr<net::HttpClient> model_client_;
  std::string model_answer_;
  std::string fatal_;

  Phase phase_ = Phase::kModel;
  std::vector<std::unique_ptr<LoadClient>> clients_;
  // Open loop: clients without a request. Closed loop: those that could not connect and try again.
  std::vector<LoadClient*> free_;
  std::vector<std::unique_ptr<net::HttpClient>> idle_;
  size_t idle_opening_ = 0;

  uint64_t ticks_ = 0;
  uint64_t jobs_ = 0;  // Given out, warm-up included.
  int64_t begun_ = 0;  // In this phase.
  int64_t busy_ = 0;
  int64_t begin_ns_ = 0;  // Of the measurement.
  int32_t firsts_ = 0;    // Requests that --drop-first leaves out, which have ended,
  double firsts_s_ = 0;   // and when, after begin_ns_, together.
  int64_t last_end_ns_ = 0;
  double next_arrival_s_ = 0;    // After begin_ns_.
  ProcessUsage usage_at_begin_;  // The server's.
};

}  // namespace weir::load
