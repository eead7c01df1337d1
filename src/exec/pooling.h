// Pooling: how the hidden states of a prompt, one for each of its tokens, become one vector.
//
// Threads: free function; one thread at a time for one vector.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/ops.h"

namespace weir::exec {

enum class Pooling : uint8_t {
  kNone,  // They do not: an answer is wanted.
  kLast,  // The last token's, which alone has seen the whole prompt.
  kMean,  // Of all tokens.
  kCls,   // The first token's.
};

// Some consecutive tokens of a prompt on their way into its vector.
struct PooledPart {
  Pooling pooling = Pooling::kNone;
  int32_t first_position = 0;
  int32_t prompt_length = 0;
  bool last = false;  // They end the prompt.
};

// Adds their hidden states, [tokens, vector.size()]. Sums are made in the order of positions,
// whatever the parts. REQUIRES: parts come in order.
void add_part(const kernels::Ops& ops, const PooledPart& part, std::span<const float> states,
              std::span<float> vector);

}  // namespace weir::exec
