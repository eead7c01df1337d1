#include "model/layers/mamba1.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "model/layers/project_columns.h"
#include "model/layers/state_piece.h"

namespace weir::model {

namespace {

static_assert(ConvBlocks::kBlock % kernels::kScanStrip == 0);

ConvBlocks convolution(const Mamba1& spec) {
  return {.channels = spec.inner, .taps = spec.conv_taps};
}

// Of a block's strips.
int64_t block_floats(const Mamba1& spec) { return int64_t{ConvBlocks::kBlock} * spec.state_dim; }

// A = -exp(A_log), as the exponent of a power of two.
float rate_of(float a_log) {
  return static_cast<float>(-std::exp(double{a_log}) * std::numbers::log2e);
}

}  // namespace

int64_t Mamba1Layer::state_bytes(const Mamba1& spec) {
  const ConvBlocks conv = convolution(spec);
  return (conv.state_floats() + conv.blocks() * block_floats(spec)) * int64_t{sizeof(float)};
}

int64_t Mamba1Layer::tape_bytes(const Mamba1& spec) {
  return (int64_t{2} * spec.inner + spec.parameters()) * int64_t{sizeof(float)};
}

Mamba1Layer::Mamba1Layer(const LayerSource& source, const Mamba1& spec)
    : spec_(spec), memory_(source.memory) {
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  const int32_t inner = spec_.inner, rank = spec_.step_rank, n = spec_.state_dim;
  const std::array<WeightBinder::Part, 2> parts = {
      {{"mamba.hidden_proj", inner}, {"mamba.gate_proj", inner}}};
  const std::vector<Linear> bound = binder.linears(layer, parts, source.hidden, spec_.bias);
  x_in_ = bound[0];
  z_in_ = bound[1];
  // What is wrong with steps and B stays in the states. With x in int8, two tiny models of 8-bit
  // weights were off by nearly twice as much (relative rms 0.09 and 0.08, not 0.05), and these two
  // are a twentieth of the layer's weights.
  parameters_in_ = binder.linear(layer, "mamba.x_proj", spec_.parameters(), inner, /*bias=*/false,
                                 Precision::kFloatActivations);
  step_in_ = binder.linear(layer, "mamba.dt_proj", inner, rank, /*bias=*/true,
                           Precision::kFloatActivations);
  conv_ = convolution(spec_);
  conv_.weights = binder.convolution(layer, "mamba.conv1d", inner, spec_.conv_taps);
  const auto bare = [&](const char* name) {
    return binder.vector(layer, name, inner, 0, /*bare=*/true);
  };
  if (spec_.conv_bias) conv_.bias = bare("mamba.conv1d.bias");
  rate_ = binder.strips(layer, "mamba.A_log", inner, n, kernels::kScanStrip, rate_of);
  skip_ = bare("mamba.D");
  if (spec_.norms == Mamba1::kWeighted)
    norms_ = {binder.vector(layer, "mamba.dt_layernorm", rank, 0),
              binder.vector(layer, "mamba.b_layernorm", n, 0),
              binder.vector(layer, "mamba.c_layernorm", n, 0)};
  input_ = SublayerInput::bind(source, static_cast<uint8_t>(x_in_.forms() | z_in_.forms()));
  ScratchPlan& scratch = source.scratch;
  for (Buffer<float>* const buffer : {&x_, &z_, &steps_})
    *buffer = scratch.ask<float>(BufferUse::kComputing, {.per_row = inner});
  parameters_ = scratch.ask<float>(BufferUse::kComputing, {.per_row = spec_.parameters()});
  out_ = AttendedHeads::bind(source, inner, ConvBlocks::kBlock, spec_.bias, "mamba.out_proj");
}

LayerFacts Mamba1Layer::facts() const {
  LayerFacts facts = {.leaves_nothing = out_.leaves_nothing()};
  for (const Linear* weight : {&x_in_, &z_in_, &parameters_in_, &step_in_, &out_.weight()})
    facts.add(*weight);
  return facts;
}

void Mamba1Layer::enter(const Pass& pass, int32_t begin, int32_t end) const {
  input_.enter(pass, begin, end);
}

void Mamba1Layer::leave(const Pass& pass, int32_t begin, int32_t end) const {
  out_.leave(pass, begin, end);
}

ColumnShares<2> Mamba1Layer::input_shares(const Pass& pass) const {
  return {pass, {&x_in_, &z_in_}, 16};
}

kernels::NextWeights Mamba1Layer::first_weights(const Pass& pass) const {
  return input_shares(pass).first_weights(pass.member, 0);
}

void Mamba1Layer::compute(const Pass& pass, const RowRange& rows,
                          const kernels::NextWeights& after) const {
  project(pass);
  pass.team.barrier(pass.member);
  claim_pieces(pass, conv_.blocks(), [&](const BatchSlice& slice, int32_t block) {
    const trace::Scope scope(trace::Kind::kKernel, "short_conv");
    convolve(pass, slice, block);
  });
  find_parameters(pass);
  pass.team.barrier(pass.member);
  if (spec_.norms != Mamba1::kNone) {
    claim_rows(pass, rows, [&](int32_t begin, int32_t end) {
      const trace::Scope scope(trace::Kind::kKernel, "norm");
      normalise(pass, begin, end);
    });
    pass.team.barrier(pass.member);
  }
  find_steps(pass);
  pass.team.barrier(pass.member);
  claim_pieces(pass, conv_.blocks(), [&](const BatchSlice& slice, int32_t block) {
    const trace::Scope scope(trace::Kind::kKernel, "mamba1");
    follow(pass, slice, block);
  });
  out_.project(pass, rows, after);
}

void Mamba1Layer::project(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "in_proj");
  const Activations in = {
      .x = pass.normed(), .forms = &pass.normed_forms(), .prompt_begin = pass.prompt_begin};
  project_columns<2>(pass, {&x_in_, &z_in_}, {pass.ws.at(x_), pass.ws.at(z_)}, in,
                     input_shares(pass), out_.first_weights(pass));
}

