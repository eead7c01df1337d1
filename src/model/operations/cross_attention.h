// CrossAttention: softmax attention of each token to all rows that an encoder has made of a sound.
// Keys and values are made of those rows once, before the first token.
//
// Threads: plain data and free functions.
#pragma once

#include <string>

#include "base/result.h"
#include "model/operations/rope.h"

namespace weir::model {

struct CrossAttention {
  int num_heads = 0;
  int head_dim = 0;
  int rows = 0;     // Of the encoder, always so many.
  float scale = 0;  // Multiplies q.k.
};

std::string text(const CrossAttention& a);               // Its part of a line of describe().
Result<void> check(const CrossAttention& a, int layer);  // `layer`: named in the error.
inline const Rope* rope_in(const CrossAttention&) { return nullptr; }

}  // namespace weir::model
