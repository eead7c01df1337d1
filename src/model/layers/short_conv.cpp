#include "model/layers/short_conv.h"

#include <algorithm>
#include <array>

#include "model/layers/project_columns.h"
#include "model/layers/state_piece.h"

namespace weir::model {

namespace {

ConvBlocks convolution(const ShortConv& spec) {
  return {.channels = spec.channels, .taps = spec.taps};
}

}  // namespace

int64_t ShortConvLayer::state_bytes(const ShortConv& spec) {
  return convolution(spec).state_floats() * int64_t{sizeof(float)};
}

int64_t ShortConvLayer::tape_bytes(const ShortConv& spec) {
  return spec.channels * int64_t{sizeof(float)};
}

ShortConvLayer::ShortConvLayer(const LayerSource& source, const ShortConv& spec)
    : spec_(spec), memory_(source.memory), output_(SublayerOutput::bind(source)) {
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  const int32_t n = spec_.channels;
  const std::array<WeightBinder::Part, 3> parts = {
      {{"conv.before_proj", n}, {"conv.after_proj", n}, {"conv.x_proj", n}}};
  const std::vector<Linear> bound = binder.linears(layer, parts, source.hidden, spec_.bias);
  before_ = bound[0];
  after_ = bound[1];
  x_ = bound[2];
  out_ = binder.linear(layer, "conv.out_proj", source.hidden, n, spec_.bias);
  conv_ = convolution(spec_);
  conv_.weights = binder.convolution(layer, "conv.conv", n, spec_.taps);
  if (spec_.bias) conv_.bias = binder.vector(layer, "conv.conv.bias", n, 0, /*bare=*/true);
  input_ = SublayerInput::bind(source,
                               static_cast<uint8_t>(before_.forms() | after_.forms() | x_.forms()));

  ScratchPlan& scratch = source.scratch;
  for (Buffer<float>* const buffer : {&gates_before_, &gates_after_, &mixed_})
    *buffer = scratch.ask<float>(BufferUse::kComputing, {.per_row = n});
  mixed_forms_ = scratch.ask_forms(n, 1, out_.forms());
}

LayerFacts ShortConvLayer::facts() const {
  LayerFacts facts = {.leaves_nothing = output_.adds_columns()};
  for (const Linear* weight : {&before_, &after_, &x_, &out_}) facts.add(*weight);
  return facts;
}

void ShortConvLayer::enter(const Pass& pass, int32_t begin, int32_t end) const {
  input_.enter(pass, begin, end);
}

void ShortConvLayer::leave(const Pass& pass, int32_t begin, int32_t end) const {
  if (!output_.adds_columns()) output_.add_rows(pass, begin, end);
}

ColumnShares<3> ShortConvLayer::input_shares(const Pass& pass) const {
  return {pass, {&before_, &after_, &x_}, 16};
}

kernels::NextWeights ShortConvLayer::first_weights(const Pass& pass) const {
  return input_shares(pass).first_weights(pass.member, 0);
}

void ShortConvLayer::compute(const Pass& pass, const RowRange& rows,
                             const kernels::NextWeights& after) const {
  project(pass);
  pass.team.barrier(pass.member);
  claim_pieces(pass, conv_.blocks(), [&](const BatchSlice& slice, int32_t block) {
    const trace::Scope scope(trace::Kind::kKernel, "short_conv");
    follow(pass, slice, block);
  });
  const trace::Scope scope(trace::Kind::kKernel, "out_proj");
  const Activations in = {.x = pass.ws.at(mixed_),
                          .forms = &pass.ws.at(mixed_forms_),
                          .prompt_begin = pass.prompt_begin};
  output_.project(pass, out_, in, rows, after);
  pass.team.barrier(pass.member);
}

void ShortConvLayer::project(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "in_proj");
  const Activations in = {
      .x = pass.normed(), .forms = &pass.normed_forms(), .prompt_begin = pass.prompt_begin};
  project_columns<3>(pass, {&before_, &after_, &x_},
                     {pass.ws.at(gates_before_), pass.ws.at(gates_after_), pass.ws.at(mixed_)}, in,
                     input_shares(pass), SublayerOutput::first_weights(pass, out_));
}

// One block of channels through the rows of a slice, in order.
void ShortConvLayer::follow(const Pass& pass, const BatchSlice& slice, int32_t block) const {
  const kernels::Ops& ops = pass.ops;
  const int32_t first = conv_.first(block), n = conv_.count(block);
  const int32_t end = slice.row_begin + slice.rows;
  for (int64_t row = slice.row_begin; row < end; ++row) {
    const int64_t at = row * out_.k + first;
    ops.product(pass.ws.at(gates_before_) + at, n, pass.ws.at(mixed_) + at);
  }
  const StateTape tape(pass, memory_, slice);
  tape.exchange(first, {pass.ws.at(mixed_) + first, out_.k, n});
  StatePiece state(pass, memory_, slice, block * conv_.piece_floats(), conv_.piece_floats());
  state.take_rows(tape.rows(), [&](const RowRange& rows) {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      float* const x = pass.ws.at(mixed_) + row * out_.k + first;
      conv_.step(ops, block, state.begin(), x);
      ops.product(pass.ws.at(gates_after_) + row * out_.k + first, n, x);
    }
  });
  pass.ws.at(mixed_forms_)
      .convert(ops, out_.forms(), pass.ws.at(mixed_) + int64_t{slice.row_begin} * out_.k + first,
               out_.k,
               {.k = out_.k, .begin = slice.row_begin, .end = end, .column = first, .columns = n},
               pass.prompt_begin);
}

}  // namespace weir::model
