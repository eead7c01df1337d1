// MemoryNeed: one thing that a layer of a model remembers of a sequence; a layer may have several.
// Values: kv/layout.h makes memory of them.
//
// Threads: values.
#pragma once

#include <cstdint>
#include <variant>

#include "kv/block.h"

namespace weir::kv {

// Keys and values of each token, in pages of kPageTokens tokens.
struct PagedNeed {
  int32_t heads = 0;
  int32_t k_dim = 0;
  int32_t v_dim = 0;
  // A query at position i sees the key at position j if i - window < j <= i; 0: if j <= i.
  int32_t window = 0;
  // A value is the first v_dim numbers of its key, and needs no memory of its own.
  bool values_in_keys = false;
  // One key, which may come without a value where it is a page's, stands for so many consecutive
  // tokens, and lies in the page of the last of them: token
  // t's in slot t % kPageTokens / tokens_per_key. Above 1: no window.
  int32_t tokens_per_key = 1;
  // Its reader takes codes as well (kv/format.h).
  bool takes_codes = false;

  // How many keys a page has room for.
  int32_t page_keys() const { return (kPageTokens + tokens_per_key - 1) / tokens_per_key; }

  bool operator==(const PagedNeed&) const = default;
};

// A state of fixed size for each running sequence, which its tokens change one after another. What
// it was before a token is lost, unless a checkpoint was left there (kv/checkpoints.h).
// Tokens that may turn out wrong do not change it: what they bring is kept on a tape, and the state
// takes it with the next tokens, if they were right.
struct StateNeed {
  int64_t bytes = 0;
  int64_t tape_bytes = 0;  // What one token brings.

  bool operator==(const StateNeed&) const = default;
};

// Keys and values that are made of something else than the sequence's tokens, which all of them see:
// of a sound, for example. They are written once, before the first token, and never changed. They
// lie in a slot that belongs to what they are made of, and that sequences share.
struct CrossNeed {
  int32_t heads = 0;
  int32_t k_dim = 0;
  int32_t v_dim = 0;
  int32_t rows = 0;  // Keys, and values.

  bool operator==(const CrossNeed&) const = default;
};

// std::monostate: nothing.
using MemoryNeed = std::variant<std::monostate, PagedNeed, StateNeed, CrossNeed>;

}  // namespace weir::kv
