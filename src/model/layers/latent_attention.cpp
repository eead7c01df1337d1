#include "model/layers/latent_attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/layers/project_columns.h"

namespace weir::model {

namespace {

// Queries of a claim: as many as share one widening of the keys (simd/attend_tile.h).
constexpr int32_t kClaimQueries = 192;
// Heads of a claim. Each claim widens all keys that it sees, which takes about as many instructions
// as six heads of one row; more heads leave members of the team without work.
constexpr int32_t kHeadsLeast = 4, kHeadsMost = 16;

}  // namespace

LatentAttentionLayer::LatentAttentionLayer(const LayerSource& source, const LatentAttention& spec,
                                           int rope_index)
    : spec_(spec), memory_(source.memory), rope_index_(rope_index) {
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  const int32_t q_width = spec_.num_heads * spec_.q_dim();
  if (spec_.q_rank > 0) {
    q_a_ = binder.linear(layer, "self_attn.q_a_proj", spec_.q_rank, source.hidden, spec_.bias);
    q_norm_ = binder.vector(layer, "self_attn.q_a_layernorm", spec_.q_rank, 0);
    q_ = binder.linear(layer, "self_attn.q_b_proj", q_width, spec_.q_rank);
  } else {
    q_ = binder.linear(layer, "self_attn.q_proj", q_width, source.hidden);
  }
  kv_a_ = binder.linear(layer, "self_attn.kv_a_proj_with_mqa", spec_.latent_dim(), source.hidden,
                        spec_.bias);
  kv_norm_ = binder.vector(layer, "self_attn.kv_a_layernorm", spec_.kv_rank, 0);
  heads_ = binder.split_heads(layer,
                              {"self_attn.kv_b_proj", "self_attn.embed_q", "self_attn.unembed_out"},
                              spec_.num_heads, spec_.nope_dim, spec_.v_head_dim, spec_.kv_rank);
  if (spec_.indexer.heads > 0) indexer_.emplace(source, spec_, rope_index);
  int input_forms = first_of_queries().forms() | kv_a_.forms();
  q_latent_forms_ = q_.forms();
  if (indexer_) {
    input_forms |= indexer_->keys().forms() | indexer_->weights().forms();
    q_latent_forms_ = static_cast<uint8_t>(q_.forms() | indexer_->queries().forms());
  }
  input_ = SublayerInput::bind(source, static_cast<uint8_t>(input_forms));

  ScratchPlan& scratch = source.scratch;
  if (spec_.q_rank > 0) {
    q_latents_ = scratch.ask<float>(BufferUse::kComputing, {.per_row = spec_.q_rank});
    q_forms_ = scratch.ask_forms(spec_.q_rank, 1, q_latent_forms_);
  }
  queries_ = scratch.ask<float>(BufferUse::kComputing, {.per_row = q_width});
  latents_ = scratch.ask<float>(BufferUse::kComputing, {.per_row = spec_.latent_dim()});
  own_queries_ = scratch.ask<float>(
      BufferUse::kComputing,
      {.fixed = int64_t{kClaimQueries} * spec_.latent_dim(), .per_member = true});
  own_attended_ = scratch.ask<float>(
      BufferUse::kComputing, {.fixed = int64_t{kClaimQueries} * spec_.kv_rank, .per_member = true});
  out_ =
      AttendedHeads::bind(source, spec_.num_heads * spec_.v_head_dim, spec_.v_head_dim, spec_.bias);
}

LayerFacts LatentAttentionLayer::facts() const {
  LayerFacts facts = {.leaves_nothing = out_.leaves_nothing(), .takes_groups = true};
  for (const Linear* weight : {&q_a_, &q_, &kv_a_, &out_.weight()}) facts.add(*weight);
  if (indexer_)
    for (const Linear* weight : indexer_->all()) facts.add(*weight);
  for (const SplitHead& head : heads_)
    for (const Linear* weight : {&head.turned, &head.plain}) facts.add(*weight);
  return facts;
}

void LatentAttentionLayer::enter(const Pass& pass, int32_t begin, int32_t end) const {
  input_.enter(pass, begin, end);
}

// What all rows leave in the cache, and their queries: what a row attends to may be in its own
// step.
void LatentAttentionLayer::project_all(const Pass& pass) const {
  project(pass);
  pass.team.barrier(pass.member);
  claim_rows(pass, pass.all_rows(), [&](int32_t begin, int32_t end) {
    const trace::Scope scope(trace::Kind::kKernel, "rope");
    for (int32_t row = begin; row < end; ++row) place(pass, row);
    if (spec_.q_rank > 0)
      pass.ws.at(q_forms_).convert(
          pass.ops, q_latent_forms_, pass.ws.at(q_latents_) + int64_t{begin} * q_.k, q_.k,
          {.k = q_.k, .begin = begin, .end = end, .columns = q_.k}, pass.prompt_begin);
  });
  pass.team.barrier(pass.member);
  if (spec_.q_rank == 0) return;
  project_queries(pass);
  pass.team.barrier(pass.member);
}

void LatentAttentionLayer::compute(const Pass& pass, const RowRange& rows,
                                   const kernels::NextWeights& after) const {
  if (rows.begin == 0) project_all(pass);
  if (indexer_) indexer_->choose(pass, rows);
  const Cut cut = this->cut(pass, rows);
  // From the last rows to the first: those of a prompt that see most keys come first.
  claim_blocks(pass, cut.claims, [&](int64_t block) {
    const int64_t item = cut.claims - 1 - block;
    const auto row = static_cast<int32_t>(item / cut.head_blocks) * cut.rows + rows.begin;
    const auto head = static_cast<int32_t>(item % cut.head_blocks) * cut.heads;
    const Claim claim = {.rows = {row, std::min(row + cut.rows, rows.end)},
                         .first = head,
                         .last = std::min(head + cut.heads, spec_.num_heads)};
    absorb_queries(pass, claim);
    attend(pass, claim);
    expand_values(pass, claim);
  });
  pass.team.barrier(pass.member);
  out_.project(pass, rows, after);
}

void LatentAttentionLayer::leave(const Pass& pass, int32_t begin, int32_t end) const {
  out_.leave(pass, begin, end);
}

LatentAttentionLayer::Cut LatentAttentionLayer::cut(const Pass& pass, const RowRange& rows) const {
  const int32_t members = pass.team.members();
  int32_t heads =
      std::min(std::clamp(spec_.num_heads / members, kHeadsLeast, kHeadsMost), spec_.num_heads);
  // A claim gathers what a row has chosen: rows enough, and each is gathered once.
  if (indexer_ && rows.count() >= 2 * members) heads = std::min(spec_.num_heads, kClaimQueries);
  const int64_t blocks = (spec_.num_heads + heads - 1) / heads;
  const auto most = static_cast<int32_t>(rows.count() * blocks / (2 * members));
  const int32_t some = std::clamp(most, 1, kClaimQueries / heads);
  return {.rows = some,
          .heads = heads,
          .head_blocks = blocks,
          .claims = (rows.count() + some - 1) / some * blocks};
}

kernels::NextWeights LatentAttentionLayer::first_weights(const Pass& pass) const {
  if (indexer_)
    return ColumnShares<4>(pass, {&q_a_, &kv_a_, &indexer_->keys(), &indexer_->weights()}, 16)
        .first_weights(pass.member, 0);
  return ColumnShares<2>(pass, {&first_of_queries(), &kv_a_}, 16).first_weights(pass.member, 0);
}

void LatentAttentionLayer::project(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "qkv_proj");
  const Workspace& ws = pass.ws;
  const Activations in = {
      .x = pass.normed(), .forms = &pass.normed_forms(), .prompt_begin = pass.prompt_begin};
  float* queries = ws.at(spec_.q_rank > 0 ? q_latents_ : queries_);
  if (indexer_) {
    const std::array<const Linear*, 4> weights = {&q_a_, &kv_a_, &indexer_->keys(),
                                                  &indexer_->weights()};
    project_columns<4>(
        pass, weights, {queries, ws.at(latents_), indexer_->keys_of(ws), indexer_->weights_of(ws)},
        in, {pass, weights, 16},
        ColumnShares<2>(pass, {&q_, &indexer_->queries()}, 16).first_weights(pass.member, 0));
    return;
  }
  const kernels::NextWeights after =
      spec_.q_rank > 0 ? ColumnShares<1>(pass, {&q_}, 16).first_weights(pass.member, 0)
                       : out_.first_weights(pass);
  project_columns<2>(pass, {&first_of_queries(), &kv_a_}, {queries, ws.at(latents_)}, in,
                     {pass, {&first_of_queries(), &kv_a_}, 16}, after);
}

