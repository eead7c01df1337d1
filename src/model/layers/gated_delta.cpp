#include "model/layers/gated_delta.h"

#include <algorithm>
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

// What a row brings for a key head: its channels, and of each value head a beta and the decays.
int64_t tape_floats(const GatedDelta& d) {
  return 2 * d.key_dim + int64_t{d.group()} * (d.value_dim + 1 + d.decays());
}

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

int64_t GatedDeltaLayer::tape_bytes(const GatedDelta& spec) {
  return spec.key_heads * tape_floats(spec) * int64_t{sizeof(float)};
}

GatedDeltaLayer::GatedDeltaLayer(const LayerSource& source, const GatedDelta& spec)
    : spec_(spec), memory_(source.memory), output_(SublayerOutput::bind(source)) {
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  const int32_t values = spec_.value_heads * spec_.value_dim;
  bind_inputs(source);
  bind_convolution(source);
  bind_rates(source);
  norm_ = binder.vector(layer, "linear_attn.o_norm", spec_.value_dim, 0);
  out_ = binder.linear(layer, "linear_attn.o_proj", source.hidden, values);
  // Tiled values of a key head lie apart.
  converts_heads_ = !spec_.tiled && head_values() % (out_.int8 ? out_.quant.group : 32) == 0;
  uint8_t forms = 0;
  for (const Linear& weight : in_) forms |= weight.forms();
  input_ = SublayerInput::bind(source, forms);

  ScratchPlan& scratch = source.scratch;
  const auto ask = [&](int32_t width) {
    return scratch.ask<float>(BufferUse::kComputing, {.per_row = width});
  };
  for (size_t i = 0; i < kInputs; ++i) inputs_[i] = ask(in_[i].n);
  if (gate_b_.n > 0) gate_latents_ = inputs_[kGate], inputs_[kGate] = ask(gate_b_.n);
  if (decay_b_.n > 0) decay_latents_ = inputs_[kDecay], inputs_[kDecay] = ask(decay_b_.n);
  attended_ = ask(out_.k);
  attended_forms_ = scratch.ask_forms(out_.k, 1, out_.forms());
}

void GatedDeltaLayer::bind_inputs(const LayerSource& source) {
  const int32_t keys = spec_.key_heads * spec_.key_dim;
  const int32_t values = spec_.value_heads * spec_.value_dim;
  const int32_t decays = spec_.value_heads * spec_.decays();
  const int32_t gate_rank = spec_.gate_rank, decay_rank = spec_.decay_rank;
  const std::array<WeightBinder::Part, kInputs> parts = {
      {{"linear_attn.q_proj", keys},
       {"linear_attn.k_proj", keys},
       {"linear_attn.v_proj", values},
       gate_rank > 0 ? WeightBinder::Part{"linear_attn.g_a_proj", gate_rank}
                     : WeightBinder::Part{"linear_attn.g_proj", values},
       {"linear_attn.b_proj", spec_.value_heads},
       decay_rank > 0 ? WeightBinder::Part{"linear_attn.f_a_proj", decay_rank}
                      : WeightBinder::Part{"linear_attn.a_proj", decays}}};
  const int layer = source.stored_layer();
  WeightBinder& binder = source.binder;
  std::ranges::copy(binder.linears(layer, parts, source.hidden, /*bias=*/false), in_.begin());
  // Latents are short: to convert them would cost a phase, and save little.
  const auto second = [&](const char* part, int32_t n, int32_t rank) {
    return rank == 0 ? Linear{}
                     : binder.linear(layer, part, n, rank, false, Precision::kFloatActivations);
  };
  gate_b_ = second("linear_attn.g_b_proj", values, gate_rank);
  decay_b_ = second("linear_attn.f_b_proj", decays, decay_rank);
}

