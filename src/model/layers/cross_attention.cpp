#include "model/layers/cross_attention.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "model/layers/project_columns.h"

namespace weir::model {

namespace {

// Rows of a slice that a claim attends for: each page is read once for all of them.
constexpr int32_t kTileRows = 32;

int32_t tile_rows(const CrossAttention& spec) { return std::min(kTileRows, spec.rows); }

int32_t tiles(const BatchSlice& slice, const CrossAttention& spec) {
  return (slice.rows + tile_rows(spec) - 1) / tile_rows(spec);
}

Activations input(const Pass& pass) {
  return {.x = pass.normed(), .forms = &pass.normed_forms(), .prompt_begin = pass.prompt_begin};
}

}  // namespace

CrossAttentionLayer::CrossAttentionLayer(const LayerSource& source, const CrossAttention& spec,
                                         int32_t index)
    : spec_(spec), memory_(source.memory), index_(index) {
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  const int32_t width = spec_.num_heads * spec_.head_dim;
  q_ = binder.linear(layer, "encoder_attn.q_proj", width, source.hidden, /*bias=*/true);
  k_ = binder.linear(layer, "encoder_attn.k_proj", width, source.hidden);
  v_ = binder.linear(layer, "encoder_attn.v_proj", width, source.hidden, /*bias=*/true);
  input_ =
      SublayerInput::bind(source, static_cast<uint8_t>(q_.forms() | k_.forms() | v_.forms()));
  for (Buffer<float>* const buffer : {&queries_, &keys_, &values_})
    *buffer = source.scratch.ask<float>(BufferUse::kComputing, {.per_row = width});
  out_ = AttendedHeads::bind(source, width, spec_.head_dim, /*bias=*/true, "encoder_attn.out_proj");
}

LayerFacts CrossAttentionLayer::facts() const {
  LayerFacts facts = {.leaves_nothing = out_.leaves_nothing()};
  for (const Linear* weight : {&q_, &out_.weight()}) facts.add(*weight);
  return facts;
}

void CrossAttentionLayer::enter(const Pass& pass, int32_t begin, int32_t end) const {
  input_.enter(pass, begin, end);
}

void CrossAttentionLayer::compute(const Pass& pass, const RowRange& rows,
                                  const kernels::NextWeights& after) const {
  project(pass);
  pass.team.barrier(pass.member);
  attend(pass, rows);
  pass.team.barrier(pass.member);
  if (!pass.batch.weights.empty()) give_weights(pass);
  out_.project(pass, rows, after);
}

void CrossAttentionLayer::leave(const Pass& pass, int32_t begin, int32_t end) const {
  out_.leave(pass, begin, end);
}

ColumnShares<1> CrossAttentionLayer::query_shares(const Pass& pass) const {
  return {pass, {&q_}, 16};
}

kernels::NextWeights CrossAttentionLayer::first_weights(const Pass& pass) const {
  return query_shares(pass).first_weights(pass.member, 0);
}

void CrossAttentionLayer::project(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "qkv_proj");
  project_columns<1>(pass, {&q_}, {pass.ws.at(queries_)}, input(pass), query_shares(pass),
                     out_.first_weights(pass));
}

void CrossAttentionLayer::attend(const Pass& pass, const RowRange& rows) const {
  const trace::Scope scope(trace::Kind::kKernel, "attention");
  const auto first = static_cast<size_t>(pass.ws.slice[rows.begin]);
  const auto last = static_cast<size_t>(pass.ws.slice[rows.end - 1]);
  const std::span slices = pass.batch.slices.subspan(first, last + 1 - first);
  int64_t total = 0;
  for (const BatchSlice& slice : slices) total += int64_t{tiles(slice, spec_)} * spec_.num_heads;
  size_t at = 0;
  int64_t begin = 0;  // Of slice `at`; a member's claims ascend.
  claim_blocks(pass, total, [&](int64_t block) {
    const auto claims = [&] { return int64_t{tiles(slices[at], spec_)} * spec_.num_heads; };
    while (block >= begin + claims()) begin += claims(), ++at;
    const int64_t within = block - begin;
    attend_tile(pass, slices[at], static_cast<int32_t>(within / spec_.num_heads),
                static_cast<int32_t>(within % spec_.num_heads));
  });
}