void LatentAttentionLayer::project_queries(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "q_proj");
  const Workspace& ws = pass.ws;
  const Activations in = {
      .x = ws.at(q_latents_), .forms = &ws.at(q_forms_), .prompt_begin = pass.prompt_begin};
  if (indexer_) {
    const std::array<const Linear*, 2> weights = {&q_, &indexer_->queries()};
    project_columns<2>(pass, weights, {ws.at(queries_), indexer_->queries_of(ws)}, in,
                       {pass, weights, 16}, out_.first_weights(pass));
    return;
  }
  project_columns<1>(pass, {&q_}, {ws.at(queries_)}, in, {pass, {&q_}, 16},
                     out_.first_weights(pass));
}

// The norms of a row's latents, the shared key's rope, and what the cache keeps of them.
void LatentAttentionLayer::place(const Pass& pass, int32_t row) const {
  const Workspace& ws = pass.ws;
  if (spec_.q_rank > 0) {
    float* q = ws.at(q_latents_) + int64_t{row} * spec_.q_rank;
    pass.ops.rms_norm(q, q_norm_, spec_.norm_eps, spec_.q_rank, q);
  }
  float* latent = ws.at(latents_) + int64_t{row} * spec_.latent_dim();
  pass.ops.rms_norm(latent, kv_norm_, spec_.norm_eps, spec_.kv_rank, latent);
  if (spec_.latent_scale != 1) pass.ops.scale(spec_.latent_scale, spec_.kv_rank, latent);
  turn(pass, row, latent + spec_.kv_rank);
  if (indexer_) return indexer_->place(pass, row, latent);
  if (!pass.kept(row))
    pass.ops.store_keys(latents(pass), pass.page_of(memory_, row),
                        ws.position[row] % kernels::kPageTokens, 0, 1, latent);
}