// One for all channels, or one for each of q, k and v.
void GatedDeltaLayer::bind_convolution(const LayerSource& source) {
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  const std::array<const char*, kConvolved.size()> own = {
      "linear_attn.q_conv1d", "linear_attn.k_conv1d", "linear_attn.v_conv1d"};
  const bool together = binder.has_weight(layer, "linear_attn.conv1d");
  const int32_t all = spec_.key_heads * head_channels();
  const float* shared =
      together ? binder.convolution(layer, "linear_attn.conv1d", all, spec_.conv_taps) : nullptr;
  int32_t first = 0;
  for (const Input kind : kConvolved) {
    const int32_t channels = spec_.key_heads * head_width(kind);
    taps_[kind] =
        together ? Taps{shared + first, all}
                 : Taps{binder.convolution(layer, own[kind], channels, spec_.conv_taps), channels};
    first += channels;
  }
}

void GatedDeltaLayer::bind_rates(const LayerSource& source) {
  const int layer = source.stored_layer();
  const int32_t heads = spec_.value_heads;
  // GGUF files hold -exp(A_log).
  const bool rates = source.binder.has_tensor(layer, "linear_attn.decay_rates");
  const char* const name = rates ? "linear_attn.decay_rates" : "linear_attn.A_log";
  const float* a_log = source.binder.vector(layer, name, heads, 0, /*bare=*/true);
  dt_bias_ = source.binder.vector(layer, "linear_attn.dt_bias", heads * spec_.decays(), 0,
                                  /*bare=*/true);
  for (int32_t head = 0; a_log != nullptr && head < heads; ++head)
    rates_.insert(rates_.end(), static_cast<size_t>(spec_.decays()),
                  rates ? -a_log[head] : std::exp(a_log[head]));
}

int32_t GatedDeltaLayer::head_width(Input kind) const {
  switch (kind) {
    case kQ:
    case kK:
      return spec_.key_dim;
    case kV:
    case kGate:
      return head_values();
    case kBeta:
      return spec_.group();
    case kDecay:
      return spec_.group() * spec_.decays();
  }
  return 0;
}

int32_t GatedDeltaLayer::runs(Input kind) const {
  return spec_.tiled && kind != kQ && kind != kK ? spec_.group() : 1;
}

int64_t GatedDeltaLayer::run_begin(Input kind, int32_t head, int32_t run) const {
  return (int64_t{run} * spec_.key_heads + head) * (head_width(kind) / runs(kind));
}

float* GatedDeltaLayer::head_row(const Pass& pass, Input kind, int64_t row, int32_t head,
                                 int32_t run) const {
  return pass.ws.at(inputs_[kind]) + row * spec_.key_heads * head_width(kind) +
         run_begin(kind, head, run);
}

kernels::TokenRows GatedDeltaLayer::value_rows(const Pass& pass, Input kind, int64_t row,
                                               int32_t head, int32_t i) const {
  const int64_t width = head_width(kind) / spec_.group();
  const int64_t stride = int64_t{spec_.key_heads} * head_width(kind);
  return {pass.ws.at(inputs_[kind]) + row * stride + spec_.value_head(head, i) * width, stride};
}

kernels::TokenRows GatedDeltaLayer::head_rows(const Pass& pass, Input kind, int64_t row,
                                              int32_t head) const {
  return {head_row(pass, kind, row, head), int64_t{spec_.key_heads} * head_width(kind)};
}

LayerFacts GatedDeltaLayer::facts() const {
  LayerFacts facts = {.leaves_nothing = output_.adds_columns()};
  for (const Linear& weight : in_) facts.add(weight);
  for (const Linear* weight : {&gate_b_, &decay_b_, &out_}) facts.add(*weight);
  return facts;
}

void GatedDeltaLayer::enter(const Pass& pass, int32_t begin, int32_t end) const {
  input_.enter(pass, begin, end);
}

void GatedDeltaLayer::leave(const Pass& pass, int32_t begin, int32_t end) const {
  if (!output_.adds_columns()) output_.add_rows(pass, begin, end);
}

