// A block is kPageTokens consecutive tokens of a sequence, counted from position 0. What a model
// remembers of a block lies in pages.
//
// Threads: values.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/ops.h"

namespace weir::kv {

inline constexpr int32_t kPageTokens = kernels::kPageTokens;

// The blocks that `tokens` tokens reach into.
constexpr int32_t blocks_for(int32_t tokens) {
  return tokens / kPageTokens + (tokens % kPageTokens > 0 ? 1 : 0);
}

// The tokens of a block, as memory is shared by them.
using BlockTokens = std::array<int32_t, kPageTokens>;

// Where the tokens of a sequence are read, a whole block at a time.
class TokenKeys {
 public:
  // REQUIRES: all tokens of the block are known. Tokens that leave different memory although they
  // are the same token have different numbers here.
  virtual void read(int32_t block, BlockTokens& tokens) const = 0;

 protected:
  ~TokenKeys() = default;
};

}  // namespace weir::kv