// All rows see all keys, wherever the tokens stand: to the kernel the keys are a span.
void CrossAttentionLayer::attend_tile(const Pass& pass, const BatchSlice& slice, int32_t tile,
                                      int32_t head) const {
  const int32_t most = tile_rows(spec_), first = tile * most;
  const int32_t rows = std::min(most, slice.rows - first);
  const int32_t row = slice.row_begin + first, column = head * spec_.head_dim;
  pass.ops.attend(pass.kv.cross(memory_),
                  {.q = pass.ws.at(queries_) + int64_t{row} * q_.n + column,
                   .q_stride = q_.n,
                   .out = out_.row(pass, row) + column,
                   .out_stride = out_.width(),
                   .rows = rows,
                   .pages = pass.kv.cross_pages(slice.memory.cross),
                   .kv_head = head,
                   .scale = spec_.scale,
                   .span_end = spec_.rows,
                   .scratch = pass.scratch()});
  out_.finish(pass, row, row + rows, column, spec_.head_dim);
}

void CrossAttentionLayer::give_weights(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "weights");
  claim_blocks(pass, std::ssize(pass.batch.weights), [&](int64_t i) {
    const WantedWeights& wanted = pass.batch.weights[static_cast<size_t>(i)];
    if (wanted.layer == index_) give_weights(pass, wanted);
  });
  pass.team.barrier(pass.member);
}

// In plain loops: few passes want this, and keys are widened once for all rows. Sums ascend in the
// dimension.
void CrossAttentionLayer::give_weights(const Pass& pass, const WantedWeights& wanted) const {
  constexpr int32_t kKeys = kernels::kPageTokens;
  const BatchSlice& slice = pass.batch.slices[static_cast<size_t>(wanted.slice)];
  const kernels::KvPages& kv = pass.kv.cross(memory_);
  const int32_t* const pages = pass.kv.cross_pages(slice.memory.cross);
  auto* const keys = static_cast<float*>(pass.scratch());  // [head_dim][kKeys]
  static_assert(int64_t{1024} * kKeys * int64_t{sizeof(float)} <= kernels::kScratchBytes);
  for (int32_t begin = 0; begin < wanted.keys; begin += kKeys) {
    const int32_t count = std::min(kKeys, wanted.keys - begin);
    pass.ops.widen_row({.n = 1,
                        .k = spec_.head_dim * kKeys,
                        .type = kv.type,
                        .rows = kv.base + pages[begin / kKeys] * kv.page_bytes +
                                wanted.head * kv.head_bytes},
                       0, keys);
    for (int64_t row = 0; row < wanted.rows; ++row) {
      const float* const query = pass.ws.at(queries_) +
                                 (slice.row_begin + wanted.first + row) * q_.n +
                                 wanted.head * spec_.head_dim;
      std::array<float, kKeys> scores{};
      for (int32_t d = 0; d < spec_.head_dim; ++d)
        for (int32_t key = 0; key < kKeys; ++key)
          scores[static_cast<size_t>(key)] += query[d] * keys[d * kKeys + key];
      for (int32_t key = 0; key < count; ++key)
        wanted.weights[row * wanted.keys + begin + key] =
            scores[static_cast<size_t>(key)] * spec_.scale;
    }
  }
  for (int64_t row = 0; row < wanted.rows; ++row) {
    float* const weights = wanted.weights + row * wanted.keys;
    pass.ops.softmax(weights, wanted.keys, weights);
  }
}

void CrossAttentionLayer::remember(const Pass& pass) const {
  claim_rows(pass, pass.all_rows(),
             [&](int32_t begin, int32_t end) { input_.convert(pass, begin, end); });
  pass.team.barrier(pass.member);
  const std::array<const Linear*, 2> weights = {&k_, &v_};
  project_columns<2>(pass, weights, {pass.ws.at(keys_), pass.ws.at(values_)}, input(pass),
                     {pass, weights, 16}, {});
  pass.team.barrier(pass.member);
  const BatchSlice& slice = pass.batch.slices.front();
  const int32_t* const pages = pass.kv.cross_pages(slice.memory.cross);
  claim_rows(pass, pass.all_rows(), [&](int32_t begin, int32_t end) {
    for (int32_t row = begin; row < end; ++row) {
      const int32_t at = slice.first_position + row, slot = at % kernels::kPageTokens;
      const int32_t page = pages[at / kernels::kPageTokens];
      const kernels::KvPages& kv = pass.kv.cross(memory_);
      pass.ops.store_keys(kv, page, slot, 0, spec_.num_heads,
                          pass.ws.at(keys_) + int64_t{row} * k_.n);
      pass.ops.store_values(kv, page, slot, 0, spec_.num_heads,
                            pass.ws.at(values_) + int64_t{row} * v_.n);
    }
  });
  pass.team.barrier(pass.member);
}

}  // namespace weir::model
