#include "model/layers/latent_indexer.h"

#include <algorithm>

namespace weir::model {

namespace {

using kernels::kPageTokens;

// Tokens that are scored at once: their scores stay in L1.
constexpr int32_t kScored = 1024;
static_assert(kScored % kPageTokens == 0);

int64_t element_bytes(kernels::FloatType type) { return type == kernels::FloatType::kF32 ? 4 : 2; }

}  // namespace

LatentIndexer::LatentIndexer(const LayerSource& source, const LatentAttention& spec, int rope_index)
    : spec_(spec), memory_(source.memory), rope_index_(rope_index) {
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  const Indexer& indexer = spec_.indexer;
  const int32_t width = indexer.heads * indexer.dim;
  wq_ = binder.linear(layer, "self_attn.indexer.wq_b", width, spec_.q_rank);
  wk_ = binder.linear(layer, "self_attn.indexer.wk", indexer.dim, source.hidden);
  weights_ = binder.linear(layer, "self_attn.indexer.weights_proj", indexer.heads, source.hidden);
  norm_ = binder.vector(layer, "self_attn.indexer.k_norm", indexer.dim, 0);
  norm_bias_ = binder.vector(layer, "self_attn.indexer.k_norm.bias", indexer.dim, 0, /*bare=*/true);

  ScratchPlan& scratch = source.scratch;
  const auto rows = [&](int64_t n) {
    return scratch.ask<float>(BufferUse::kComputing, {.per_row = n});
  };
  const auto own = [&](int64_t n) { return BufferSize{.fixed = n, .per_member = true}; };
  queries_ = rows(width);
  keys_ = rows(indexer.dim);
  row_weights_ = rows(indexer.heads);
  chosen_ = scratch.ask<int32_t>(BufferUse::kComputing, {.per_row = indexer.top_k});
  own_queries_ = scratch.ask<float>(BufferUse::kComputing, own(width));
  own_scores_ = scratch.ask<float>(BufferUse::kComputing, own(kScored));
  own_latents_ = scratch.ask<const void*>(BufferUse::kComputing, own(indexer.top_k));
  best_ = scratch.ask<ScoredPosition>(BufferUse::kComputing, own(int64_t{2} * indexer.top_k));
  best_count_ = scratch.ask<int32_t>(BufferUse::kComputing, own(1));
}

const int32_t* LatentIndexer::pages_of(const Pass& pass, int32_t row) const {
  const BatchSlice& slice = pass.batch.slices[static_cast<size_t>(pass.ws.slice[row])];
  return slice.memory.pages(pass.kv.group_of(memory_));
}

void LatentIndexer::turn(const Pass& pass, int32_t row, float* x, int32_t heads) const {
  if (spec_.rope.dim == 0) return;
  const Angles angles = pass.ws.angles[int64_t{rope_index_} * pass.rows() + row];
  pass.ops.rope(x, heads, spec_.indexer.dim, spec_.rope.dim, angles.cos, angles.sin,
                spec_.indexer.layout == Rope::kInterleaved);
}

void LatentIndexer::place(const Pass& pass, int32_t row, const float* latent) const {
  const Indexer& indexer = spec_.indexer;
  float* key = keys_of(pass.ws) + int64_t{row} * indexer.dim;
  pass.ops.layer_norm(key, norm_, norm_bias_, indexer.norm_eps, indexer.dim, key);
  turn(pass, row, key, 1);
  if (pass.kept(row)) return;
  const kernels::KvPages kv = pass.kv.layer(memory_);
  const int32_t page = pass.page_of(memory_, row), slot = pass.ws.position[row] % kPageTokens;
  pass.ops.store_keys(kv, page, slot, 0, 1, key);
  pass.ops.store_values(kv, page, slot, 0, 1, latent);
}

// Few rows are cut into parts, which are searched for as many of the best as a row may choose, and
// then what was found in them.
void LatentIndexer::choose(const Pass& pass, const RowRange& rows) const {
  bool any = false;
  for (int32_t row = rows.begin; row < rows.end && !any; ++row) any = chooses(pass, row);
  if (!any) return;
  const Workspace& ws = pass.ws;
  const int32_t parts = std::max(pass.team.members() / rows.count(), 1);
  claim_blocks(pass, int64_t{rows.count()} * parts, [&](int64_t item) {
    const trace::Scope scope(trace::Kind::kKernel, "index");
    const auto row = static_cast<int32_t>(rows.begin + item / parts);
    if (!chooses(pass, row)) return;
    const int place = parts > 1 ? static_cast<int>(item) : pass.member;
    ScoredPosition* best = ws.at(best_, place);
    const int32_t count = search(pass, row, static_cast<int32_t>(item % parts), parts, best);
    if (parts == 1) return keep(pass, row, best, count);
    *ws.at(best_count_, place) = count;
  });
  pass.team.barrier(pass.member);
  if (parts == 1) return;
  claim_blocks(pass, rows.count(), [&](int64_t item) {
    const auto row = static_cast<int32_t>(rows.begin + item);
    if (!chooses(pass, row)) return;
    const auto first = static_cast<int>(item * parts);
    BestPositions best(ws.at(best_, first), spec_.indexer.top_k, *ws.at(best_count_, first));
    for (int place = first + 1; place < first + parts; ++place)
      std::for_each_n(ws.at(best_, place), *ws.at(best_count_, place),
                      [&](const ScoredPosition& found) { best.offer(found); });
    keep(pass, row, ws.at(best_, first), best.finish());
  });
  pass.team.barrier(pass.member);
}

// Without the factors that all scores have in common, dim^-1/2 and heads^-1/2: which are the best
// does not depend on them.
int32_t LatentIndexer::search(const Pass& pass, int32_t row, int32_t part, int32_t parts,
                              ScoredPosition* best) const {
  const Indexer& indexer = spec_.indexer;
  const int32_t width = indexer.heads * indexer.dim;
  float* queries = pass.ws.at(own_queries_, pass.member);
  std::copy_n(queries_of(pass.ws) + int64_t{row} * width, width, queries);
  turn(pass, row, queries, indexer.heads);

  const kernels::KvPages kv = pass.kv.layer(memory_);
  float* scores = pass.ws.at(own_scores_, pass.member);
  const int32_t tokens = pass.ws.position[row] + 1;
  const int64_t blocks = (tokens + kPageTokens - 1) / kPageTokens;
  const auto begin = static_cast<int32_t>(blocks * part / parts * kPageTokens);
  const auto end =
      static_cast<int32_t>(std::min<int64_t>(blocks * (part + 1) / parts * kPageTokens, tokens));
  BestPositions kept(best, indexer.top_k);
  for (int32_t first = begin; first < end; first += kScored) {
    const int32_t last = std::min(end, first + kScored);
    pass.ops.index_scores({.q = queries,
                           .weights = weights_of(pass.ws) + int64_t{row} * indexer.heads,
                           .heads = indexer.heads,
                           .dim = indexer.dim,
                           .keys = kv.base,
                           .page_bytes = kv.page_bytes,
                           .type = kv.type,
                           .pages = pages_of(pass, row),
                           .begin = first,
                           .end = last,
                           .scores = scores,
                           .scratch = pass.scratch()});
    for (int32_t i = first; i < last; ++i) kept.offer({scores[i - first], i});
  }
  return kept.finish();
}

void LatentIndexer::keep(const Pass& pass, int32_t row, ScoredPosition* best, int32_t count) const {
  int32_t* chosen = pass.ws.at(chosen_) + int64_t{row} * spec_.indexer.top_k;
  std::transform(best, best + count, chosen, [](const auto& found) { return found.position; });
  std::sort(chosen, chosen + count);
}

LatentIndexer::Latents LatentIndexer::latents(const Pass& pass, int32_t row) const {
  const int32_t top_k = spec_.indexer.top_k;
  const kernels::KvPages kv = pass.kv.layer(memory_);
  const int64_t element = element_bytes(kv.type);
  const uint8_t* first = kv.base + spec_.indexer.dim * kPageTokens * element;
  const int32_t* pages = pages_of(pass, row);
  const void** at = pass.ws.at(own_latents_, pass.member);
  const auto latent = [&](int32_t position) {
    return first + pages[position / kPageTokens] * kv.page_bytes +
           position % kPageTokens * spec_.latent_dim() * element;
  };
  if (chooses(pass, row)) {
    const int32_t* chosen = pass.ws.at(chosen_) + int64_t{row} * top_k;
    for (int32_t i = 0; i < top_k; ++i) at[i] = latent(chosen[i]);
    return {at, top_k};
  }
  const int32_t count = pass.ws.position[row] + 1;
  for (int32_t i = 0; i < count; ++i) at[i] = latent(i);
  return {at, count};
}

}  // namespace weir::model
