#include "model/layers/compressed_attention.h"

#include <algorithm>
#include <array>
#include <span>

#include "model/layers/project_columns.h"

namespace weir::model {

namespace {

using kernels::kPageTokens;

// Heads of a claim: each claim widens all keys that its row sees, which takes about as many
// instructions as six heads; more heads leave members of the team without work.
constexpr int32_t kHeadsLeast = 4, kHeadsMost = 16;

BlockKeys::Shape block_shape(const CompressedAttention& spec) {
  return {.dim = spec.head_dim,
          .ratio = spec.ratio,
          .blocks = spec.key_blocks(),
          .norm_eps = spec.norm_eps};
}

BlockKeys::Shape index_shape(const CompressedAttention& spec) {
  BlockKeys::Shape shape = block_shape(spec);
  shape.dim = spec.index_dim;
  shape.transposed = true;
  return shape;
}

}  // namespace

std::vector<kv::MemoryNeed> CompressedAttentionLayer::needs(const CompressedAttention& spec) {
  std::vector<kv::MemoryNeed> all = {kv::PagedNeed{.heads = 1,
                                                   .k_dim = spec.head_dim,
                                                   .v_dim = spec.head_dim,
                                                   .window = spec.window,
                                                   .values_in_keys = true}};
  const auto add = [&](const BlockKeys::Shape& shape) {
    all.push_back(shape.tokens_need());
    all.push_back(shape.keys_need());
  };
  if (spec.ratio > 0) add(block_shape(spec));
  if (spec.index_heads > 0) add(index_shape(spec));
  return all;
}

CompressedAttentionLayer::CompressedAttentionLayer(const LayerSource& source,
                                                   const CompressedAttention& spec,
                                                   const std::vector<RopeTable>& ropes,
                                                   int rope_index, int32_t context_max)
    : spec_(spec),
      memory_(source.memory),
      rope_index_(rope_index),
      output_(SublayerOutput::bind(source)) {
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  const int32_t width = spec_.num_heads * spec_.head_dim;
  q_a_ = binder.linear(layer, "self_attn.q_a_proj", spec_.q_rank, source.hidden);
  q_norm_ = binder.vector(layer, "self_attn.q_a_norm", spec_.q_rank, 0);
  q_b_ = binder.linear(layer, "self_attn.q_b_proj", width, spec_.q_rank);
  kv_ = binder.linear(layer, "self_attn.kv_proj", spec_.head_dim, source.hidden);
  kv_norm_ = binder.vector(layer, "self_attn.kv_norm", spec_.head_dim, 0);
  sinks_ = binder.vector(layer, "self_attn.sinks", spec_.num_heads, 0, /*bare=*/true);
  out_a_ = binder.row_blocks(layer, "self_attn.o_a_proj", spec_.out_groups, spec_.out_rank,
                             group_width());
  const int32_t joined = spec_.out_groups * spec_.out_rank;
  out_b_ = binder.linear(layer, "self_attn.o_b_proj", source.hidden, joined);
  if (spec_.ratio > 0)
    blocks_.emplace(source, "self_attn.compressor", block_shape(spec_), memory_ + 1, ropes,
                    rope_index);
  if (spec_.index_heads > 0) bind_indexer(source, ropes);
  uint8_t input_forms = 0;
  const std::array<const Linear*, 7> inputs = input_weights();
  for (const Linear* weight : std::span(inputs).first(input_count()))
    input_forms |= weight->forms();
  input_ = SublayerInput::bind(source, input_forms);
  q_latent_forms_ = q_b_.forms();
  if (chooser_) q_latent_forms_ |= chooser_->queries.forms();
  for (const Linear& group : out_a_) out_a_forms_ |= group.forms();

  ScratchPlan& scratch = source.scratch;
  const auto rows = [&](int64_t n) {
    return scratch.ask<float>(BufferUse::kComputing, {.per_row = n});
  };
  q_latents_ = rows(spec_.q_rank);
  q_forms_ = scratch.ask_forms(spec_.q_rank, 1, q_latent_forms_);
  queries_ = rows(width);
  keys_ = rows(spec_.head_dim);
  attended_ = rows(width);
  attended_forms_ = scratch.ask_forms(group_width(), spec_.out_groups, out_a_forms_);
  group_rows_ = scratch.ask<int32_t>(BufferUse::kComputing, {.per_row = spec_.out_groups});
  joined_ = rows(joined);
  joined_forms_ = scratch.ask_forms(joined, 1, out_b_.forms());
  const int32_t blocks = spec_.ratio > 0 ? context_max / spec_.ratio : 0;
  const int32_t most = chooser_ ? std::min(blocks, spec_.top_k) : blocks;
  own_keys_ = scratch.ask<const void*>(BufferUse::kComputing,
                                       {.fixed = int64_t{most} + spec_.window, .per_member = true});
  own_sin_ = scratch.ask<float>(BufferUse::kComputing,
                                {.fixed = spec_.rope.dim / 2 + 1, .per_member = true});
}

void CompressedAttentionLayer::bind_indexer(const LayerSource& source,
                                            const std::vector<RopeTable>& ropes) {
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  const std::string module = "self_attn.compressor.indexer";
  const int32_t dim = spec_.index_dim, rope_dim = spec_.rope.dim;
  BlockKeys keys(source, module, index_shape(spec_), blocks_->memory() + 1, ropes, rope_index_);
  const IndexSearch search(source.scratch,
                           {.heads = spec_.index_heads,
                            .dim = dim,
                            .top_k = spec_.top_k,
                            .tokens_per_key = spec_.ratio,
                            .rope_first = dim - rope_dim,
                            .rope_dim = rope_dim,
                            .interleaved = spec_.rope.layout == Rope::kInterleaved},
                           keys.memory(), rope_index_);
  const Linear queries =
      binder.linear(layer, module + ".q_b_proj", spec_.index_heads * dim, spec_.q_rank);
  const Linear weights =
      binder.linear(layer, module + ".scorer.weights_proj", spec_.index_heads, source.hidden);
  chooser_.emplace(Chooser{keys, search, queries, weights});
}

std::array<const Linear*, 7> CompressedAttentionLayer::input_weights() const {
  std::array<const Linear*, 7> all = {&q_a_, &kv_};
  if (blocks_) all[2] = &blocks_->inputs(), all[3] = &blocks_->gates();
  if (chooser_)
    all[4] = &chooser_->keys.inputs(), all[5] = &chooser_->keys.gates(),
    all[6] = &chooser_->weights;
  return all;
}

LayerFacts CompressedAttentionLayer::facts() const {
  LayerFacts facts = {.leaves_nothing = output_.adds_columns()};
  const std::array<const Linear*, 7> inputs = input_weights();
  for (const Linear* weight : std::span(inputs).first(input_count())) facts.add(*weight);
  facts.add(q_b_);
  if (chooser_) facts.add(chooser_->queries);
  for (const Linear& group : out_a_) facts.add(group);
  facts.add(out_b_);
  return facts;
}

void CompressedAttentionLayer::enter(const Pass& pass, int32_t begin, int32_t end) const {
  input_.enter(pass, begin, end);
}

void CompressedAttentionLayer::leave(const Pass& pass, int32_t begin, int32_t end) const {
  if (!output_.adds_columns()) output_.add_rows(pass, begin, end);
}

// What a row attends to may be in its own step, so all rows leave what they leave before any
// attends.
void CompressedAttentionLayer::compute(const Pass& pass, const RowRange& rows,
                                       const kernels::NextWeights& after) const {
  chooser_ ? project<7>(pass) : blocks_ ? project<4>(pass) : project<2>(pass);
  pass.team.barrier(pass.member);
  claim_rows(pass, pass.all_rows(), [&](int32_t begin, int32_t end) { place(pass, begin, end); });
  pass.team.barrier(pass.member);
  if (blocks_) complete_blocks(pass);
  project_queries(pass);
  pass.team.barrier(pass.member);
  if (chooser_) chooser_->search.choose(pass, pass.all_rows());
  attend_all(pass);
  project_groups(pass);
  const trace::Scope scope(trace::Kind::kKernel, "o_proj");
  const Activations in = {.x = pass.ws.at(joined_),
                          .forms = &pass.ws.at(joined_forms_),
                          .prompt_begin = pass.prompt_begin};
  output_.project(pass, out_b_, in, rows, after);
  pass.team.barrier(pass.member);
}

kernels::NextWeights CompressedAttentionLayer::first_weights(const Pass& pass) const {
  return ColumnShares<1>(pass, {&q_a_}, 16).first_weights(pass.member, 0);
}

template <size_t kCount>
void CompressedAttentionLayer::project(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "qkv_proj");
  const Workspace& ws = pass.ws;
  const std::array<const Linear*, 7> all = input_weights();
  std::array<const Linear*, kCount> weights;
  std::copy_n(all.begin(), kCount, weights.begin());
  std::array<float*, kCount> outputs = {ws.at(q_latents_), ws.at(keys_)};
  if constexpr (kCount > 2) outputs[2] = blocks_->inputs_of(ws), outputs[3] = blocks_->gates_of(ws);
  if constexpr (kCount > 4)
    outputs[4] = chooser_->keys.inputs_of(ws), outputs[5] = chooser_->keys.gates_of(ws),
    outputs[6] = chooser_->search.weights_of(ws);
  const Activations in = {
      .x = pass.normed(), .forms = &pass.normed_forms(), .prompt_begin = pass.prompt_begin};
  project_columns<kCount>(pass, weights, outputs, in, {pass, weights, 16},
                          ColumnShares<1>(pass, {&q_b_}, 16).first_weights(pass.member, 0));
}

