#include "model/layers/latent_indexer.h"

#include <algorithm>
#include <numeric>

namespace weir::model {

namespace {

using kernels::kPageTokens;

int64_t element_bytes(kernels::FloatType type) { return type == kernels::FloatType::kF32 ? 4 : 2; }

// Columns of `dim` rows of pages, side by side: token i of the result is token positions[i].
template <class T>
void gather_page(const kernels::KvPages& from, const int32_t* pages, const int32_t* positions,
                 int32_t count, int32_t dim, std::byte* to) {
  const T* tokens[kPageTokens];
  for (int32_t i = 0; i < count; ++i)
    tokens[i] = reinterpret_cast<const T*>(from.base +
                                           pages[positions[i] / kPageTokens] * from.page_bytes) +
                positions[i] % kPageTokens;
  T* out = reinterpret_cast<T*>(to);
  for (int32_t d = 0; d < dim; ++d)
    for (int32_t i = 0; i < count; ++i)
      out[d * kPageTokens + i] = tokens[i][int64_t{d} * kPageTokens];
}

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
  page_numbers_.resize(static_cast<size_t>((indexer.top_k + kPageTokens - 1) / kPageTokens));
  std::iota(page_numbers_.begin(), page_numbers_.end(), 0);

  ScratchPlan& scratch = source.scratch;
  const auto rows = [&](int64_t n) {
    return scratch.ask<float>(BufferUse::kComputing, {.per_row = n});
  };
  const auto own = [&](int64_t n) {
    return scratch.ask<float>(BufferUse::kComputing, {.fixed = n, .per_member = true});
  };
  queries_ = rows(width);
  keys_ = rows(indexer.dim);
  row_weights_ = rows(indexer.heads);
  chosen_ = scratch.ask<int32_t>(BufferUse::kComputing, {.per_row = indexer.top_k});
  own_queries_ = own(width);
  own_products_ = own(int64_t{indexer.heads} * kPageTokens);
  own_latents_ = own(static_cast<int64_t>(page_numbers_.size()) * kPageTokens * spec_.latent_dim());
  best_ = scratch.ask<ScoredPosition>(BufferUse::kComputing,
                                      {.fixed = int64_t{2} * indexer.top_k, .per_member = true});
  best_count_ = scratch.ask<int32_t>(BufferUse::kComputing, {.fixed = 1, .per_member = true});
}

kernels::KvPages LatentIndexer::key_pages(const Pass& pass) const {
  kernels::KvPages pages = pass.kv.layer(memory_);
  pages.k_dim = spec_.latent_dim();
  pages.v_dim = spec_.indexer.dim;
  pages.values_in_keys = false;
  return pages;
}

void LatentIndexer::turn(const Pass& pass, int32_t row, float* x, int32_t heads) const {
  if (spec_.rope.dim == 0) return;
  const Angles angles = pass.ws.angles[int64_t{rope_index_} * pass.rows() + row];
  pass.ops.rope(x, heads, spec_.indexer.dim, spec_.rope.dim, angles.cos, angles.sin,
                spec_.indexer.layout == Rope::kInterleaved);
}

void LatentIndexer::place_key(const Pass& pass, int32_t row) const {
  const Indexer& indexer = spec_.indexer;
  float* key = keys_of(pass.ws) + int64_t{row} * indexer.dim;
  pass.ops.layer_norm(key, norm_, norm_bias_, indexer.norm_eps, indexer.dim, key);
  turn(pass, row, key, 1);
  if (!pass.kept(row))
    pass.ops.store_values(key_pages(pass), pass.page_of(memory_, row),
                          pass.ws.position[row] % kPageTokens, 0, 1, key);
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

int32_t LatentIndexer::search(const Pass& pass, int32_t row, int32_t part, int32_t parts,
                              ScoredPosition* best) const {
  const Indexer& indexer = spec_.indexer;
  const int32_t width = indexer.heads * indexer.dim;
  float* queries = pass.ws.at(own_queries_, pass.member);
  std::copy_n(queries_of(pass.ws) + int64_t{row} * width, width, queries);
  turn(pass, row, queries, indexer.heads);

  const kernels::KvPages kv = key_pages(pass);
  const int64_t before = spec_.latent_dim() * kPageTokens * element_bytes(kv.type);
  const BatchSlice& slice = pass.batch.slices[static_cast<size_t>(pass.ws.slice[row])];
  const int32_t* pages = slice.memory.pages(pass.kv.group_of(memory_));
  const int32_t tokens = pass.ws.position[row] + 1;
  const int64_t blocks = (tokens + kPageTokens - 1) / kPageTokens;
  const auto end = static_cast<int32_t>(blocks * (part + 1) / parts);
  BestPositions kept(best, indexer.top_k);
  for (auto block = static_cast<int32_t>(blocks * part / parts); block < end; ++block) {
    const int32_t first = block * kPageTokens;
    const kernels::FloatMatrix keys = {.n = std::min(tokens - first, kPageTokens),
                                       .k = indexer.dim,
                                       .type = kv.type,
                                       .rows = kv.base + pages[block] * kv.page_bytes + before};
    float scores[kPageTokens] = {};
    score(pass, row, keys, scores);
    for (int32_t i = 0; i < keys.n; ++i) kept.offer({scores[i], first + i});
  }
  return kept.finish();
}

// Without the factors that all scores have in common, dim^-1/2 and heads^-1/2: which are the best
// does not depend on them.
void LatentIndexer::score(const Pass& pass, int32_t row, const kernels::FloatMatrix& keys,
                          float* scores) const {
  const Indexer& indexer = spec_.indexer;
  float* products = pass.ws.at(own_products_, pass.member);
  pass.ops.gemm_float_f32(keys, pass.ws.at(own_queries_, pass.member), indexer.dim,
                          {.rows = indexer.heads, .end = keys.n, .y = products, .y_stride = keys.n},
                          pass.scratch());
  pass.ops.act(kernels::Act::kRelu, indexer.heads * keys.n, products);
  const float* weights = weights_of(pass.ws) + int64_t{row} * indexer.heads;
  for (int32_t head = 0; head < indexer.heads; ++head)
    pass.ops.add_scaled(products + head * keys.n, weights[head], keys.n, scores);
}

void LatentIndexer::keep(const Pass& pass, int32_t row, ScoredPosition* best, int32_t count) const {
  int32_t* chosen = pass.ws.at(chosen_) + int64_t{row} * spec_.indexer.top_k;
  std::transform(best, best + count, chosen, [](const auto& found) { return found.position; });
  std::sort(chosen, chosen + count);
}

LatentIndexer::Gathered LatentIndexer::gather(const Pass& pass, int32_t row) const {
  const int32_t top_k = spec_.indexer.top_k, dim = spec_.latent_dim();
  const kernels::KvPages from = pass.kv.layer(memory_);
  const BatchSlice& slice = pass.batch.slices[static_cast<size_t>(pass.ws.slice[row])];
  const int32_t* pages = slice.memory.pages(pass.kv.group_of(memory_));
  const int32_t* chosen = pass.ws.at(chosen_) + int64_t{row} * top_k;
  auto* to = reinterpret_cast<std::byte*>(pass.ws.at(own_latents_, pass.member));
  const int64_t page_bytes = dim * kPageTokens * element_bytes(from.type);
  const auto page =
      from.type == kernels::FloatType::kF32 ? gather_page<uint32_t> : gather_page<uint16_t>;
  for (int32_t first = 0; first < top_k; first += kPageTokens)
    page(from, pages, chosen + first, std::min(top_k - first, kPageTokens), dim,
         to + first / kPageTokens * page_bytes);
  return {.latents = {.base = reinterpret_cast<uint8_t*>(to),
                      .page_bytes = page_bytes,
                      .head_bytes = page_bytes,
                      .kv_heads = 1,
                      .k_dim = dim,
                      .v_dim = spec_.kv_rank,
                      .type = from.type,
                      .values_in_keys = true},
          .pages = page_numbers_.data(),
          .last = top_k - 1};
}

}  // namespace weir::model
