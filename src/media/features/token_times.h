// When each token of a transcript was said: from how much it attends to each row of the encoder
// (sched/heard_sound.h), by dynamic time warping. What Whisper's reference does: weights of each head
// are normalised over the tokens, smoothed along time by a median filter, averaged over the heads; the
// path through tokens and rows that gathers most of them says which rows are a token's.
//
// Threads: a pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weir::media {

struct AttendedRows {
  std::span<const float> weights{};  // [heads][tokens][rows]
  int32_t heads = 0;
  int32_t tokens = 0;
  int32_t rows = 0;
  // Those whose times are wanted, [begin, end): of a whole prompt from <|notimestamps|> on, without
  // <|endoftext|>. Others count for the normalisation only.
  int32_t begin = 0;
  int32_t end = 0;
  int32_t median_width = 7;  // Of the filter, in rows; odd.
};

// Of each token in [begin, end) the row at which the next token begins: it is attended to as the next
// one is computed. A row is 20 ms. REQUIRES: the sizes are those of the weights, all above 0, and the
// weights are finite; 0 <= begin < end <= tokens.
std::vector<int32_t> token_times(const AttendedRows& attended);

}  // namespace weir::media