// The norms of rows' latents and keys, and what the cache keeps of them.
void CompressedAttentionLayer::place(const Pass& pass, int32_t begin, int32_t end) const {
  const trace::Scope scope(trace::Kind::kKernel, "rope");
  const Workspace& ws = pass.ws;
  for (int32_t row = begin; row < end; ++row) {
    float* q = ws.at(q_latents_) + int64_t{row} * spec_.q_rank;
    pass.ops.rms_norm(q, q_norm_, spec_.norm_eps, spec_.q_rank, q);
    float* key = ws.at(keys_) + int64_t{row} * spec_.head_dim;
    pass.ops.rms_norm(key, kv_norm_, spec_.norm_eps, spec_.head_dim, key);
    turn(pass, row, key, 1, angles(pass, row).sin);
    if (!pass.kept(row))
      pass.ops.store_keys(pass.kv.layer(memory_), pass.page_of(memory_, row),
                          ws.position[row] % kPageTokens, 0, 1, key);
    if (blocks_) blocks_->place(pass, row);
    if (chooser_) chooser_->keys.place(pass, row);
    for (int64_t g = 0; g < spec_.out_groups; ++g)
      ws.at(group_rows_)[g * pass.rows() + row] = row * spec_.out_groups + static_cast<int32_t>(g);
  }
  ws.at(q_forms_).convert(
      pass.ops, q_latent_forms_, ws.at(q_latents_) + int64_t{begin} * spec_.q_rank, spec_.q_rank,
      {.k = spec_.q_rank, .begin = begin, .end = end, .columns = spec_.q_rank}, pass.prompt_begin);
}

