#include "model/layers/latent_indexer.h"

namespace weir::model {

namespace {

using kernels::kPageTokens;

}  // namespace

LatentIndexer::LatentIndexer(const LayerSource& source, const LatentAttention& spec, int rope_index)
    : spec_(spec),
      memory_(source.memory),
      search_(source.scratch,
              {.heads = spec.indexer.heads,
               .dim = spec.indexer.dim,
               .top_k = spec.indexer.top_k,
               .rope_dim = spec.rope.dim,
               .interleaved = spec.indexer.layout == Rope::kInterleaved},
              source.memory, rope_index) {
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  const Indexer& indexer = spec_.indexer;
  const int32_t width = indexer.heads * indexer.dim;
  wq_ = binder.linear(layer, "self_attn.indexer.wq_b", width, spec_.q_rank);
  wk_ = binder.linear(layer, "self_attn.indexer.wk", indexer.dim, source.hidden);
  weights_ = binder.linear(layer, "self_attn.indexer.weights_proj", indexer.heads, source.hidden);
  norm_ = binder.vector(layer, "self_attn.indexer.k_norm", indexer.dim, 0);
  norm_bias_ = binder.vector(layer, "self_attn.indexer.k_norm.bias", indexer.dim, 0, /*bare=*/true);

  keys_ = source.scratch.ask<float>(BufferUse::kComputing, {.per_row = indexer.dim});
  own_latents_ = source.scratch.ask<const void*>(BufferUse::kComputing,
                                                 {.fixed = indexer.top_k, .per_member = true});
}

void LatentIndexer::place(const Pass& pass, int32_t row, const float* latent) const {
  const Indexer& indexer = spec_.indexer;
  float* key = keys_of(pass.ws) + int64_t{row} * indexer.dim;
  pass.ops.layer_norm(key, norm_, norm_bias_, indexer.norm_eps, indexer.dim, key);
  search_.turn(pass, row, key, 1);
  if (pass.kept(row)) return;
  const kernels::KvPages kv = pass.kv.layer(memory_);
  const int32_t page = pass.page_of(memory_, row), slot = pass.ws.position[row] % kPageTokens;
  pass.ops.store_keys(kv, page, slot, 0, 1, key);
  pass.ops.store_values(kv, page, slot, 0, 1, latent);
}

LatentIndexer::Latents LatentIndexer::latents(const Pass& pass, int32_t row) const {
  const int32_t top_k = spec_.indexer.top_k;
  const kernels::KvPages kv = pass.kv.layer(memory_);
  const int64_t element = kv::element_bytes(kv.type);
  const uint8_t* first = kv.base + spec_.indexer.dim * kPageTokens * element;
  const int32_t* pages = pass.pages_of(memory_, row);
  const void** at = pass.ws.at(own_latents_, pass.member);
  const auto latent = [&](int32_t position) {
    return first + pages[position / kPageTokens] * kv.page_bytes +
           position % kPageTokens * spec_.latent_dim() * element;
  };
  if (search_.chooses(pass, row)) {
    const int32_t* chosen = search_.chosen(pass, row);
    for (int32_t i = 0; i < top_k; ++i) at[i] = latent(chosen[i]);
    return {at, top_k};
  }
  const int32_t count = search_.seen(pass, row);
  for (int32_t i = 0; i < count; ++i) at[i] = latent(i);
  return {at, count};
}

}  // namespace weir::model