// One block of channels through the rows of a slice, in order.
void Mamba1Layer::convolve(const Pass& pass, const BatchSlice& slice, int32_t block) const {
  const int32_t first = conv_.first(block), n = conv_.count(block);
  float* const inputs = pass.ws.at(x_) + first;
  const StateTape tape(pass, memory_, slice);
  tape.exchange(first, {inputs, spec_.inner, n});
  // What products make of convolved rows is on the tape too: replayed rows are in no product.
  tape.restore(spec_.inner + first, {pass.ws.at(steps_) + first, spec_.inner, n});
  if (block == 0)
    tape.restore(int64_t{2} * spec_.inner,
                 {pass.ws.at(parameters_), parameters_in_.n, parameters_in_.n});
  StatePiece state(pass, memory_, slice, block * conv_.piece_floats(), conv_.piece_floats());
  state.take_rows(tape.rows(), [&](const RowRange& rows) {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      float* const x = inputs + row * spec_.inner;
      conv_.step(pass.ops, block, state.begin(), x);
      pass.ops.act(kernels::Act::kSilu, n, x);
    }
  });
}

void Mamba1Layer::find_parameters(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "x_proj");
  project_columns<1>(pass, {&parameters_in_}, {pass.ws.at(parameters_)}, {.x = pass.ws.at(x_)},
                     {pass, {&parameters_in_}, 16}, out_.first_weights(pass));
}

void Mamba1Layer::normalise(const Pass& pass, int32_t begin, int32_t end) const {
  const std::array<int32_t, 3> sizes = {spec_.step_rank, spec_.state_dim, spec_.state_dim};
  for (int64_t row = begin; row < end; ++row) {
    float* part = pass.ws.at(parameters_) + row * parameters_in_.n;
    for (size_t i = 0; i < sizes.size(); part += sizes[i++])
      pass.ops.rms_norm(part, norms_[i], spec_.norm_eps, sizes[i], part);
  }
}

// Before their softplus, which is the scan's.
void Mamba1Layer::find_steps(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "dt_proj");
  const ColumnShares<1> shares(pass, {&step_in_}, 16);
  claim_columns(pass, shares, out_.first_weights(pass),
                [&](const ColumnRange& columns, const kernels::NextWeights& next) {
                  const kernels::GemmRange range = {.rows = pass.rows(),
                                                    .begin = columns.begin,
                                                    .end = columns.end,
                                                    .y = pass.ws.at(steps_),
                                                    .y_stride = spec_.inner,
                                                    .next = next};
                  multiply_floats(pass.ops, step_in_, parameters(pass, 0), parameters_in_.n, range,
                                  pass.scratch());
                  add_bias(pass.ops, step_in_, range);
                });
}

// One block of channels through the rows of a slice, in order.
void Mamba1Layer::follow(const Pass& pass, const BatchSlice& slice, int32_t block) const {
  const int64_t floats = block_floats(spec_);
  StatePiece state(pass, memory_, slice, conv_.state_floats() + block * floats, floats);
  const int32_t first = conv_.first(block), n = conv_.count(block);
  const int32_t end = slice.row_begin + slice.rows;
  const StateTape tape(pass, memory_, slice);
  tape.keep(spec_.inner + first, {pass.ws.at(steps_) + first, spec_.inner, n});
  if (block == 0)
    tape.keep(int64_t{2} * spec_.inner,
              {pass.ws.at(parameters_), parameters_in_.n, parameters_in_.n});
  state.take_rows(tape.rows(), [&](const RowRange& rows) {
    scan(pass, rows, block, state.begin());
  });
  for (int64_t row = slice.row_begin; row < end; ++row) {
    float* const y = out_.row(pass, row) + first;
    const float* const z = pass.ws.at(z_) + row * spec_.inner + first;
    pass.ops.gated_act(z, y, {.act = kernels::Act::kSilu}, n, y);
  }
  out_.finish(pass, slice.row_begin, end, first, n);
}

void Mamba1Layer::scan(const Pass& pass, const RowRange& rows, int32_t block, float* state) const {
  const int32_t first = conv_.first(block);
  const auto channels = [&](const Buffer<float>& buffer) {
    return kernels::TokenRows{pass.ws.at(buffer) + int64_t{rows.begin} * spec_.inner + first,
                              spec_.inner};
  };
  const float* const b = parameters(pass, rows.begin) + spec_.step_rank;
  pass.ops.selective_scan({.state = state,
                           .rate = rate_ + block * block_floats(spec_),
                           .skip = skip_ + first,
                           .tokens = rows.count(),
                           .channels = conv_.count(block),
                           .states = spec_.state_dim,
                           .x = channels(x_),
                           .step = channels(steps_),
                           .b = {b, parameters_in_.n},
                           .c = {b + spec_.state_dim, parameters_in_.n},
                           .out = out_.row(pass, rows.begin) + first,
                           .out_stride = out_.width()});
}

}  // namespace weir::model
