#include "model/layers/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/coded_ops.h"
#include "model/adapted_product.h"
#include "model/layers/state_piece.h"

namespace weir::model {

namespace {

// Rows of one slice that a claim attends for: each page is read, and turned to what the kernel
// wants, once for all of them; but a prompt's end, where rows see the most keys, is to be shared
// between members, in about four claims each.
int32_t tile_rows(const Pass& pass, const BatchSlice& slice, int32_t kv_heads) {
  constexpr int32_t kLeast = 32, kMost = 128;
  const int32_t share = slice.rows * kv_heads / (4 * pass.team.members());
  return std::clamp(share / kLeast * kLeast, kLeast, kMost);
}

// Of a key-value head, in whole cache lines: the tokens before, each a key and a value.
int64_t state_floats(const Attention& spec) {
  constexpr int64_t kLine = 16;
  const int64_t floats = int64_t{spec.conv_taps - 1} * (spec.head_dim + spec.v_dim());
  return (floats + kLine - 1) / kLine * kLine;
}

const kernels::CodedOps& codes_of(const Pass& pass) { return kernels::coded_ops_for(pass.ops.isa); }

}  // namespace

AttentionLayer::AttentionLayer(const LayerSource& source, const Attention& spec, int rope_index)
    : spec_(spec), memory_(source.memory), rope_index_(rope_index) {
  // After its keys and values; one that reads another's has no convolution of its own.
  if (spec_.conv_taps > 0 && source.sublayer.memory_of < 0) state_ = source.memory + 1;
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  const int32_t hidden = source.input_width();
  const int32_t q_width = spec_.num_heads * spec_.q_rows();
  const int32_t k_width = spec_.num_kv_heads * spec_.head_dim;
  const int32_t v_width = spec_.num_kv_heads * spec_.v_dim();
  if (source.sublayer.memory_of >= 0) {
    q_ = binder.linear(layer, "self_attn.q_proj", q_width, hidden, spec_.qkv_bias);
    for (const char* unused : {"self_attn.k_proj", "self_attn.v_proj", "self_attn.k_norm"})
      binder.ignore(layer, unused);
  } else {
    const std::array<WeightBinder::Part, 3> parts = {
        {{"self_attn.q_proj", q_width},
         {"self_attn.k_proj", k_width, spec_.key_bias},
         {spec_.values_are_keys ? "self_attn.k_proj" : "self_attn.v_proj", v_width}}};
    const std::vector<Linear> qkv = binder.linears(layer, parts, hidden, spec_.qkv_bias);
    q_ = qkv[0], k_ = qkv[1], v_ = qkv[2];
  }
  if (spec_.out_gate == Attention::kOwnModule)
    gate_ = binder.linear(layer, "self_attn.gate_proj", spec_.num_heads * spec_.v_dim(), hidden);
  if (spec_.qk_norm != Attention::kNoQkNorm) {
    q_norms_ = bind_head_norms(source, "self_attn.q_norm", spec_.num_heads);
    if (k_.n > 0) k_norms_ = bind_head_norms(source, "self_attn.k_norm", spec_.num_kv_heads);
  }
  if (state_ >= 0) {
    k_taps_ = bind_taps(source, "self_attn.conv_k", spec_.head_dim);
    v_taps_ = bind_taps(source, "self_attn.conv_v", spec_.v_dim());
  }
  if (spec_.sinks)
    sinks_ = binder.vector(layer, "self_attn.sinks", spec_.num_heads, 0, /*bare=*/true);
  const int forms = q_.forms() | k_.forms() | v_.forms() | gate_.forms();
  input_ = SublayerInput::bind(source, static_cast<uint8_t>(forms));
  ask_scratch(source.scratch);
  out_ = AttendedHeads::bind(source, spec_.num_heads * spec_.v_dim(),
                             spec_.num_heads / spec_.num_kv_heads * spec_.v_dim(), spec_.out_bias,
                             "self_attn.o_proj", spec_.out_norm);
}

// One for all heads, or one for each.
std::vector<NormWeights> AttentionLayer::bind_head_norms(const LayerSource& source,
                                                         const char* module, int32_t heads) const {
  const Norm norm = {.kind = spec_.qk_norm_kind,
                     .eps = spec_.qk_norm_eps,
                     .weight_offset = spec_.qk_norm_offset,
                     .bias = spec_.qk_norm_bias,
                     .weight = spec_.qk_norm_weight,
                     .module = module};
  const int layer = source.stored_layer();
  if (spec_.qk_norm == Attention::kEachHead)
    return source.binder.head_norms(layer, norm, heads, spec_.head_dim);
  const int32_t together = spec_.qk_norm == Attention::kAllHeads ? heads : 1;
  return {source.binder.norm(layer, norm, together * spec_.head_dim)};
}

// A weight for each tap of each head, repeated for all of the head's numbers.
std::vector<float> AttentionLayer::bind_taps(const LayerSource& source, const char* name,
                                             int32_t dim) const {
  const int32_t count = spec_.num_kv_heads * spec_.conv_taps;
  const std::array<int64_t, 5> shape = {1, 1, spec_.num_kv_heads, 1, spec_.conv_taps};
  const float* taps = source.binder.tensor(source.stored_layer(), name, shape);
  std::vector<float> out;
  for (int32_t i = 0; taps != nullptr && i < count; ++i)
    out.insert(out.end(), static_cast<size_t>(dim), taps[i]);
  return out;
}

int64_t AttentionLayer::state_bytes(const Attention& spec) {
  return spec.num_kv_heads * state_floats(spec) * int64_t{sizeof(float)};
}

int64_t AttentionLayer::tape_bytes(const Attention& spec) {
  return int64_t{spec.num_kv_heads} * (spec.head_dim + spec.v_dim()) * int64_t{sizeof(float)};
}

void AttentionLayer::ask_scratch(ScratchPlan& scratch) {
  projected_ = scratch.ask<float>(BufferUse::kComputing, {.per_row = q_.n});
  queries_ = projected_;
  if (spec_.out_gate == Attention::kAfterQuery)
    queries_ = scratch.ask<float>(BufferUse::kComputing, {.per_row = q_width()});
  keys_ = scratch.ask<float>(BufferUse::kComputing, {.per_row = k_.n});
  values_ = scratch.ask<float>(BufferUse::kComputing, {.per_row = v_.n});
  gates_ = scratch.ask<float>(BufferUse::kComputing, {.per_row = gate_.n});
}

LayerFacts AttentionLayer::facts() const {
  LayerFacts facts = {.leaves_nothing = out_.leaves_nothing(), .takes_groups = true};
  for (const Linear* weight : {&q_, &k_, &v_, &gate_, &out_.weight()}) facts.add(*weight);
  return facts;
}

void AttentionLayer::enter(const Pass& pass, int32_t begin, int32_t end) const {
  input_.enter(pass, begin, end);
}

// Q, K and V of all rows: what a row attends to may be in its own step.
void AttentionLayer::project_all(const Pass& pass) const {
  const std::array weights = {&q_, &k_, &v_, &gate_};
  prepare_adapters(pass, weights, input(pass), pass.all_rows());
  project(pass);
  pass.team.barrier(pass.member);
  if (state_ >= 0) convolve_all(pass);
  if (spec_.qk_norm != Attention::kAllHeads) return;
  claim_rows(pass, pass.all_rows(), [&](int32_t begin, int32_t end) {
    const trace::Scope scope(trace::Kind::kKernel, "rope");
    place(pass, kQ, begin, end, 0, spec_.num_heads);
    if (k_.n == 0) return;
    for (const Part part : {kK, kV}) place(pass, part, begin, end, 0, spec_.num_kv_heads);
  });
  pass.team.barrier(pass.member);
}

// Keys and values of each key-value head, in the order of their tokens.
void AttentionLayer::convolve_all(const Pass& pass) const {
  const int64_t total = std::ssize(pass.batch.slices) * spec_.num_kv_heads;
  claim_blocks(pass, total, [&](int64_t block) {
    const trace::Scope scope(trace::Kind::kKernel, "convolution");
    const auto slice = static_cast<size_t>(block / spec_.num_kv_heads);
    convolve(pass, pass.batch.slices[slice], static_cast<int32_t>(block % spec_.num_kv_heads));
  });
  pass.team.barrier(pass.member);
}

void AttentionLayer::convolve(const Pass& pass, const BatchSlice& slice, int32_t head) const {
  const int64_t floats = state_floats(spec_);
  const StateTape tape(pass, state_, slice);
  const int32_t width = spec_.head_dim + spec_.v_dim();
  for (const Part part : {kK, kV})
    tape.exchange(int64_t{head} * width + (part == kK ? 0 : spec_.head_dim),
                  {heads_of(pass, part, 0, head, head + 1), part == kK ? k_.n : v_.n,
                   head_columns(part)});
  StatePiece state(pass, state_, slice, head * floats, floats);
  const auto step = [&](Part part, float* history, const std::vector<float>& taps, int32_t row) {
    const int32_t dim = head_columns(part);
    pass.ops.conv_step({.weights = taps.data() + int64_t{head} * spec_.conv_taps * dim,
                        .weight_stride = dim,
                        .history = history,
                        .history_stride = dim,
                        .taps = spec_.conv_taps},
                       dim, heads_of(pass, part, row, head, head + 1));
    // A norm over all heads has to wait for the others. What is replayed has its place already.
    const bool replayed = row >= pass.ws.replay_begin;
    if (spec_.qk_norm != Attention::kAllHeads && !replayed)
      place(pass, part, row, row + 1, head, head + 1);
  };
  state.take_rows(tape.rows(), [&](const RowRange& rows) {
    float* const values = state.begin() + int64_t{spec_.conv_taps - 1} * spec_.head_dim;
    for (int32_t row = rows.begin; row < rows.end; ++row) {
      step(kK, state.begin(), k_taps_, row);
      step(kV, values, v_taps_, row);
    }
  });
}

void AttentionLayer::compute(const Pass& pass, const RowRange& rows,
                             const kernels::NextWeights& after) const {
  if (rows.begin == 0) {
    project_all(pass);
    encode_pages(pass);
  }
  attend(pass, rows);
  pass.team.barrier(pass.member);
  out_.project(pass, rows, after);
}

void AttentionLayer::leave(const Pass& pass, int32_t begin, int32_t end) const {
  out_.leave(pass, begin, end);
}

void AttentionLayer::remember(const Pass& pass) const {
  claim_rows(pass, pass.all_rows(),
             [&](int32_t begin, int32_t end) { input_.convert(pass, begin, end); });
  pass.team.barrier(pass.member);
  const std::array weights = {&k_, &v_};
  const std::array outputs = {pass.ws.at(keys_), pass.ws.at(values_)};
  const int32_t multiple = std::lcm(64, std::lcm(spec_.head_dim, spec_.v_dim()));
  claim_columns(pass, ColumnShares<2>(pass, weights, multiple), {},
                [&](const ColumnRange& columns, const kernels::NextWeights& next) {
                  const Linear& weight = *weights[columns.weight];
                  const kernels::GemmRange range = {.rows = pass.rows(),
                                                    .begin = columns.begin,
                                                    .end = columns.end,
                                                    .y = outputs[columns.weight],
                                                    .y_stride = weight.n,
                                                    .next = next};
                  multiply(pass, weight, input(pass), range);
                  add_bias(pass.ops, weight, range);
                  const Part part = columns.weight == 0 ? kK : kV;
                  const int32_t dim = head_columns(part);
                  place(pass, part, 0, pass.rows(), columns.begin / dim, columns.end / dim);
                });
  pass.team.barrier(pass.member);
}

ColumnShares<4> AttentionLayer::shares(const Pass& pass) const {
  // Whole heads, of each of them.
  return {pass,
          {&q_, &k_, &v_, &gate_},
          std::lcm(64, std::lcm(spec_.q_rows(), std::lcm(spec_.head_dim, spec_.v_dim())))};
}

kernels::NextWeights AttentionLayer::first_weights(const Pass& pass) const {
  return shares(pass).first_weights(pass.member, 0);
}

Activations AttentionLayer::input(const Pass& pass) {
  return {.x = pass.normed(), .forms = &pass.normed_forms(), .prompt_begin = pass.prompt_begin};
}

void AttentionLayer::project(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "qkv_proj");
  const std::array weights = {&q_, &k_, &v_, &gate_};
  const std::array outputs = {pass.ws.at(projected_), pass.ws.at(keys_), pass.ws.at(values_),
                              pass.ws.at(gates_)};
  const auto compute = [&](const ColumnRange& columns, const kernels::NextWeights& next) {
    const Linear& weight = *weights[columns.weight];
    Activations in = input(pass);
    in.prepared = static_cast<int32_t>(columns.weight);
    const kernels::GemmRange range = {.rows = pass.rows(),
                                      .begin = columns.begin,
                                      .end = columns.end,
                                      .y = outputs[columns.weight],
                                      .y_stride = weight.n,
                                      .next = next};
    multiply(pass, weight, in, range);
    add_bias(pass.ops, weight, range);
    // A norm over all heads has to wait for the other columns.
    const auto part = static_cast<Part>(columns.weight);
    if (part == kGate || spec_.qk_norm == Attention::kAllHeads) return;
    if (part != kQ && state_ >= 0) return;  // A convolution comes first.
    const int32_t head_rows = head_columns(part);
    place(pass, part, 0, pass.rows(), columns.begin / head_rows, columns.end / head_rows);
  };
  claim_columns(pass, shares(pass), out_.first_weights(pass), compute);
}