ColumnShares<GatedDeltaLayer::kInputs> GatedDeltaLayer::input_shares(const Pass& pass) const {
  return {pass, {&in_[kQ], &in_[kK], &in_[kV], &in_[kGate], &in_[kBeta], &in_[kDecay]}, 64};
}

ColumnShares<2> GatedDeltaLayer::second_shares(const Pass& pass) const {
  if (gate_b_.n == 0) return {pass, {&decay_b_, &gate_b_}, 64};
  return {pass, {&gate_b_, &decay_b_}, 64};
}

kernels::NextWeights GatedDeltaLayer::first_weights(const Pass& pass) const {
  return input_shares(pass).first_weights(pass.member, 0);
}

void GatedDeltaLayer::compute(const Pass& pass, const RowRange& rows,
                              const kernels::NextWeights& after) const {
  project(pass);
  pass.team.barrier(pass.member);
  if (gate_b_.n + decay_b_.n > 0) {
    project_latents(pass);
    pass.team.barrier(pass.member);
  }
  claim_pieces(pass, spec_.key_heads, [&](const BatchSlice& slice, int32_t head) {
    const trace::Scope scope(trace::Kind::kKernel, "gated_delta");
    follow(pass, slice, head);
  });
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
  std::array<const Linear*, kInputs> weights{};
  std::array<float*, kInputs> outputs{};
  for (size_t i = 0; i < kInputs; ++i) weights[i] = &in_[i], outputs[i] = pass.ws.at(inputs_[i]);
  if (gate_b_.n > 0) outputs[kGate] = pass.ws.at(gate_latents_);
  if (decay_b_.n > 0) outputs[kDecay] = pass.ws.at(decay_latents_);
  project_columns<kInputs>(pass, weights, outputs, in, input_shares(pass),
                           SublayerOutput::first_weights(pass, out_));
}

void GatedDeltaLayer::project_latents(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "latents_proj");
  const auto multiply_range = [&](const ColumnRange& columns, const kernels::NextWeights& next) {
    const bool gates = gate_b_.n > 0 && columns.weight == 0;
    const Linear& weight = gates ? gate_b_ : decay_b_;
    multiply(pass, weight, {.x = pass.ws.at(gates ? gate_latents_ : decay_latents_)},
             {.rows = pass.rows(),
              .begin = columns.begin,
              .end = columns.end,
              .y = pass.ws.at(inputs_[gates ? kGate : kDecay]),
              .y_stride = weight.n,
              .next = next});
  };
  claim_columns(pass, second_shares(pass), SublayerOutput::first_weights(pass, out_),
                multiply_range);
}

// What a head's rows bring is kept as it is projected.
void GatedDeltaLayer::exchange_tape(const Pass& pass, const StateTape& tape, int32_t head) const {
  int64_t at = head * tape_floats(spec_);
  for (const Input kind : {kQ, kK, kV, kBeta, kDecay}) {
    const int32_t width = head_width(kind) / runs(kind);
    for (int32_t run = 0; run < runs(kind); ++run, at += width)
      tape.exchange(at, {head_row(pass, kind, 0, head, run),
                         int64_t{spec_.key_heads} * head_width(kind), width});
  }
}

// One key head through the rows of a slice, in order.
void GatedDeltaLayer::follow(const Pass& pass, const BatchSlice& slice, int32_t head) const {
  const int64_t floats = piece_floats(spec_);
  const StateTape tape(pass, memory_, slice);
  exchange_tape(pass, tape, head);
  StatePiece state(pass, memory_, slice, head * floats, floats);
  const int32_t end = slice.row_begin + slice.rows;
  state.take_rows(tape.rows(), [&](const RowRange& rows) {
    float* const history = state.begin();
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      convolve(pass, row, head, history);
      find_rates(pass, row, head);
    }
    attend(pass, rows, head, history + int64_t{spec_.conv_taps - 1} * head_channels());
  });
  if (converts_heads_)
    convert(pass, {.k = out_.k,
                   .begin = slice.row_begin,
                   .end = end,
                   .column = head * head_values(),
                   .columns = head_values()});
}