Angles CompressedAttentionLayer::angles(const Pass& pass, int32_t row) const {
  return pass.ws.angles[int64_t{rope_index_} * pass.rows() + row];
}

// The last numbers of heads turn.
void CompressedAttentionLayer::turn(const Pass& pass, int32_t row, float* x, int32_t heads,
                                    const float* sin) const {
  if (spec_.rope.dim == 0) return;
  pass.ops.rope(x + spec_.head_dim - spec_.rope.dim, heads, spec_.head_dim, spec_.rope.dim,
                angles(pass, row).cos, sin, spec_.rope.layout == Rope::kInterleaved);
}

void CompressedAttentionLayer::complete_blocks(const Pass& pass) const {
  bool any = false;
  for (int32_t row = 0; row < pass.rows() && !any; ++row)
    any = (pass.ws.position[row] + 1) % spec_.ratio == 0;
  if (!any) return;
  claim_rows(pass, pass.all_rows(), [&](int32_t begin, int32_t end) {
    const trace::Scope scope(trace::Kind::kKernel, "block_keys");
    for (int32_t row = begin; row < end; ++row) {
      blocks_->complete(pass, row);
      if (chooser_) chooser_->keys.complete(pass, row);
    }
  });
  pass.team.barrier(pass.member);
}

void CompressedAttentionLayer::project_queries(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "q_proj");
  const Workspace& ws = pass.ws;
  const Activations in = {
      .x = ws.at(q_latents_), .forms = &ws.at(q_forms_), .prompt_begin = pass.prompt_begin};
  if (chooser_) {
    const std::array<const Linear*, 2> weights = {&q_b_, &chooser_->queries};
    project_columns<2>(pass, weights, {ws.at(queries_), chooser_->search.queries_of(ws)}, in,
                       {pass, weights, 16}, {});
    return;
  }
  project_columns<1>(pass, {&q_b_}, {ws.at(queries_)}, in, {pass, {&q_b_}, 16}, {});
}