void AttentionLayer::normalise_heads(const Pass& pass, Part part, int32_t first, int32_t heads,
                                     float* x) const {
  const std::span<const NormWeights> norms = part == kQ ? q_norms_ : k_norms_;
  switch (spec_.qk_norm) {
    case Attention::kNoQkNorm:
      return;
    case Attention::kAllHeads:
      return normalise(pass.ops, norms[0], x, heads * spec_.head_dim, 0, 1, x);
    case Attention::kPerHead:
      return normalise(pass.ops, norms[0], x, spec_.head_dim, 0, heads, x);
    case Attention::kEachHead:
      for (int32_t h = 0; h < heads; ++h)
        normalise(pass.ops, norms[static_cast<size_t>(first + h)], x, spec_.head_dim, h, h + 1, x);
  }
}

int32_t AttentionLayer::head_columns(Part part) const {
  return part == kQ ? spec_.q_rows() : part == kK ? spec_.head_dim : spec_.v_dim();
}

// Heads [first, last) of a row of Q, K or V, side by side: where they have been projected, or,
// where gates lie between the queries, without these.
float* AttentionLayer::heads_of(const Pass& pass, Part part, int64_t row, int32_t first,
                                int32_t last) const {
  const Workspace& ws = pass.ws;
  if (part != kQ)
    return part == kK ? ws.at(keys_) + row * k_.n + first * spec_.head_dim
                      : ws.at(values_) + row * v_.n + first * spec_.v_dim();
  float* queries = ws.at(queries_) + row * q_width() + first * spec_.head_dim;
  if (spec_.out_gate != Attention::kAfterQuery) return queries;
  const float* projected = ws.at(projected_) + row * q_.n;
  for (int32_t h = first; h < last; ++h)
    std::copy_n(projected + h * spec_.q_rows(), spec_.head_dim,
                queries + (h - first) * spec_.head_dim);
  return queries;
}

