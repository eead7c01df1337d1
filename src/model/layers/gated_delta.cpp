#include "model/layers/gated_delta.h"

#include <cmath>

#include "model/layers/project_columns.h"
#include "model/layers/state_piece.h"

namespace weir::model {

namespace {

constexpr float kUnitEps = 1e-6f;  // Of the sum of squares that queries and keys are divided by.

// Floats of a key head's piece of the state, in whole cache lines.
int64_t piece_floats(const GatedDelta& d) {
  constexpr int64_t kLine = 16;
  const int64_t values = int64_t{d.group()} * d.value_dim;
  const int64_t floats = (d.conv_taps - 1) * (2 * d.key_dim + values) + d.key_dim * values;
  return (floats + kLine - 1) / kLine * kLine;
}

float softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }

// scale * x / sqrt(sum x^2 + eps)
void make_unit(const kernels::Ops& ops, float scale, int32_t n, float* x) {
  const auto count = static_cast<float>(n);
  ops.rms_norm(x, nullptr, kUnitEps / count, n, x);
  ops.scale(scale / std::sqrt(count), n, x);
}

}  // namespace

int64_t GatedDeltaLayer::state_bytes(const GatedDelta& spec) {
  return spec.key_heads * piece_floats(spec) * int64_t{sizeof(float)};
}

GatedDeltaLayer::GatedDeltaLayer(const LayerSource& source, const GatedDelta& spec)
    : spec_(spec), memory_(source.memory), output_(SublayerOutput::bind(source)) {
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  const int32_t values = spec_.value_heads * spec_.value_dim;
  qkvz_ = binder.linear(layer, "linear_attn.in_proj_qkvz",
                        2 * (spec_.key_heads * spec_.key_dim + values), source.hidden);
  ba_ = binder.linear(layer, "linear_attn.in_proj_ba", 2 * spec_.value_heads, source.hidden);
  out_ = binder.linear(layer, "linear_attn.out_proj", source.hidden, values);
  conv_ = binder.convolution(layer, spec_.key_heads * head_channels(), spec_.conv_taps);
  a_log_ = binder.vector(layer, "linear_attn.A_log", spec_.value_heads, 0, /*bare=*/true);
  dt_bias_ = binder.vector(layer, "linear_attn.dt_bias", spec_.value_heads, 0, /*bare=*/true);
  norm_ = binder.vector(layer, "linear_attn.norm", spec_.value_dim, 0);
  converts_heads_ = head_values() % (out_.int8 ? out_.quant.group : 32) == 0;
  input_ = SublayerInput::bind(source, static_cast<uint8_t>(qkvz_.forms() | ba_.forms()));

  ScratchPlan& scratch = source.scratch;
  projected_ = scratch.ask<float>(BufferUse::kComputing, {.per_row = qkvz_.n});
  rates_ = scratch.ask<float>(BufferUse::kComputing, {.per_row = ba_.n});
  attended_ = scratch.ask<float>(BufferUse::kComputing, {.per_row = out_.k});
  attended_forms_ = scratch.ask_forms(out_.k, 1, out_.forms());
}

LayerFacts GatedDeltaLayer::facts() const {
  LayerFacts facts = {.leaves_nothing = output_.adds_columns()};
  for (const Linear* weight : {&qkvz_, &ba_, &out_}) facts.add(*weight);
  return facts;
}

void GatedDeltaLayer::enter(const Pass& pass, int32_t begin, int32_t end) const {
  input_.enter(pass, begin, end);
}

void GatedDeltaLayer::leave(const Pass& pass, int32_t begin, int32_t end) const {
  if (!output_.adds_columns()) output_.add_rows(pass, begin, end);
}

ColumnShares<2> GatedDeltaLayer::input_shares(const Pass& pass) const {
  return {pass, {&qkvz_, &ba_}, 64};
}

kernels::NextWeights GatedDeltaLayer::first_weights(const Pass& pass) const {
  return input_shares(pass).first_weights(pass.member, 0);
}

void GatedDeltaLayer::compute(const Pass& pass, const RowRange& rows,
                              const kernels::NextWeights& after) const {
  project(pass);
  pass.team.barrier(pass.member);
  // The last slices, which are those of prompts, come first: what is left for the end of the phase
  // is small.
  const int64_t total = std::ssize(pass.batch.slices) * spec_.key_heads;
  claim_blocks(pass, total, [&](int64_t block) {
    const trace::Scope scope(trace::Kind::kKernel, "gated_delta");
    const int64_t item = total - 1 - block;
    follow(pass, pass.batch.slices[static_cast<size_t>(item / spec_.key_heads)],
           static_cast<int32_t>(item % spec_.key_heads));
  });
  pass.team.barrier(pass.member);
  if (out_.forms() != 0 && !converts_heads_) {
    claim_rows(pass, rows, [&](int32_t begin, int32_t end) {
      const trace::Scope scope(trace::Kind::kKernel, "quantise");
      convert(pass, {.k = out_.k, .begin = begin, .end = end, .columns = out_.k});
    });
    pass.team.barrier(pass.member);
  }
  const trace::Scope scope(trace::Kind::kKernel, "out_proj");
  const Activations in = {.x = pass.ws.at(attended_),
                          .forms = &pass.ws.at(attended_forms_),
                          .prompt_begin = pass.prompt_begin};
  output_.project(pass, out_, in, rows, after);
  pass.team.barrier(pass.member);
}