// Few rows are cut by heads, so that each member has some.
void CompressedAttentionLayer::attend_all(const Pass& pass) const {
  const int32_t members = pass.team.members();
  int32_t heads = spec_.num_heads;
  if (pass.rows() < 2 * members)
    heads = std::min(std::clamp(heads / members, kHeadsLeast, kHeadsMost), heads);
  const int64_t parts = (spec_.num_heads + heads - 1) / heads, claims = pass.rows() * parts;
  // From the last rows to the first: those of a prompt that see most keys come first.
  claim_blocks(pass, claims, [&](int64_t block) {
    const trace::Scope scope(trace::Kind::kKernel, "attend");
    const int64_t item = claims - 1 - block;
    const auto head = static_cast<int32_t>(item % parts) * heads;
    attend(pass, static_cast<int32_t>(item / parts), head, std::min(heads, spec_.num_heads - head));
  });
  pass.team.barrier(pass.member);
}

// Heads [head, head + heads) of a row.
void CompressedAttentionLayer::attend(const Pass& pass, int32_t row, int32_t head,
                                      int32_t heads) const {
  const Workspace& ws = pass.ws;
  const int64_t at = (int64_t{row} * spec_.num_heads + head) * spec_.head_dim;
  float* q = ws.at(queries_) + at;
  float* out = ws.at(attended_) + at;
  for (int64_t h = 0; h < heads; ++h) {
    float* one = q + h * spec_.head_dim;
    pass.ops.rms_norm(one, nullptr, spec_.norm_eps, spec_.head_dim, one);
  }
  const Angles turned = angles(pass, row);
  turn(pass, row, q, heads, turned.sin);
  const void** keys = ws.at(own_keys_, pass.member);
  const int32_t count = seen_keys(pass, row, keys);
  const int64_t stride = int64_t{heads} * spec_.head_dim;
  pass.ops.attend(pass.kv.layer(memory_), {.q = q,
                                           .q_stride = stride,
                                           .out = out,
                                           .out_stride = stride,
                                           .rows = 1,
                                           .first_position = count - 1,
                                           .keys = keys,
                                           .group = heads,
                                           .scale = spec_.scale,
                                           .sinks = sinks_ + head,
                                           .scratch = pass.scratch()});
  float* back = ws.at(own_sin_, pass.member);
  for (int32_t i = 0; i < spec_.rope.dim / 2; ++i) back[i] = -turned.sin[i];
  turn(pass, row, out, heads, back);
}

