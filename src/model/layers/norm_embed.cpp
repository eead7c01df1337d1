#include "model/layers/norm_embed.h"

#include <algorithm>

#include "base/check.h"
#include "model/adapted_product.h"

namespace weir::model {

void normalise(const kernels::Ops& ops, const NormWeights& norm, const float* x, int32_t n,
               int32_t begin, int32_t end, float* y) {
  for (int64_t row = begin; row < end; ++row) {
    if (norm.kind == Norm::kRms)
      ops.rms_norm(x + row * n, norm.weight, norm.eps, n, y + row * n);
    else
      ops.layer_norm(x + row * n, norm.weight, norm.bias, norm.eps, n, y + row * n);
  }
}

SublayerInput SublayerInput::bind(const LayerSource& source, uint8_t forms) {
  source.scratch.ask_input(forms);
  SublayerInput input;
  input.forms = forms;
  const Sublayer& sublayer = source.sublayer;
  input.same_as_before = sublayer.input == Sublayer::kSameAsBefore;
  if (sublayer.predicts)
    input.predicts = StreamStep(source.binder, source.stored_layer(), *source.streams);
  if (source.hyper != nullptr)
    input.hyper =
        HyperConnection(source.binder, source.stored_layer(), sublayer.hyper, *source.hyper);
  if (sublayer.pre)
    input.norm = source.binder.norm(source.stored_layer(), *sublayer.pre, source.hidden);
  if (sublayer.beside_token) input.beside = source.beside;
  return input;
}

void SublayerInput::enter(const Pass& pass, int32_t begin, int32_t end) const {
  const Residual& residual = pass.ws.residual;
  const int32_t hidden = residual.width();
  float* y = pass.normed();
  if (beside) return enter_beside(pass, begin, end);
  for (int32_t row = begin; predicts && row < end; ++row) predicts->predict(pass, row);
  for (int32_t row = begin; hyper && row < end; ++row) hyper->read(pass, row);
  if (norm)
    normalise(pass.ops, *norm, residual.row(0), hidden, begin, end, y);
  else if (!same_as_before)
    std::copy(residual.row(begin), residual.row(end), y + int64_t{begin} * hidden);
  pass.normed_forms().convert(pass.ops, forms, y + int64_t{begin} * hidden, hidden,
                              {.k = hidden, .begin = begin, .end = end, .columns = hidden},
                              pass.prompt_begin);
}

void SublayerInput::convert(const Pass& pass, int32_t begin, int32_t end) const {
  const Residual& residual = pass.ws.residual;
  const int32_t hidden = residual.width();
  float* const y = pass.normed() + int64_t{begin} * hidden;
  std::copy(residual.row(begin), residual.row(end), y);
  pass.normed_forms().convert(pass.ops, forms, y, hidden,
                              {.k = hidden, .begin = begin, .end = end, .columns = hidden},
                              pass.prompt_begin);
}

void SublayerInput::enter_beside(const Pass& pass, int32_t begin, int32_t end) const {
  const Residual& residual = pass.ws.residual;
  const int32_t hidden = residual.width(), width = 2 * hidden;
  for (int64_t row = begin; row < end; ++row) {
    float* const y = pass.normed() + row * width;
    std::copy_n(pass.ws.at(*beside) + row * hidden, hidden, y);
    if (norm)
      normalise(pass.ops, *norm, residual.row(row), hidden, 0, 1, y + hidden);
    else
      std::copy_n(residual.row(row), hidden, y + hidden);
  }
  pass.normed_forms().convert(pass.ops, forms, pass.normed() + int64_t{begin} * width, width,
                              {.k = width, .begin = begin, .end = end, .columns = width},
                              pass.prompt_begin);
}

namespace {

// Any columns of one weight.
ColumnShares<1> shares_of(const Pass& pass, const Linear& weight) { return {pass, {&weight}, 16}; }

}  // namespace

SublayerOutput SublayerOutput::bind(const LayerSource& source) {
  SublayerOutput output;
  const Sublayer& sublayer = source.sublayer;
  const int layer = source.stored_layer();
  output.scale = sublayer.scale;
  output.carry = sublayer.carry;
  output.carries_input = sublayer.carries_input;
  output.late = sublayer.late;
  output.holds_ = sublayer.held;
  output.adds_held_ = sublayer.adds_held;
  if (sublayer.post) output.norm = source.binder.norm(layer, *sublayer.post, source.hidden);
  if (source.hyper != nullptr)
    output.hyper_ = HyperConnection(source.binder, layer, sublayer.hyper, *source.hyper);
  if (output.adds_columns()) return output;
  if (sublayer.joint) output.joint = source.binder.norm(layer, *sublayer.joint, source.hidden);
  if (!sublayer.stream_scale.empty())
    output.stream_scale = source.binder.vector(layer, sublayer.stream_scale, 1, 0, /*bare=*/true);
  output.plus_input_ = sublayer.plus_input;
  output.corrects_ = sublayer.corrects;
  output.to_others_ = sublayer.to_others;
  output.stream_factor_ = sublayer.stream_factor;
  if (sublayer.corrects || sublayer.to_others)
    output.streams_ = StreamStep(source.binder, layer, *source.streams);
  output.held_ = source.held;
  output.delta_ = source.scratch.ask<float>(BufferUse::kComputing, {.per_row = source.hidden});
  return output;
}

void SublayerOutput::project(const Pass& pass, const Linear& weight, const Activations& in,
                             const RowRange& rows, const kernels::NextWeights& after) const {
  claim_columns(pass, shares_of(pass, weight), after,
                [&](const ColumnRange& columns, const kernels::NextWeights& next) {
                  project_columns(pass, weight, in, rows, columns, next);
                });
}

kernels::NextWeights SublayerOutput::first_weights(const Pass& pass, const Linear& weight) {
  return shares_of(pass, weight).first_weights(pass.member, 0);
}

void SublayerOutput::project_columns(const Pass& pass, const Linear& weight, const Activations& in,
                                     const RowRange& rows, const ColumnRange& columns,
                                     const kernels::NextWeights& next) const {
  Activations some = in;
  some.first_row = rows.begin;
  if (!adds_columns()) {
    const kernels::GemmRange range = {.rows = rows.count(),
                                      .begin = columns.begin,
                                      .end = columns.end,
                                      .y = pass.ws.at(delta_) + int64_t{rows.begin} * weight.n,
                                      .y_stride = weight.n,
                                      .next = next};
    multiply(pass, weight, some, range);
    add_bias(pass.ops, weight, range);
    return;
  }
  // Added to the residual stream at once, from a block of columns that stays in the cache.
  for_column_blocks(columns, Workspace::kBlockColumns, [&](int32_t first, int32_t last) {
    kernels::GemmRange range = block_range(pass, 0, rows.count(), first, last);
    const int32_t end = std::min(2 * last - first, columns.end);
    range.next = last < columns.end ? next_weights(weight, last, end) : next;
    multiply(pass, weight, some, range);
    add_bias(pass.ops, weight, range);
    pass.ws.residual.add_columns(pass.ops, range, scale, rows.begin);
  });
}

void SublayerOutput::add_rows(const Pass& pass, int32_t begin, int32_t end) const {
  const Residual& residual = pass.ws.residual;
  for (int32_t row = begin; row < end; ++row)
    add_row(pass, pass.ws.at(delta_) + int64_t{row} * residual.width(), row);
}

void SublayerOutput::add_row(const Pass& pass, float* delta, int32_t row) const {
  const Residual& residual = pass.ws.residual;
  const int32_t width = residual.width();
  if (norm) normalise(pass.ops, *norm, delta, width, 0, 1, delta);
  if (hyper_) return hyper_->give(pass, delta, row);
  if (holds_) {
    std::copy_n(delta, width, pass.ws.at(held_) + int64_t{row} * width);
    return;
  }
  if (joint) {
    pass.ops.add_scaled(pass.ws.at(held_) + int64_t{row} * width, 1, width, delta);
    normalise(pass.ops, *joint, delta, width, 0, 1, delta);
  }
  if (to_others_) return streams_->add_to_others(pass, delta, row);
  if (carries_input)
    std::copy_n(pass.normed() + int64_t{row} * width, width, residual.begin_row(row));
  if (carry != 1) residual.scale_row(pass.ops, carry, row);
  residual.add_row(pass.ops, delta, scale, row);
  if (adds_held_) residual.add_row(pass.ops, pass.ws.at(held_) + int64_t{row} * width, 1, row);
  if (plus_input_) residual.add_row(pass.ops, pass.normed() + int64_t{row} * width, 1, row);
  if (stream_factor_ != 1) residual.scale_row(pass.ops, stream_factor_, row);
  if (corrects_) streams_->correct(pass, row);
  if (stream_scale != nullptr) residual.scale_row(pass.ops, *stream_scale, row);
}

Embedding::Embedding(WeightBinder& binder, const ModelSpec& spec)
    : weight_(binder.linear(kWholeModel, "embed_tokens", spec.vocab_size, spec.hidden_size)),
      scale_(spec.embed_scale) {
  if (spec.learned_positions > 0)
    positions_ = binder.linear(kWholeModel, "embed_positions", spec.learned_positions,
                               spec.hidden_size, /*bias=*/false, Precision::kFloatActivations);
  if (spec.embed_norm) norm_ = binder.norm(kWholeModel, *spec.embed_norm, spec.hidden_size);
}

void Embedding::look_up(const Pass& pass, int32_t token, float* out) const {
  CHECK(token >= 0 && token < weight_.n);
  read_row(pass.ops, weight_, token, out);
  if (scale_ != 1) pass.ops.scale(scale_, weight_.k, out);
}

void Embedding::embed(const Pass& pass, int32_t row, int32_t token) const {
  CHECK(token >= 0 && token < weight_.n);
  float* out = pass.ws.residual.begin_row(row);
  read_row(pass.ops, weight_, token, out);
  if (pass.adapted) adapt_embedding(pass, weight_, row, token, out);
  if (scale_ != 1) pass.ops.scale(scale_, weight_.k, out);
}

void Embedding::finish(const Pass& pass, int32_t row) const {
  const Residual& residual = pass.ws.residual;
  if (positions_.n > 0) {
    const int32_t position = pass.ws.position[row];
    CHECK(position < positions_.n);
    // No sublayer has begun: its input's place is free.
    float* vector = pass.normed() + int64_t{row} * residual.width();
    read_row(pass.ops, positions_, position, vector);
    residual.add_row(pass.ops, vector, 1, row);
  }
  if (norm_)
    normalise(pass.ops, *norm_, residual.row(row), residual.width(), 0, 1, residual.begin_row(row));
}

}  // namespace weir::model
