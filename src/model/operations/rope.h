// Rope: rotary position embedding, as data (model/rope.h has its tables).
//
// Threads: plain data and free functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace weir::model {

// Rotary embedding. Frequencies of pair i of d: theta^(-2i/d).
struct Rope {
  enum Layout : uint8_t { kHalf, kInterleaved } layout = kHalf;
  enum Scaling : uint8_t { kNone, kLinear, kDynamic, kLlama3, kYarn, kLongRope } scaling = kNone;
  float theta = 10000;
  int dim = 0;  // Rotated dimensions of a head; 0 means this layer has no position encoding.
  int still_pairs = 0;  // The last ones of dim / 2, whose angle is always 0.
  float factor = 1;
  float original_context = 0;  // original_max_position_embeddings, or max_position_embeddings.
  float low_freq_factor = 1, high_freq_factor = 4;  // llama3.
  float beta_fast = 32, beta_slow = 1;              // yarn.
  bool truncate = true;                             // yarn: floor and ceil the ramp.
  bool backward = false;                            // Turns the other way.
  float attention_factor = 1;                       // On cos and sin: yarn, longrope.
  float long_attention_factor = 0;                  // longrope, of long sequences; 0: the same.
  // Where positions are three numbers (RopePosition): how many pairs turn by the first, by the
  // second and by the third of them. All 0: positions are one number.
  std::array<int, 3> sections{};
  bool sections_interleaved = false;  // Not blocks: pairs take turns, as long as a section lasts.
  std::vector<float> short_factor{}, long_factor{};  // longrope: [dim / 2].

  // LongRoPE whose factors are the same for short and long texts only divides frequencies.
  bool length_dependent() const {
    return scaling == kDynamic ||
           (scaling == kLongRope && (short_factor != long_factor || long_attention_factor != 0));
  }
  bool operator==(const Rope&) const = default;
};

// Which of three numbers pair i turns by.
size_t axis_of(const Rope& r, int i);

std::string text(const Rope& r);
Result<void> check(const Rope& r, int layer);

}  // namespace weir::model
