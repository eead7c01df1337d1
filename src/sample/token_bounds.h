// TokenBounds: which tokens an output may have at all, and which may not follow others: what a
// request allows or forbids by name, beside its grammar.
//
// Threads: immutable; shared by the choices of a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::sample {

class TokenBounds {
 public:
  // `allowed`: no other token may be written; empty: all may. `banned`: sequences that must not be
  // written, none of them empty.
  TokenBounds(std::vector<int32_t> allowed, std::vector<std::vector<int32_t>> banned);

  bool has_allowed() const { return !allowed_.empty(); }
  // So many of the output's last tokens decide what is banned.
  size_t past_max() const { return past_max_; }

  // Clears the bits of tokens that are not allowed. REQUIRES: has_allowed().
  void intersect(std::span<uint64_t> mask) const;
  // Makes the last token of each banned sequence impossible whose others end `past`, the output's
  // last past_max() tokens or all that there are.
  void ban(std::span<float> logits, std::span<const int32_t> past) const;

  size_t memory_bytes() const;

 private:
  std::vector<int32_t> allowed_;  // Sorted, each once.
  std::vector<std::vector<int32_t>> banned_;
  size_t past_max_ = 0;
};

}  // namespace weir::sample
