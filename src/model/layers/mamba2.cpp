#include "model/layers/mamba2.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/layers/project_columns.h"
#include "model/layers/state_piece.h"

namespace weir::model {

namespace {

// Of a head's piece of the state, in whole cache lines.
int64_t head_floats(const Mamba2& spec) {
  constexpr int64_t kLine = 16;
  return (int64_t{spec.state_dim} * spec.head_dim + kLine - 1) / kLine * kLine;
}

ConvBlocks convolution(const Mamba2& spec) {
  return {.channels = spec.channels(), .taps = spec.conv_taps};
}

float softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }

}  // namespace

int64_t Mamba2Layer::state_bytes(const Mamba2& spec) {
  const int64_t heads = spec.heads * head_floats(spec);
  return (convolution(spec).state_floats() + heads) * int64_t{sizeof(float)};
}

int64_t Mamba2Layer::tape_bytes(const Mamba2& spec) {
  return (spec.channels() + spec.heads) * int64_t{sizeof(float)};
}

Mamba2Layer::Mamba2Layer(const LayerSource& source, const Mamba2& spec)
    : spec_(spec), memory_(source.memory) {
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  in_ = binder.linear(layer, "mamba.in_proj", spec_.projected(), source.hidden, spec_.bias);
  conv_ = convolution(spec_);
  conv_.weights = binder.convolution(layer, "mamba.conv1d", spec_.channels(), spec_.conv_taps);
  const auto bare = [&](const char* name, int32_t n) {
    return binder.vector(layer, name, n, 0, /*bare=*/true);
  };
  if (spec_.conv_bias) conv_.bias = bare("mamba.conv1d.bias", spec_.channels());
  if (const float* logs = bare("mamba.A_log", spec_.heads))
    for (int32_t h = 0; h < spec_.heads; ++h) rates_.push_back(-std::exp(logs[h]));
  skip_ = bare("mamba.D", spec_.heads);
  step_bias_ = bare("mamba.dt_bias", spec_.heads);
  if (spec_.gate != Mamba2::kNoNorm) norm_ = binder.vector(layer, "mamba.norm", spec_.inner(), 0);
  scales_inputs_ = std::ranges::any_of(spec_.factors, [](float factor) { return factor != 1; });
  input_ = SublayerInput::bind(source, in_.forms());
  projected_ = source.scratch.ask<float>(BufferUse::kComputing, {.per_row = in_.n});
  out_ = AttendedHeads::bind(source, spec_.inner(), spec_.inner(), spec_.bias, "mamba.out_proj");
}

LayerFacts Mamba2Layer::facts() const {
  LayerFacts facts = {.leaves_nothing = out_.leaves_nothing()};
  for (const Linear* weight : {&in_, &out_.weight()}) facts.add(*weight);
  return facts;
}

void Mamba2Layer::enter(const Pass& pass, int32_t begin, int32_t end) const {
  input_.enter(pass, begin, end);
}

void Mamba2Layer::leave(const Pass& pass, int32_t begin, int32_t end) const {
  out_.leave(pass, begin, end);
}

ColumnShares<1> Mamba2Layer::input_shares(const Pass& pass) const { return {pass, {&in_}, 16}; }

kernels::NextWeights Mamba2Layer::first_weights(const Pass& pass) const {
  return input_shares(pass).first_weights(pass.member, 0);
}

void Mamba2Layer::compute(const Pass& pass, const RowRange& rows,
                          const kernels::NextWeights& after) const {
  project(pass);
  pass.team.barrier(pass.member);
  if (scales_inputs_) {
    claim_rows(pass, pass.all_rows(),
               [&](int32_t begin, int32_t end) { scale_inputs(pass, begin, end); });
    pass.team.barrier(pass.member);
  }
  claim_pieces(pass, conv_.blocks(), [&](const BatchSlice& slice, int32_t block) {
    const trace::Scope scope(trace::Kind::kKernel, "short_conv");
    convolve(pass, slice, block);
  });
  claim_pieces(pass, spec_.heads, [&](const BatchSlice& slice, int32_t head) {
    const trace::Scope scope(trace::Kind::kKernel, "mamba2");
    follow(pass, slice, head);
  });
  claim_rows(pass, rows, [&](int32_t begin, int32_t end) {
    const trace::Scope scope(trace::Kind::kKernel, "norm");
    finish(pass, begin, end);
  });
  pass.team.barrier(pass.member);
  out_.project(pass, rows, after);
}

void Mamba2Layer::project(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "in_proj");
  const Activations in = {
      .x = pass.normed(), .forms = &pass.normed_forms(), .prompt_begin = pass.prompt_begin};
  project_columns<1>(pass, {&in_}, {pass.ws.at(projected_)}, in, input_shares(pass),
                     out_.first_weights(pass));
}

