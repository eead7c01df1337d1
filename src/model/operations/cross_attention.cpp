#include "model/operations/cross_attention.h"

#include "model/operations/check_sizes.h"
#include "model/operations/describe_sizes.h"

namespace weir::model {

namespace {

constexpr int kRowsMax = 1 << 16;  // Twenty minutes of Whisper's 50 rows a second.

}  // namespace

std::string text(const CrossAttention& a) {
  return format("cross %dx%d to %d rows", a.num_heads, a.head_dim, a.rows) + " scale " +
         number(a.scale);
}

Result<void> check(const CrossAttention& a, int layer) {
  WEIR_TRY(check_size(layer, "decoder_attention_heads", a.num_heads, 1, 1 << 20));
  WEIR_TRY(check_size(layer, "d_model / decoder_attention_heads", a.head_dim, 1, 1024));
  WEIR_TRY(check_size(layer, "max_source_positions", a.rows, 1, kRowsMax));
  return check_positive(layer, {{"1 / sqrt(d_model / decoder_attention_heads)", a.scale}});
}

}  // namespace weir::model