// Of an indexer's pages only what their latents are.
kernels::KvPages LatentAttentionLayer::latents(const Pass& pass) const {
  kernels::KvPages pages = pass.kv.layer(memory_);
  pages.k_dim = spec_.latent_dim();
  pages.v_dim = spec_.kv_rank;
  pages.values_in_keys = true;
  return pages;
}

void LatentAttentionLayer::turn(const Pass& pass, int32_t row, float* x) const {
  const Rope& rope = spec_.rope;
  if (rope.dim == 0) return;
  const Angles angles = pass.ws.angles[int64_t{rope_index_} * pass.rows() + row];
  pass.ops.rope(x, 1, spec_.rope_dim, rope.dim, angles.cos, angles.sin,
                rope.layout == Rope::kInterleaved);
}

float LatentAttentionLayer::position_factor(int32_t position) const {
  const int32_t steps = position / spec_.position_step;
  return 1 + spec_.position_beta * std::log1p(static_cast<float>(steps));
}

// Queries in the latent's space, and after them the part that is rotated.
void LatentAttentionLayer::absorb_queries(const Pass& pass, const Claim& claim) const {
  const trace::Scope scope(trace::Kind::kKernel, "absorb");
  const Workspace& ws = pass.ws;
  const int64_t stride = int64_t{claim.heads()} * spec_.latent_dim();
  for (int32_t h = claim.first; h < claim.last; ++h) {
    const float* q = ws.at(queries_) + int64_t{claim.rows.begin} * q_.n + h * spec_.q_dim();
    float* out = ws.at(own_queries_, pass.member) + (h - claim.first) * spec_.latent_dim();
    multiply_floats(
        pass.ops, heads_[static_cast<size_t>(h)].turned, q, q_.n,
        {.rows = claim.rows.count(), .end = spec_.kv_rank, .y = out, .y_stride = stride},
        pass.scratch());
    for (int32_t r = 0; r < claim.rows.count(); ++r) {
      float* rotated = out + r * stride + spec_.kv_rank;
      std::copy_n(q + int64_t{r} * q_.n + spec_.nope_dim, spec_.rope_dim, rotated);
      turn(pass, claim.rows.begin + r, rotated);
      if (spec_.position_beta != 0)
        pass.ops.scale(position_factor(ws.position[claim.rows.begin + r]), spec_.latent_dim(),
                       out + r * stride);
    }
  }
}

