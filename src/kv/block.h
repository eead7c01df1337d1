// A block is kPageTokens consecutive tokens of a sequence, counted from position 0. What a model
// remembers of a block lies in pages.
//
// Threads: values.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/check.h"
#include "kernels/ops.h"

namespace weir::kv {

inline constexpr int32_t kPageTokens = kernels::kPageTokens;

// The blocks that `tokens` tokens reach into.
constexpr int32_t blocks_for(int32_t tokens) {
  return tokens / kPageTokens + (tokens % kPageTokens > 0 ? 1 : 0);
}

// The tokens of a block, as memory is shared by them, and 128 bits that stand for what is seen beside
// them: where pictures lie in the block, and which. Zero: there is nothing.
struct BlockTokens {
  std::array<int32_t, kPageTokens> ids{};
  std::array<uint64_t, 2> media{};

  BlockTokens() = default;
  // Of text alone. REQUIRES: kPageTokens tokens.
  template <typename Tokens>
    requires std::is_convertible_v<const Tokens&, std::span<const int32_t>>
  BlockTokens(const Tokens& tokens) {
    const std::span<const int32_t> from(tokens);
    CHECK(from.size() == ids.size());
    std::ranges::copy(from, ids.begin());
  }

  int32_t& operator[](size_t i) { return ids[i]; }
  int32_t operator[](size_t i) const { return ids[i]; }
  bool operator==(const BlockTokens&) const = default;
};
// It is hashed, and kept on disk, as bytes.
static_assert(std::has_unique_object_representations_v<BlockTokens>);

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