// Where the keys lie that a row sees: those of blocks, ascending, and then the window's.
int32_t CompressedAttentionLayer::seen_keys(const Pass& pass, int32_t row,
                                            const void** keys) const {
  int32_t count = 0;
  if (blocks_) {
    const kernels::KvPages& kv = pass.kv.layer(blocks_->memory());
    const int32_t* pages = pass.pages_of(blocks_->memory(), row);
    if (chooser_ && chooser_->search.chooses(pass, row)) {
      const int32_t* chosen = chooser_->search.chosen(pass, row);
      while (count < spec_.top_k) {
        keys[count] = blocks_->key(kv, pages, chosen[count]);
        ++count;
      }
    } else {
      const int32_t seen = (pass.ws.position[row] + 1) / spec_.ratio;
      for (; count < seen; ++count) keys[count] = blocks_->key(kv, pages, count);
    }
  }
  const kernels::KvPages& kv = pass.kv.layer(memory_);
  const int32_t* pages = pass.pages_of(memory_, row);
  const int64_t key_bytes = kv.head_bytes / kPageTokens;
  const int32_t position = pass.ws.position[row];
  for (int32_t p = std::max(position - spec_.window + 1, 0); p <= position; ++p)
    keys[count++] = kv.base + pages[p / kPageTokens] * kv.page_bytes + p % kPageTokens * key_bytes;
  return count;
}

// Each group of heads by its own weights, side by side, and what o_b_proj wants of that.
void CompressedAttentionLayer::project_groups(const Pass& pass) const {
  const Workspace& ws = pass.ws;
  const int32_t groups = spec_.out_groups, k = group_width(), joined = out_b_.k;
  const int32_t prompts = pass.prompt_begin == kNoPrompts ? kNoPrompts : pass.prompt_begin * groups;
  const auto convert = [&](FormsBuffer buffer, uint8_t forms, const float* x, int32_t width,
                           int32_t of_row, int32_t prompt_begin) {
    if (forms == 0) return;
    claim_rows(pass, pass.all_rows(), [&](int32_t begin, int32_t end) {
      const trace::Scope scope(trace::Kind::kKernel, "quantise");
      ws.at(buffer).convert(
          pass.ops, forms, x + int64_t{begin} * of_row * width, width,
          {.k = width, .begin = begin * of_row, .end = end * of_row, .columns = width},
          prompt_begin);
    });
    pass.team.barrier(pass.member);
  };
  convert(attended_forms_, out_a_forms_, ws.at(attended_), k, groups, prompts);
  const Activations in = {
      .x = ws.at(attended_), .forms = &ws.at(attended_forms_), .prompt_begin = prompts};
  const int32_t columns =
      column_block(pass, pass.rows(), joined, out_a_.front().column_bytes(), 16);
  const int64_t parts = (spec_.out_rank + columns - 1) / columns;
  claim_blocks(pass, groups * parts, [&](int64_t item) {
    const trace::Scope scope(trace::Kind::kKernel, "o_a_proj");
    const int64_t group = item / parts;
    const auto begin = static_cast<int32_t>(item % parts) * columns;
    multiply(pass, out_a_[static_cast<size_t>(group)], in,
             {.index = ws.at(group_rows_) + group * pass.rows(),
              .rows = pass.rows(),
              .begin = begin,
              .end = std::min(begin + columns, spec_.out_rank),
              .y = ws.at(joined_) + group * spec_.out_rank,
              .y_stride = joined});
  });
  pass.team.barrier(pass.member);
  convert(joined_forms_, out_b_.forms(), ws.at(joined_), joined, 1, pass.prompt_begin);
}

}  // namespace weir::model