// Heads [first, last) of some rows of Q, K or V: Q and K get their norm and rope, K and V go to
// their page.
void AttentionLayer::place(const Pass& pass, Part part, int32_t begin, int32_t end, int32_t first,
                           int32_t last) const {
  const int32_t heads = last - first;
  for (int32_t row = begin; row < end; ++row) {
    float* head = heads_of(pass, part, row, first, last);
    const int32_t columns = heads * (part == kV ? spec_.v_dim() : spec_.head_dim);
    if (const float most = spec_.qkv_limit; most > 0)
      for (int32_t i = 0; i < columns; ++i) head[i] = std::clamp(head[i], -most, most);
    if (part != kV) turn_heads(pass, part, row, first, heads, head);
    if (part == kV && spec_.v_norm)
      normalise(pass.ops, {.eps = spec_.qk_norm_eps}, head, spec_.v_dim(), 0, heads, head);
    if (part != kQ) store_heads(pass, part, row, first, heads, head);
  }
}

void AttentionLayer::turn_heads(const Pass& pass, Part part, int32_t row, int32_t first,
                                int32_t heads, float* x) const {
  if (!spec_.qk_norm_after_rope) normalise_heads(pass, part, first, heads, x);
  if (const Rope& rope = spec_.rope; rope.dim > 0) {
    const Angles angles = pass.ws.angles[int64_t{rope_index_} * pass.rows() + row];
    pass.ops.rope(x, heads, spec_.head_dim, rope.dim, angles.cos, angles.sin,
                  rope.layout == Rope::kInterleaved);
  }
  if (spec_.qk_norm_after_rope) normalise_heads(pass, part, first, heads, x);
  if (part == kQ && spec_.position_beta != 0)
    pass.ops.scale(position_factor(pass.ws.position[row]), heads * spec_.head_dim, x);
}

