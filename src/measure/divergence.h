// How far a model's distributions of the next token lie from a reference's: the Kullback-Leibler
// divergence, and whether both find the same token the most likely.
//
// Threads: compare_logits() any; a DivergenceTally belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weir::measure {

struct Divergence {
  double kl = 0;  // Nats; NaN where a logit is one.
  bool same_top = false;
};

// KL(reference || model) = sum of p (ln p - ln q), p and q the softmax of the logits; all in
// double. Tokens that the reference masks (-inf) add nothing. REQUIRES: as many logits in both, at
// least 1.
Divergence compare_logits(std::span<const float> reference, std::span<const float> model);

class DivergenceTally {
 public:
  // REQUIRES: `divergence.kl` is no NaN.
  void add(const Divergence& divergence);

  // What is added, in nats. REQUIRES: something is.
  double mean() const;
  double mean_error() const;  // Standard error of the mean, taking tokens as independent.
  // The least that a share of `part` (0 to 1) of the tokens does not exceed.
  double quantile(double part) const;
  double same_top_share() const;  // 0 to 1.

 private:
  std::vector<double> values_;
  int64_t same_top_ = 0;
};

}  // namespace weir::measure
