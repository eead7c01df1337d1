// PullReport: what a person, a program or a log is told while a model is pulled.
//
// Threads: the one that pulls.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "commands/progress_bar.h"
#include "program/model_source.h"

namespace weir {

class PullReport {
 public:
  enum class Form : uint8_t {
    kBar,   // On standard output: a bar on a terminal, lines elsewhere.
    kJson,  // On standard output: an object a line, each with an "event".
    kLog,   // In the log.
  };

  explicit PullReport(Form form) : form_(form) {}

  // For pull_model(); it outlives the watch.
  PullWatch watch();

 private:
  void begin(const hub::HubModel& model, int64_t missing);
  void progress(const hub::Progress& progress);
  void wait(const std::string& why);

  const Form form_;
  ProgressBar bar_;
  bool anything_ = false;  // To be fetched.
  int64_t logged_percent_ = -1;
  std::chrono::steady_clock::time_point printed_{};
};

// Percent of the bytes that are here, rounded down: 100 only when all are.
int64_t percent_of(const hub::Progress& progress);

}  // namespace weir