float AttentionLayer::position_factor(int32_t position) const {
  const int32_t steps = (position + spec_.position_shift) / spec_.position_step;
  return 1 + spec_.position_beta * std::log1p(static_cast<float>(steps));
}

void AttentionLayer::store_heads(const Pass& pass, Part part, int32_t row, int32_t first,
                                 int32_t heads, const float* x) const {
  const int32_t position = pass.ws.position[row];
  const int32_t slot = position % kernels::kPageTokens;
  int32_t page;
  if (pass.kv.coded(memory_) != nullptr) {
    // Also where others have its codes: the rows of its own block read numbers. The first block's
    // are there for all.
    if (pass.kept(row) && position < kernels::kPageTokens) return;
    const auto slice = static_cast<size_t>(pass.ws.slice[row]);
    page = pass.hot_pages_of(pass.batch.slices[slice])[position / kernels::kPageTokens];
  } else {
    if (pass.kept(row)) return;
    page = pass.page_of(memory_, row);
  }
  const auto store = part == kK ? pass.ops.store_keys : pass.ops.store_values;
  store(pass.kv.layer(memory_), page, slot, first, heads, x);
}

// The blocks that this pass completes become codes, before any row reads them as such. Of those
// that others have computed the codes are there, and a sequence's first block stays what it is.
void AttentionLayer::encode_pages(const Pass& pass) const {
  const kernels::CodedPages* const coded = pass.kv.coded(memory_);
  if (coded == nullptr || k_.n == 0) return;
  const auto first_of = [&](const BatchSlice& slice) {
    return std::max({pass.ws.position[slice.row_begin] / kernels::kPageTokens,
                     slice.memory.kept / kernels::kPageTokens, 1});
  };
  const auto blocks_of = [&](const BatchSlice& slice) {
    const int32_t end = pass.ws.position[slice.row_begin] + slice.rows;
    return std::max(end / kernels::kPageTokens - first_of(slice), 0);
  };
  int64_t total = 0;
  for (const BatchSlice& slice : pass.batch.slices) total += blocks_of(slice);
  if (total == 0) return;
  total *= spec_.num_kv_heads;
  size_t at = 0;
  int64_t begin = 0;  // Of slice `at`; a member's claims ascend.
  claim_blocks(pass, total, [&](int64_t block) {
    const trace::Scope scope(trace::Kind::kKernel, "encode_page");
    const auto count = [&] {
      return int64_t{blocks_of(pass.batch.slices[at])} * spec_.num_kv_heads;
    };
    while (block >= begin + count()) begin += count(), ++at;
    const BatchSlice& slice = pass.batch.slices[at];
    const auto of_slice = static_cast<int32_t>(block - begin);
    const int32_t index = first_of(slice) + of_slice / spec_.num_kv_heads;
    codes_of(pass).encode_page(*coded, slice.memory.pages(pass.kv.group_of(memory_))[index],
                               pass.kv.layer(memory_), pass.hot_pages_of(slice)[index],
                               of_slice % spec_.num_kv_heads, pass.scratch());
  });
  pass.team.barrier(pass.member);
}

