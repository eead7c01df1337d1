// What reading experts from disk took during a measurement: counts of the store and of the process
// between two moments.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/json.h"
#include "ssd/expert_store.h"

namespace weir {

class ExpertFigures {
 public:
  static ExpertFigures now(const ssd::ExpertStore& store);
  ExpertFigures since(const ExpertFigures& before) const;

  // What generated tokens have read, to stand under a line of speeds.
  std::string text() const;
  // Fields of the object at hand.
  void write(JsonWriter& json) const;
  // Bytes that prompts read.
  uint64_t prompt_bytes() const { return values_[kPromptBytes]; }

 private:
  enum Value : uint8_t {
    kReady,
    kInFlight,
    kAbsent,
    kTokens,
    kDemandBytes,
    kGuessedBytes,
    kPromptBytes,
    kStallNs,
    kStepNs,
    kBusyNs,
    kReads,
    kRuns,    // Of layers, with generated rows.
    kUnions,  // Experts in them.
    kSystemNs,
    kUserNs,
    kWallNs,
    kValues
  };
  enum GuessValue : uint8_t {
    kGuesses,
    kRight,
    kMisses,
    kForeseen,
    kIssued,
    kUseful,
    kLate,
    kWasted,
    kGuessValues
  };

  double value(Value v) const { return static_cast<double>(values_[v]); }
  double bytes() const { return value(kDemandBytes) + value(kGuessedBytes); }
  double of_source(size_t source, GuessValue v) const {
    return static_cast<double>(guesses_[source][v]);
  }

  std::array<uint64_t, kValues> values_{};
  std::array<std::array<uint64_t, kGuessValues>, ssd::kGuessSources> guesses_{};
};

}  // namespace weir