// Slice by slice; of rows that choose what they attend to, each by itself.
void LatentAttentionLayer::attend(const Pass& pass, const Claim& claim) const {
  const trace::Scope scope(trace::Kind::kKernel, "attention");
  const Workspace& ws = pass.ws;
  int32_t row = claim.rows.begin;
  while (row < claim.rows.end) {
    const BatchSlice& slice = pass.batch.slices[static_cast<size_t>(ws.slice[row])];
    int32_t end = std::min(claim.rows.end, slice.row_begin + slice.rows);
    if (!indexer_) {
      attend(pass, claim, {row, end},
             {.pages = slice.memory.pages(pass.kv.group_of(memory_)),
              .first_position = ws.position[row],
              .span_begin = slice.mask.begin,
              .span_end = slice.mask.end,
              .first_key = slice.first_key});
    } else {
      if (indexer_->chooses(pass, end - 1))
        end = std::max(row + 1, row + spec_.indexer.top_k - ws.position[row]);
      const LatentIndexer::Latents seen = indexer_->latents(pass, end - 1);
      attend(pass, claim, {row, end},
             {.keys = seen.at, .first_position = seen.count - (end - row)});
    }
    row = end;
  }
}

void LatentAttentionLayer::attend(const Pass& pass, const Claim& claim, const RowRange& rows,
                                  const Seen& seen) const {
  const int64_t q_stride = int64_t{claim.heads()} * spec_.latent_dim();
  const int64_t out_stride = int64_t{claim.heads()} * spec_.kv_rank;
  const int32_t done = rows.begin - claim.rows.begin;
  // Where values are in keys, prompts are attended to like other rows.
  pass.ops.attend(latents(pass), {.q = pass.ws.at(own_queries_, pass.member) + done * q_stride,
                                  .q_stride = q_stride,
                                  .out = pass.ws.at(own_attended_, pass.member) + done * out_stride,
                                  .out_stride = out_stride,
                                  .rows = rows.count(),
                                  .first_position = seen.first_position,
                                  .pages = seen.pages,
                                  .keys = seen.keys,
                                  .group = claim.heads(),
                                  .scale = spec_.scale,
                                  .span_begin = seen.span_begin,
                                  .span_end = seen.span_end,
                                  .first_key = seen.first_key,
                                  .scratch = pass.scratch()});
}

void LatentAttentionLayer::expand_values(const Pass& pass, const Claim& claim) const {
  const trace::Scope scope(trace::Kind::kKernel, "expand");
  const int64_t stride = int64_t{claim.heads()} * spec_.kv_rank;
  for (int32_t h = claim.first; h < claim.last; ++h) {
    const float* attended =
        pass.ws.at(own_attended_, pass.member) + (h - claim.first) * spec_.kv_rank;
    float* out = out_.row(pass, claim.rows.begin) + h * spec_.v_head_dim;
    multiply_floats(
        pass.ops, heads_[static_cast<size_t>(h)].plain, attended, stride,
        {.rows = claim.rows.count(), .end = spec_.v_head_dim, .y = out, .y_stride = out_.width()},
        pass.scratch());
  }
  out_.finish(pass, claim.rows.begin, claim.rows.end, claim.first * spec_.v_head_dim,
              claim.heads() * spec_.v_head_dim);
}

}  // namespace weir::model