void AttentionLayer::attend(const Pass& pass, const RowRange& rows) const {
  const trace::Scope scope(trace::Kind::kKernel, "attention");
  const auto first = static_cast<size_t>(pass.ws.slice[rows.begin]);
  const auto last = static_cast<size_t>(pass.ws.slice[rows.end - 1]);
  const std::span slices = pass.batch.slices.subspan(first, last + 1 - first);
  const auto claims_of = [&](const BatchSlice& slice) {
    const int32_t tile = tile_rows(pass, slice, spec_.num_kv_heads);
    return int64_t{(slice.rows + tile - 1) / tile} * spec_.num_kv_heads;
  };
  int64_t total = 0;
  for (const BatchSlice& slice : slices) total += claims_of(slice);
  // From the last tile to the first: the rows that see most keys come first, and what is left for
  // the end of the phase is small. A member's claims ascend, so its place among the slices does
  // too.
  size_t at = slices.size();
  int64_t begin = total;  // Of slice `at`, in units of (tile, head).
  claim_blocks(pass, total, [&](int64_t block) {
    const int64_t item = total - 1 - block;
    while (item < begin) begin -= claims_of(slices[--at]);
    const int64_t within = item - begin;
    attend_tile(pass, slices[at], static_cast<int32_t>(within / spec_.num_kv_heads),
                static_cast<int32_t>(within % spec_.num_kv_heads));
  });
}

