// OracleWindow: what the cache would have found had it known the future. It keeps the last demands
// for experts in a sample of the model's layers, and whether they were in memory; replay() runs
// Belady's policy over them, in the sample's share of the slots.
//
// Whole layers are sampled: each gets as many demands of a token as any other. A sample of experts
// (SHARDS, FAST '15) has too many hot ones or too few: of 768 of 6,144, the ratio was 0.05 too high
// at 10 % residency, where six whole layers of 48 are within 0.015 (bench/README.md).
//
// Threads: begin_visit() and record() by the engine's leader, which neither waits nor allocates;
// replay() by any thread, off the hot path: it takes 2 to 3 ms.
//
// Invariants: a demand that the leader has written over while replay() read it is left out.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "ssd/expert_cache.h"

namespace weir::ssd {

class OracleWindow {
 public:
  // Demands kept (256 KiB), and of one token in the layers of the sample: so 680 tokens.
  static constexpr uint32_t kDemandsMax = 32768;
  static constexpr int32_t kDemandsOfToken = 48;

  OracleWindow(int32_t layers, int32_t experts, int32_t top_k,
               std::span<const int32_t> class_of_layer);

  // A layer runs. What it demands is recorded before the next one's.
  void begin_visit() { ++visit_; }
  // found: it was in memory. Of a demand for prompts only (`counted` false) nothing is counted, but
  // it brings the expert into memory.
  void record(ExpertKey key, bool found, bool counted);

  struct Rates {
    int64_t demands = 0;
    int64_t found = 0;   // By our cache,
    int64_t oracle = 0;  // and by Belady's.
    // Above 1 where guesses come true: Belady's cache knows the future, but reads nothing ahead.
    double ratio() const;
  };
  // With so many slots of each class. The first quarter of the window only warms the cache.
  Rates replay(std::span<const int32_t> slots_of_class) const;

  double share() const { return share_; }  // Of the layers that are in the sample.

 private:
  struct Demand {
    uint32_t visit = 0;
    uint32_t key = 0;
    bool found = false;
    bool counted = false;
  };

  std::vector<Demand> snapshot() const;

  const int32_t layers_;
  const int32_t experts_;
  double share_ = 1;
  std::vector<int32_t> class_of_layer_;
  std::vector<bool> sampled_;  // By layer.
  uint32_t visit_ = 0;
  std::atomic<uint64_t> count_{0};  // Demands ever begun to be written.
  std::vector<std::atomic<uint64_t>> ring_;
};

}  // namespace weir::ssd
