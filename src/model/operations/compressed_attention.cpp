#include "model/operations/compressed_attention.h"

#include "kernels/ops.h"
#include "model/operations/check_sizes.h"
#include "model/operations/describe_sizes.h"

namespace weir::model {

namespace {

// Scores are made of pages that hold a power of two of keys (kernels::IndexScores).
Result<void> check_indexer(const CompressedAttention& a, int layer) {
  if (a.index_heads == 0) return {};
  WEIR_TRY(check_index(layer, {a.index_heads, a.index_dim, a.top_k, a.rope.dim}));
  if (a.ratio < 1 || kernels::kPageTokens % a.ratio != 0)
    return wrong(layer,
                 "expected blocks that an indexer chooses to be of 1, 2, 4, 8, 16 or 32 "
                 "tokens (compress_ratios), found " +
                     std::to_string(a.ratio));
  return {};
}

}  // namespace

std::string text(const CompressedAttention& a) {
  std::string s = format("compressed %dx%d queries by %d", a.num_heads, a.head_dim, a.q_rank);
  s += format(" window %d", a.window) + text(a.rope) + " scale " + number(a.scale);
  if (a.ratio > 0) s += format(" blocks of %d", a.ratio);
  if (a.overlaps) s += " and the one before";
  if (a.index_heads > 0) s += format(" the best %d by %dx%d", a.top_k, a.index_heads, a.index_dim);
  return s + format(" sinks out by %dx%d", a.out_groups, a.out_rank);
}

Result<void> check(const CompressedAttention& a, int layer) {
  constexpr int kHeadsMax = 1024, kRankMax = 1 << 16, kWindowMax = 1 << 20;
  // 32 times the most published: what a block is made of lies in pages of a window.
  constexpr int kRatioMax = 4096;
  WEIR_TRY(check_size(layer, "num_attention_heads", a.num_heads, 1, kHeadsMax));
  WEIR_TRY(check_size(layer, "head_dim", a.head_dim, 1, kernels::kValuesInKeysMax));
  WEIR_TRY(check_size(layer, "q_lora_rank", a.q_rank, 1, kRankMax));
  WEIR_TRY(check_size(layer, "sliding_window", a.window, 1, kWindowMax));
  WEIR_TRY(check_size(layer, "the tokens of a block (compress_ratios, compress_rate_hca)", a.ratio,
                      0, kRatioMax));
  if (a.rope.dim < 0 || a.rope.dim > a.head_dim || a.rope.dim % 2 != 0)
    return wrong(layer, "expected an even number of rotary dimensions up to " +
                            std::to_string(a.head_dim) + " (qk_rope_head_dim), found " +
                            std::to_string(a.rope.dim));
  if (a.rope.length_dependent())
    return wrong(layer,
                 "expected rope that does not depend on the length, because blocks are "
                 "made while a text grows (rope_scaling)");
  WEIR_TRY(check(a.rope, layer));
  WEIR_TRY(check_size(layer, "o_groups", a.out_groups, 1, a.num_heads));
  if (a.num_heads % a.out_groups != 0)
    return wrong(layer, "expected o_groups to divide num_attention_heads, " +
                            std::to_string(a.num_heads) + ", found " +
                            std::to_string(a.out_groups));
  WEIR_TRY(check_size(layer, "o_lora_rank", a.out_rank, 1, kRankMax));
  WEIR_TRY(check_size(layer, "o_groups * o_lora_rank", a.out_groups * a.out_rank, 1,
                      kernels::kMaxLayerK));
  WEIR_TRY(check_size(layer, "num_attention_heads * head_dim / o_groups",
                      a.num_heads / a.out_groups * a.head_dim, 1, kernels::kMaxLayerK));
  WEIR_TRY(check_indexer(a, layer));
  if ((a.overlaps || a.index_heads > 0) && a.ratio == 0)
    return wrong(layer, "expected blocks of some tokens (compress_ratios), found none");
  WEIR_TRY(check_not_negative(layer, {{"rms_norm_eps", a.norm_eps}}));
  return check_positive(layer, {{"head_dim", a.scale}});
}

}  // namespace weir::model