void Mamba2Layer::scale_inputs(const Pass& pass, int32_t begin, int32_t end) const {
  const int32_t shared = spec_.groups * spec_.state_dim;
  const std::array<int32_t, 5> sizes = {spec_.inner(), spec_.inner(), shared, shared, spec_.heads};
  for (int64_t row = begin; row < end; ++row) {
    float* x = pass.ws.at(projected_) + row * in_.n;
    for (size_t part = 0; part < sizes.size(); x += sizes[part++])
      pass.ops.scale(spec_.factors[part], sizes[part], x);
  }
}

// One block of channels through the rows of a slice, in order.
void Mamba2Layer::convolve(const Pass& pass, const BatchSlice& slice, int32_t block) const {
  float* const inputs = pass.ws.at(projected_) + spec_.inner();
  const int32_t first = conv_.first(block), n = conv_.count(block);
  const StateTape tape(pass, memory_, slice);
  tape.exchange(first, {inputs + first, in_.n, n});
  // The heads' steps, which are not convolved, go with the first block.
  if (block == 0)
    tape.exchange(spec_.channels(), {inputs + spec_.channels(), in_.n, spec_.heads});
  StatePiece state(pass, memory_, slice, block * conv_.piece_floats(), conv_.piece_floats());
  state.take_rows(tape.rows(), [&](const RowRange& rows) {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      float* const x = inputs + row * in_.n + first;
      conv_.step(pass.ops, block, state.begin(), x);
      pass.ops.act(kernels::Act::kSilu, n, x);
    }
  });
}

// One head through the rows of a slice, in order.
void Mamba2Layer::follow(const Pass& pass, const BatchSlice& slice, int32_t head) const {
  const int64_t floats = head_floats(spec_);
  const int32_t dim = spec_.head_dim, n = spec_.state_dim;
  const int32_t group = head / (spec_.heads / spec_.groups);
  const auto h = static_cast<size_t>(head);
  StatePiece state(pass, memory_, slice, conv_.state_floats() + head * floats, floats);
  const auto inputs = [&](int64_t row) {
    return pass.ws.at(projected_) + row * in_.n + spec_.inner();
  };
  std::array<float, kRunRows> steps, decays;
  state.take_rows({pass, slice}, [&](const RowRange& range) {
    const int32_t begin = range.begin, rows = range.count();
    for (int32_t t = 0; t < rows; ++t) {
      const float raw = inputs(begin + t)[spec_.channels() + head] + step_bias_[head];
      steps[static_cast<size_t>(t)] = std::clamp(softplus(raw), spec_.step_min, spec_.step_max);
      decays[static_cast<size_t>(t)] = std::exp(steps[static_cast<size_t>(t)] * rates_[h]);
    }
    const float* const x = inputs(begin) + int64_t{head} * dim;
    const float* const b = inputs(begin) + spec_.inner() + int64_t{group} * n;
    float* const out = out_.row(pass, begin) + int64_t{head} * dim;
    pass.ops.decay_run({.state = state.begin(),
                        .tokens = rows,
                        .dk = n,
                        .dv = dim,
                        .q = {b + int64_t{spec_.groups} * n, in_.n},
                        .k = {b, in_.n},
                        .v = {x, in_.n},
                        .decay = {decays.data(), 1},
                        .gain = {steps.data(), 1},
                        .out = out,
                        .out_stride = out_.width()});
    for (int64_t t = 0; t < rows; ++t)
      pass.ops.add_scaled(x + t * in_.n, skip_[head], dim, out + t * out_.width());
  });
}

// What all heads have given in rows [begin, end), on its way to the output.
void Mamba2Layer::finish(const Pass& pass, int32_t begin, int32_t end) const {
  const int32_t width = spec_.inner(), part = width / spec_.norm_groups;
  for (int64_t row = begin; row < end; ++row) {
    const float* const z = pass.ws.at(projected_) + row * in_.n;
    float* const y = out_.row(pass, row);
    const auto gate = [&] { pass.ops.gated_act(z, y, {.act = kernels::Act::kSilu}, width, y); };
    if (spec_.gate != Mamba2::kAfterNorm) gate();
    for (int32_t at = 0; norm_ != nullptr && at < width; at += part)
      pass.ops.rms_norm(y + at, norm_ + at, spec_.norm_eps, part, y + at);
    if (spec_.gate == Mamba2::kAfterNorm) gate();
  }
  out_.finish(pass, begin, end, 0, width);
}

}  // namespace weir::model
