#include "model/layers/norm_embed.h"

#include <algorithm>

#include "base/check.h"

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
  if (sublayer.pre)
    input.norm = source.binder.norm(source.stored_layer(), *sublayer.pre, source.hidden);
  return input;
}

void SublayerInput::enter(const Pass& pass, int32_t begin, int32_t end) const {
  const Residual& residual = pass.ws.residual;
  const int32_t hidden = residual.width();
  float* y = pass.normed();
  if (norm)
    normalise(pass.ops, *norm, residual.row(0), hidden, begin, end, y);
  else if (!same_as_before)
    std::copy(residual.row(begin), residual.row(end), y + int64_t{begin} * hidden);
  pass.normed_forms().convert(pass.ops, forms, y + int64_t{begin} * hidden, hidden,
                              {.k = hidden, .begin = begin, .end = end, .columns = hidden},
                              pass.prompt_begin);
}

namespace {

// Any columns of one weight.
ColumnShares<1> shares_of(const Pass& pass, const Linear& weight) { return {pass, {&weight}, 16}; }

}  // namespace

SublayerOutput SublayerOutput::bind(const LayerSource& source) {
  SublayerOutput output;
  output.scale = source.sublayer.scale;
  if (!source.sublayer.post) return output;
  output.norm = source.binder.norm(source.stored_layer(), *source.sublayer.post, source.hidden);
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
  if (norm) {
    const kernels::GemmRange range = {.rows = rows.count(),
                                      .begin = columns.begin,
                                      .end = columns.end,
                                      .y = pass.ws.at(delta_) + int64_t{rows.begin} * weight.n,
                                      .y_stride = weight.n,
                                      .next = next};
    multiply(pass.ops, weight, some, range, pass.scratch());
    add_bias(pass.ops, weight, range);
    return;
  }
  // Added to the residual stream at once, from a block of columns that stays in the cache.
  for_column_blocks(columns, Workspace::kBlockColumns, [&](int32_t first, int32_t last) {
    kernels::GemmRange range = block_range(pass, 0, rows.count(), first, last);
    const int32_t end = std::min(2 * last - first, columns.end);
    range.next = last < columns.end ? next_weights(weight, last, end) : next;
    multiply(pass.ops, weight, some, range, pass.scratch());
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
  if (norm) normalise(pass.ops, *norm, delta, residual.width(), 0, 1, delta);
  residual.add_row(pass.ops, delta, scale, row);
}

Embedding::Embedding(WeightBinder& binder, const ModelSpec& spec)
    : weight_(binder.linear(kWholeModel, "embed_tokens", spec.vocab_size, spec.hidden_size)),
      scale_(spec.embed_scale) {}

void Embedding::embed(const Pass& pass, int32_t row, int32_t token) const {
  CHECK(token >= 0 && token < weight_.n);
  float* out = pass.ws.residual.begin_row(row);
  if (weight_.quantised)
    pass.ops.dequantise_row(weight_.quant, token, out);
  else
    pass.ops.widen_row(weight_.floats, token, out);
  if (scale_ != 1) pass.ops.scale(scale_, weight_.k, out);
}

Head::Head(WeightBinder& binder, const ModelSpec& spec, const Embedding& embedding)
    : norm_(binder.norm(kWholeModel, spec.final_norm, spec.hidden_size)),
      scale_(spec.logit_scale),
      softcap_(spec.logit_softcap) {
  const bool stored = binder.has_weight(kWholeModel, "lm_head");
  if (spec.tied_head && !(spec.tied_unless_stored && stored)) {
    weight_ = embedding.weight();
    binder.ignore(kWholeModel, "lm_head");  // Some files repeat the embedding under this name.
  } else {
    weight_ = binder.linear(kWholeModel, "lm_head", spec.vocab_size, spec.hidden_size);
  }
}

void Head::compute_logits(const Pass& pass, int32_t first, int32_t rows) const {
  const trace::Scope scope(trace::Kind::kKernel, "lm_head");
  const Workspace& ws = pass.ws;
  // Few rows, each of its own sequence: in int8 whether they end a prompt or not.
  const Activations in = {.x = ws.normed, .forms = &ws.normed_forms};
  // The rows of this chunk among all that were normalised.
  std::array<int32_t, kRowsMax> index;
  for (int32_t i = 0; i < rows; ++i) index[static_cast<size_t>(i)] = first + i;
  const auto compute = [&](const ColumnRange& columns, const kernels::NextWeights& next) {
    const kernels::GemmRange range = {.index = index.data(),
                                      .rows = rows,
                                      .begin = columns.begin,
                                      .end = columns.end,
                                      .y = ws.logits,
                                      .y_stride = weight_.n,
                                      .next = next};
    multiply(pass.ops, weight_, in, range, pass.scratch());
    const int32_t width = columns.end - columns.begin;
    for (int64_t row = 0; row < rows; ++row) {
      float* logits = ws.logits + row * weight_.n + columns.begin;
      if (scale_ != 1) pass.ops.scale(scale_, width, logits);
      if (softcap_ > 0) pass.ops.softcap(softcap_, width, logits);
    }
  };
  claim_columns(pass, shares_of(pass, weight_), {}, compute);
}

kernels::NextWeights Head::first_weights(const Pass& pass) const {
  if (pass.batch.sample_rows.empty()) return {};
  return shares_of(pass, weight_).first_weights(pass.member, 0);
}

// Rows [begin, end) of those that are wanted, into Workspace::normed: first the samples, then the
// hidden ones.
void Head::normalise_rows(const Pass& pass, const Layer& last, int32_t begin, int32_t end) const {
  const trace::Scope scope(trace::Kind::kKernel, "norm");
  const Workspace& ws = pass.ws;
  const int32_t hidden = weight_.k;
  const auto take = [&](int32_t row, int32_t to) {
    last.leave(pass, row, row + 1);
    normalise(pass.ops, norm_, ws.residual.row(row), hidden, 0, 1,
              ws.normed + int64_t{to} * hidden);
  };
  const auto samples = static_cast<int32_t>(pass.batch.sample_rows.size());
  const int32_t sampled = std::clamp(samples, begin, end);
  for (int32_t i = begin; i < sampled; ++i) take(pass.batch.sample_rows[static_cast<size_t>(i)], i);
  int32_t first = samples;
  for (const HiddenRows& part : pass.batch.hidden_rows) {
    for (int32_t i = std::max(first, begin); i < std::min(first + part.rows, end); ++i)
      take(part.row_begin + i - first, i);
    first += part.rows;
  }
  if (begin < sampled)
    ws.normed_forms.convert(pass.ops, weight_.forms(), ws.normed + int64_t{begin} * hidden, hidden,
                            {.k = hidden, .begin = begin, .end = sampled, .columns = hidden},
                            kNoPrompts);
}

void Head::give_hidden(const Pass& pass, ForwardClient& client) const {
  const std::span<const HiddenRows> parts = pass.batch.hidden_rows;
  claim_blocks(pass, std::ssize(parts), [&](int64_t part) {
    const trace::Scope scope(trace::Kind::kKernel, "pool");
    auto first = static_cast<int64_t>(pass.batch.sample_rows.size());
    for (int64_t i = 0; i < part; ++i) first += parts[static_cast<size_t>(i)].rows;
    const int64_t rows = parts[static_cast<size_t>(part)].rows;
    client.on_hidden(
        static_cast<int32_t>(part),
        std::span(pass.ws.normed + first * weight_.k, static_cast<size_t>(rows * weight_.k)),
        pass.member);
  });
}

void Head::forward(const Pass& pass, const Layer& last, ForwardClient& client) const {
  const auto samples = static_cast<int32_t>(pass.batch.sample_rows.size());
  int32_t wanted = samples;
  for (const HiddenRows& part : pass.batch.hidden_rows) wanted += part.rows;
  if (wanted == 0) return;
  const Workspace& ws = pass.ws;
  claim_rows(pass, {0, wanted},
             [&](int32_t begin, int32_t end) { normalise_rows(pass, last, begin, end); });
  pass.team.barrier(pass.member);
  // In one phase with the first logits: these are claimed apart.
  give_hidden(pass, client);
  if (samples == 0) pass.team.barrier(pass.member);
  for (int32_t first = 0; first < samples; first += kRowsMax) {
    const int32_t rows = std::min(samples - first, kRowsMax);
    compute_logits(pass, first, rows);
    pass.team.barrier(pass.member);
    claim_blocks(pass, rows, [&](int64_t row) {
      const trace::Scope scope(trace::Kind::kKernel, "sample");
      client.on_logits(first + static_cast<int32_t>(row),
                       std::span(ws.logits + row * weight_.n, static_cast<size_t>(weight_.n)),
                       pass.member);
    });
    pass.team.barrier(pass.member);
  }
}

}  // namespace weir::model
