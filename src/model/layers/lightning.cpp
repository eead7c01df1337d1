#include "model/layers/lightning.h"

#include <cmath>

#include "model/layers/project_columns.h"
#include "model/layers/state_piece.h"

namespace weir::model {

namespace {

// Of a head's piece of the state, in whole cache lines.
int64_t piece_floats(const Lightning& spec) {
  constexpr int64_t kLine = 16;
  return (int64_t{spec.head_dim} * spec.head_dim + kLine - 1) / kLine * kLine;
}

}  // namespace

int64_t LightningLayer::state_bytes(const Lightning& spec) {
  return spec.num_heads * piece_floats(spec) * int64_t{sizeof(float)};
}

int64_t LightningLayer::tape_bytes(const Lightning& spec) {
  return int64_t{3} * spec.num_heads * spec.head_dim * int64_t{sizeof(float)};
}

LightningLayer::LightningLayer(const LayerSource& source, const Lightning& spec)
    : spec_(spec), memory_(source.memory) {
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  const int32_t width = spec_.num_heads * spec_.head_dim;
  qkv_ = binder.linear(layer, "self_attn.qkv_proj", 3 * width, source.hidden);
  gate_ = binder.linear(layer, "self_attn.output_gate", width, source.hidden);
  norm_ = binder.vector(layer, "self_attn.norm", width, 0);
  for (const float rate : spec_.rates) decays_.push_back(std::exp(-rate));
  input_ = SublayerInput::bind(source, static_cast<uint8_t>(qkv_.forms() | gate_.forms()));
  projected_ = source.scratch.ask<float>(BufferUse::kComputing, {.per_row = qkv_.n});
  gates_ = source.scratch.ask<float>(BufferUse::kComputing, {.per_row = gate_.n});
  out_ = AttendedHeads::bind(source, width, width, /*bias=*/false);
}

LayerFacts LightningLayer::facts() const {
  LayerFacts facts = {.leaves_nothing = out_.leaves_nothing()};
  for (const Linear* weight : {&qkv_, &gate_, &out_.weight()}) facts.add(*weight);
  return facts;
}

void LightningLayer::enter(const Pass& pass, int32_t begin, int32_t end) const {
  input_.enter(pass, begin, end);
}

void LightningLayer::leave(const Pass& pass, int32_t begin, int32_t end) const {
  out_.leave(pass, begin, end);
}

ColumnShares<2> LightningLayer::input_shares(const Pass& pass) const {
  return {pass, {&qkv_, &gate_}, 16};
}

kernels::NextWeights LightningLayer::first_weights(const Pass& pass) const {
  return input_shares(pass).first_weights(pass.member, 0);
}

void LightningLayer::compute(const Pass& pass, const RowRange& rows,
                             const kernels::NextWeights& after) const {
  project(pass);
  pass.team.barrier(pass.member);
  claim_pieces(pass, spec_.num_heads, [&](const BatchSlice& slice, int32_t head) {
    const trace::Scope scope(trace::Kind::kKernel, "lightning");
    follow(pass, slice, head);
  });
  claim_rows(pass, rows, [&](int32_t begin, int32_t end) {
    const trace::Scope scope(trace::Kind::kKernel, "norm");
    finish(pass, begin, end);
  });
  pass.team.barrier(pass.member);
  out_.project(pass, rows, after);
}

void LightningLayer::project(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "qkv_proj");
  const Activations in = {
      .x = pass.normed(), .forms = &pass.normed_forms(), .prompt_begin = pass.prompt_begin};
  project_columns<2>(pass, {&qkv_, &gate_}, {pass.ws.at(projected_), pass.ws.at(gates_)}, in,
                     input_shares(pass), out_.first_weights(pass));
}

// One head through the rows of a slice, in order.
void LightningLayer::follow(const Pass& pass, const BatchSlice& slice, int32_t head) const {
  const int64_t floats = piece_floats(spec_);
  const int32_t dim = spec_.head_dim;
  const auto x = [&](int64_t row) {
    return pass.ws.at(projected_) + row * qkv_.n + int64_t{head} * 3 * dim;
  };
  const StateTape tape(pass, memory_, slice);
  tape.exchange(int64_t{head} * 3 * dim, {x(0), qkv_.n, 3 * dim});
  StatePiece state(pass, memory_, slice, head * floats, floats);
  static constexpr float kGain = 1;
  state.take_rows(tape.rows(), [&](const RowRange& rows) {
    const int32_t begin = rows.begin;
    for (int64_t row = begin; row < rows.end; ++row) pass.ops.act(spec_.act, 3 * dim, x(row));
    pass.ops.decay_run({.state = state.begin(),
                        .tokens = rows.count(),
                        .dk = dim,
                        .dv = dim,
                        .q = {x(begin), qkv_.n},
                        .k = {x(begin) + dim, qkv_.n},
                        .v = {x(begin) + 2 * dim, qkv_.n},
                        .decay = {&decays_[static_cast<size_t>(head)], 0},
                        .gain = {&kGain, 0},
                        .out = out_.row(pass, begin) + int64_t{head} * dim,
                        .out_stride = out_.width()});
  });
}

// What all heads have given in rows [begin, end), on its way to the output.
void LightningLayer::finish(const Pass& pass, int32_t begin, int32_t end) const {
  for (int64_t row = begin; row < end; ++row) {
    float* const x = out_.row(pass, row);
    pass.ops.rms_norm(x, norm_, spec_.norm_eps, gate_.n, x);
    pass.ops.gated_act(pass.ws.at(gates_) + row * gate_.n, x, {.act = kernels::Act::kSigmoid},
                       gate_.n, x);
  }
  out_.finish(pass, begin, end, 0, gate_.n);
}

}  // namespace weir::model
