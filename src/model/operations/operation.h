// Operation: what a sublayer computes. A new kind is a header here, with text(), check() and
// rope_in(), and a name in the variant (docs/families.md).
//
// Threads: plain data.
#pragma once

#include <variant>

#include "model/operations/attention.h"
#include "model/operations/feed_forward.h"
#include "model/operations/gated_delta.h"
#include "model/operations/latent_attention.h"

namespace weir::model {

using Operation = std::variant<Attention, LatentAttention, GatedDelta, Dense, Moe>;

}  // namespace weir::model
