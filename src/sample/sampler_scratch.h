// SamplerScratch: memory for one row at a time, one per team member: a candidate list and a row of
// the vocabulary's size.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/matcher.h"

namespace weir::sample {

// A token still in play, and what it is ordered by: a logit, a weight, or a distance.
struct Candidate {
  int32_t token = -1;
  float key = 0;
};

class SamplerScratch {
 public:
  explicit SamplerScratch(int32_t vocab_size)
      : candidates_(static_cast<size_t>(vocab_size)),
        raw_logits_(static_cast<size_t>(vocab_size)),
        block_maxima_(static_cast<size_t>((vocab_size + kBlockTokens - 1) / kBlockTokens)),
        mask_((static_cast<size_t>(vocab_size) + 63) / 64) {}

  std::span<Candidate> candidates() { return candidates_; }
  std::span<float> raw_logits() { return raw_logits_; }
  // One per block of kBlockTokens logits.
  std::span<float> block_maxima() { return block_maxima_; }
  // One bit per token.
  std::span<uint64_t> mask() { return mask_; }
  grammar::MatchScratch& match() { return match_; }

  static constexpr int32_t kBlockTokens = 64;

 private:
  std::vector<Candidate> candidates_;
  std::vector<float> raw_logits_;
  std::vector<float> block_maxima_;
  std::vector<uint64_t> mask_;
  grammar::MatchScratch match_;
};

}  // namespace weir::sample
