// Figures: outcomes added up, and told as a table and as JSON.
//
// Threads: its owner's.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/process_usage.h"
#include "load/histogram.h"
#include "load/load_client.h"
#include "load/load_options.h"

namespace weir::load {

// The outcomes of one class of requests, or of all.
struct Tally {
  // Milliseconds, one a request.
  using Samples = std::vector<float>;

  // `good`: it kept what the objectives promise.
  void add(const Outcome& outcome, bool good, bool stream);

  int64_t ok = 0, refused = 0, failed = 0, aborted = 0, good = 0;
  int64_t without_usage = 0;
  int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  Samples ttft, tpot, e2e, refusal;
};

// The smallest sample that at least this share does not exceed; 0 without samples.
double percentile(Tally::Samples samples, double share);

class Figures {
 public:
  explicit Figures(const LoadOptions& options)
      : options_(options),
        gaps_(static_cast<size_t>(options.class_count())),
        classes_(static_cast<size_t>(options.class_count())) {}

  void add(const Outcome& outcome);

  // By class; clients add to them.
  std::span<GapHistogram> gaps() { return gaps_; }

  // Beside the outcomes:
  double wall_s = 0;  // What rates are over. Without first requests: since they ended, on average.
  double server_s = 0;       // What the server's processor time is of.
  int64_t not_sent = 0;      // Open loop: arrivals beyond connections_max.
  uint64_t connections = 0;  // Made by the clients.
  int32_t idle_open = 0;     // Still open at the end.
  bool interrupted = false;
  std::string model;
  ProcessUsage server;

  bool has_failures() const { return all_.failed > 0; }
  // Of all classes together.
  const Tally& all() const { return all_; }
  // What failed requests said, and how often: empty where none failed.
  std::string failures() const;
  GapHistogram all_gaps() const;

  std::string table() const;
  std::string json() const;
  // With --log: a line of JSON for each outcome, in order of their ends.
  const std::string& log() const { return log_; }

 private:
  bool is_good(const Outcome& outcome) const;
  void log_outcome(const Outcome& outcome, bool good);
  void write_tally(JsonWriter& json, const Tally& tally, const GapHistogram& gaps) const;

  const LoadOptions& options_;
  std::vector<GapHistogram> gaps_;  // By class.
  std::vector<Tally> classes_;
  Tally all_;
  std::map<int, int64_t> by_status_;       // 0: no answer.
  std::map<std::string, int64_t> errors_;  // At most kErrorsMax texts.
  std::string log_;
};

}  // namespace weir::load
