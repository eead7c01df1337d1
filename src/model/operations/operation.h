// Operation: what a sublayer computes. A new kind is a header here, with text(), check() and
// rope_in(), and a name in the variant (docs/families.md).
//
// Threads: plain data.
#pragma once

#include <variant>

#include "model/operations/attention.h"
#include "model/operations/compressed_attention.h"
#include "model/operations/cross_attention.h"
#include "model/operations/feed_forward.h"
#include "model/operations/gated_delta.h"
#include "model/operations/latent_attention.h"
#include "model/operations/lightning.h"
#include "model/operations/mamba1.h"
#include "model/operations/mamba2.h"
#include "model/operations/short_conv.h"

namespace weir::model {

using Operation = std::variant<Attention, LatentAttention, CompressedAttention, CrossAttention,
                               GatedDelta, Lightning, Mamba1, Mamba2, ShortConv, Dense, Moe>;

}  // namespace weir::model
