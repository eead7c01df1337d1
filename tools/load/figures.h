// Figures: outcomes added up, and told as a table and as JSON.
//
// Threads: its owner's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "histogram.h"
#include "load_client.h"
#include "options.h"
#include "process_usage.h"

namespace weir::load {

class Figures {
 public:
  explicit Figures(const LoadOptions& options) : options_(options) {}

  void add(const Outcome& outcome);

  // Beside the outcomes:
  GapHistogram gaps;
  double wall_s = 0;
  int64_t not_sent = 0;      // Open loop: arrivals beyond connections_max.
  uint64_t connections = 0;  // Made by the clients.
  int32_t idle_open = 0;     // Still open at the end.
  bool interrupted = false;
  std::string model;
  ProcessUsage server;

  bool has_failures() const { return failed_ > 0; }
  int64_t ok() const { return ok_; }

  std::string table() const;
  std::string json() const;

 private:
  // Milliseconds, one a request; sorted when told.
  using Samples = std::vector<float>;
  static double percentile(Samples samples, double share);

  const LoadOptions& options_;
  int64_t ok_ = 0, refused_ = 0, failed_ = 0, aborted_ = 0, good_ = 0;
  int64_t without_usage_ = 0;
  int64_t prompt_tokens_ = 0, output_tokens_ = 0;
  Samples ttft_, tpot_, e2e_, refusal_;
  std::map<int, int64_t> by_status_;       // 0: no answer.
  std::map<std::string, int64_t> errors_;  // At most kErrorsMax texts.
};

}  // namespace weir::load