void AttentionLayer::attend_tile(const Pass& pass, const BatchSlice& slice, int32_t tile,
                                 int32_t kv_head) const {
  const Workspace& ws = pass.ws;
  const int32_t group = spec_.num_heads / spec_.num_kv_heads;
  const int32_t most = tile_rows(pass, slice, spec_.num_kv_heads);
  const int32_t first = tile * most;
  const int32_t rows = std::min(most, slice.rows - first);
  const int32_t row = slice.row_begin + first;
  const int32_t column = kv_head * group * spec_.v_dim();
  const kernels::AttendArgs args = {
      .q = ws.at(queries_) + int64_t{row} * q_width() + kv_head * group * spec_.head_dim,
      .q_stride = q_width(),
      .out = out_.row(pass, row) + column,
      .out_stride = out_.width(),
      .rows = rows,
      .first_position = ws.position[row],
      .pages = slice.memory.pages(pass.kv.group_of(memory_)),
      .kv_head = kv_head,
      .group = group,
      .scale = spec_.scale,
      .softcap = spec_.logit_softcap,
      .window = spec_.window,
      .chunks = spec_.chunks,
      .span_begin = slice.mask.begin,
      .span_end = slice.mask.end,
      .first_key = slice.first_key,
      .sinks = sinks_ == nullptr ? nullptr : sinks_ + int64_t{kv_head} * group,
      .scratch = pass.scratch(),
  };
  attend_rows(pass, slice, row, args);
  if (spec_.out_gate != Attention::kNoGate)
    gate_heads(pass, row, row + rows, kv_head * group, group);
  out_.finish(pass, row, row + rows, column, group * spec_.v_dim());
}

void AttentionLayer::attend_rows(const Pass& pass, const BatchSlice& slice, int32_t row,
                                 kernels::AttendArgs args) const {
  const kernels::Ops& ops = pass.ops;
  const kernels::KvPages& kv = pass.kv.layer(memory_);
  const kernels::CodedPages* const coded = pass.kv.coded(memory_);
  const auto attend = [&](const kernels::AttendArgs& some, bool prompt) {
    if (coded == nullptr) return (prompt ? ops.attend_prompt : ops.attend)(kv, some);
    const kernels::CodedOps& codes = codes_of(pass);
    (prompt ? codes.attend_prompt : codes.attend)(*coded, kv, pass.hot_pages_of(slice), some);
  };
  const int32_t rows = args.rows;
  const int32_t plain = row < pass.prompt_begin
                            ? rows
                            : std::clamp(ops.attend_prompt_from - args.first_position, 0, rows);
  if (plain > 0) {
    args.rows = plain;
    attend(args, /*prompt=*/false);
  }
  if (plain < rows) {
    args.q += plain * args.q_stride;
    args.out += plain * args.out_stride;
    args.rows = rows - plain;
    args.first_position += plain;
    attend(args, /*prompt=*/true);
  }
}

// What heads have attended, times the sigmoid of their gates.
void AttentionLayer::gate_heads(const Pass& pass, int32_t begin, int32_t end, int32_t first,
                                int32_t heads) const {
  const int32_t width = spec_.v_dim();
  const bool own = gate_.n > 0;
  const float* gates = own ? pass.ws.at(gates_) : pass.ws.at(projected_) + spec_.head_dim;
  const int32_t row_step = own ? gate_.n : q_.n, head_step = own ? width : spec_.q_rows();
  for (int64_t row = begin; row < end; ++row)
    for (int32_t h = first; h < first + heads; ++h) {
      const float* gate = gates + row * row_step + h * head_step;
      float* attended = out_.row(pass, row) + h * width;
      pass.ops.gated_act(gate, attended, {.act = Act::kSigmoid}, width, attended);
    }
}

}  // namespace weir::model