void GatedDeltaLayer::project(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "qkvz_proj");
  const Activations in = {
      .x = pass.normed(), .forms = &pass.normed_forms(), .prompt_begin = pass.prompt_begin};
  project_columns<2>(pass, {&qkvz_, &ba_}, {pass.ws.at(projected_), pass.ws.at(rates_)}, in,
                     input_shares(pass), SublayerOutput::first_weights(pass, out_));
}

// One key head through the rows of a slice, in order.
void GatedDeltaLayer::follow(const Pass& pass, const BatchSlice& slice, int32_t head) const {
  const int64_t floats = piece_floats(spec_);
  StatePiece state(pass, memory_, slice, head * floats, floats);
  float* const piece = state.begin();
  float* const states = piece + int64_t{spec_.conv_taps - 1} * head_channels();
  const int32_t head_rows = head_channels() + head_values();
  const int32_t end = slice.row_begin + slice.rows;
  for (int64_t row = slice.row_begin; row < end; ++row) {
    float* x = pass.ws.at(projected_) + row * qkvz_.n + int64_t{head} * head_rows;
    convolve(pass, head, piece, x);
    make_unit(pass.ops, 1 / std::sqrt(static_cast<float>(spec_.key_dim)), spec_.key_dim, x);
    make_unit(pass.ops, 1, spec_.key_dim, x + spec_.key_dim);
    attend(pass, row, head, x, states);
    state.after_row();
  }
  if (converts_heads_)
    convert(pass, {.k = out_.k,
                   .begin = slice.row_begin,
                   .end = end,
                   .column = head * head_values(),
                   .columns = head_values()});
}

// Queries, keys and values lie together in a row, but apart in the convolution's channels.
void GatedDeltaLayer::convolve(const Pass& pass, int32_t head, float* history, float* x) const {
  const int32_t keys = spec_.key_heads * spec_.key_dim;
  const std::array<int32_t, 3> widths = {spec_.key_dim, spec_.key_dim, head_values()};
  const std::array<int32_t, 3> firsts = {head * spec_.key_dim, keys + head * spec_.key_dim,
                                         2 * keys + head * head_values()};
  int32_t at = 0;
  for (size_t i = 0; i < widths.size(); at += widths[i++])
    pass.ops.conv_step({.weights = conv_ + firsts[i],
                        .weight_stride = int64_t{spec_.key_heads} * head_channels(),
                        .history = history + at,
                        .history_stride = head_channels(),
                        .taps = spec_.conv_taps},
                       widths[i], x + at);
  pass.ops.act(kernels::Act::kSilu, head_channels(), x);
}

// The value heads of a key head, for one row: x is [q, k, v, z].
void GatedDeltaLayer::attend(const Pass& pass, int64_t row, int32_t head, const float* x,
                             float* states) const {
  const int32_t group = spec_.group(), width = spec_.value_dim;
  const float* rates = pass.ws.at(rates_) + row * ba_.n + int64_t{head} * 2 * group;
  for (int32_t i = 0; i < group; ++i) {
    const int32_t value_head = head * group + i;
    const float b = rates[i], a = rates[group + i];
    float* out = pass.ws.at(attended_) + row * out_.k + int64_t{value_head} * width;
    pass.ops.delta_step(
        {.state = states + int64_t{i} * spec_.key_dim * width,
         .q = x,
         .k = x + spec_.key_dim,
         .v = x + 2 * spec_.key_dim + i * width,
         .decay = std::exp(-std::exp(a_log_[value_head]) * softplus(a + dt_bias_[value_head])),
         .beta = 1 / (1 + std::exp(-b)),
         .dk = spec_.key_dim,
         .dv = width,
         .out = out});
    pass.ops.rms_norm(out, norm_, spec_.norm_eps, width, out);
    pass.ops.gated_act(x + head_channels() + i * width, out, {}, width, out);
  }
}

void GatedDeltaLayer::convert(const Pass& pass, const ActivationForms::Part& part) const {
  const float* x = pass.ws.at(attended_) + int64_t{part.begin} * out_.k + part.column;
  pass.ws.at(attended_forms_).convert(pass.ops, out_.forms(), x, out_.k, part, pass.prompt_begin);
}

}  // namespace weir::model