// Queries, keys and values of a row: the next ones of their convolution, and what they become.
void GatedDeltaLayer::convolve(const Pass& pass, int64_t row, int32_t head, float* history) const {
  for (const Input kind : kConvolved) {
    const int32_t width = head_width(kind) / runs(kind);
    for (int32_t run = 0; run < runs(kind); ++run) {
      float* const x = head_row(pass, kind, row, head, run);
      pass.ops.conv_step({.weights = taps_[kind].weights + run_begin(kind, head, run),
                          .weight_stride = taps_[kind].stride,
                          .history = history,
                          .history_stride = head_channels(),
                          .taps = spec_.conv_taps},
                         width, x);
      pass.ops.act(kernels::Act::kSilu, width, x);
      history += width;
    }
  }
  const float scale = 1 / std::sqrt(static_cast<float>(spec_.key_dim));
  make_unit(pass.ops, scale, spec_.key_dim, head_row(pass, kQ, row, head));
  make_unit(pass.ops, 1, spec_.key_dim, head_row(pass, kK, row, head));
}

// How much of their states a row's value heads keep, and how much of the change they take.
void GatedDeltaLayer::find_rates(const Pass& pass, int64_t row, int32_t head) const {
  for (int32_t run = 0; run < runs(kBeta); ++run) {
    const int32_t heads = head_width(kBeta) / runs(kBeta);
    float* const beta = head_row(pass, kBeta, row, head, run);
    pass.ops.act(kernels::Act::kSigmoid, heads, beta);
    if (spec_.beta_most != 1) pass.ops.scale(spec_.beta_most, heads, beta);
    const int64_t first = run_begin(kDecay, head, run);
    pass.ops.delta_decays(rates_.data() + first, dt_bias_ + first,
                          head_width(kDecay) / runs(kDecay),
                          head_row(pass, kDecay, row, head, run));
  }
}

// The value heads of a key head, for some rows.
void GatedDeltaLayer::attend(const Pass& pass, const RowRange& rows, int32_t head,
                             float* states) const {
  const int32_t width = spec_.value_dim;
  const kernels::GatedAct gate = {.act = spec_.sigmoid_gate ? kernels::Act::kSigmoid
                                                            : kernels::Act::kSilu};
  for (int32_t i = 0; i < spec_.group(); ++i) {
    float* const out = pass.ws.at(attended_) + int64_t{rows.begin} * out_.k +
                       int64_t{spec_.value_head(head, i)} * width;
    pass.ops.delta_run({.state = states + int64_t{i} * spec_.key_dim * width,
                        .tokens = rows.count(),
                        .dk = spec_.key_dim,
                        .dv = width,
                        .q = head_rows(pass, kQ, rows.begin, head),
                        .k = head_rows(pass, kK, rows.begin, head),
                        .v = value_rows(pass, kV, rows.begin, head, i),
                        .decay = value_rows(pass, kDecay, rows.begin, head, i),
                        .key_decays = spec_.key_decays,
                        .beta = value_rows(pass, kBeta, rows.begin, head, i),
                        .out = out,
                        .out_stride = out_.k});
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      float* const y = out + (row - rows.begin) * out_.k;
      pass.ops.rms_norm(y, norm_, spec_.norm_eps, width, y);
      pass.ops.gated_act(value_rows(pass, kGate, row, head, i).x, y, gate, width, y);
    }
  }
}

void GatedDeltaLayer::convert(const Pass& pass, const ActivationForms::Part& part) const {
  const float* x = pass.ws.at(attended_) + int64_t{part.begin} * out_.k + part.column;
  pass.ws.at(attended_forms_).convert(pass.ops, out_.forms(), x, out_.k, part, pass.prompt_begin);
}

}  // namespace weir::model
