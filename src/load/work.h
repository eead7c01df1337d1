// Work: what the requests ask for and when they come. A pure function of the options: request k is
// the same in every run with the same seed, whichever client sends it and whatever the server does.
//
// Threads: its owner's.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "load/load_options.h"

namespace weir::load {

struct Job {
  std::string body;     // JSON.
  std::string session;  // Of --sessions: its name; else empty.
  int32_t output_tokens = 0;
  int32_t class_index = 0;  // 0: the rest, 1: the first of --mix.
  int32_t abort_after = 0;  // Pieces of text after which the client leaves; 0: it stays.
};

class Work {
 public:
  Work(const LoadOptions& options, std::string model);

  Job job(uint64_t index) const;
  // Seconds between two arrivals of an open loop, one after the other.
  double next_gap_s();

 private:
  std::string words(uint64_t& state, int32_t count) const;
  int32_t class_of(uint64_t index) const;
  std::vector<std::string> conversation(uint64_t session, uint64_t turn) const;

  const LoadOptions& options_;
  const std::string model_;
  std::string prefix_;
  std::mt19937_64 arrivals_;
  std::gamma_distribution<double> gaps_;
};

}  // namespace weir::load
