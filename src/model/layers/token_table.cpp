#include "model/layers/token_table.h"

#include <cmath>

namespace weir::model {

TokenTable::TokenTable(WeightBinder& binder, const ModelSpec& spec, ScratchPlan& scratch)
    : hidden_(spec.hidden_size), layer_width_(spec.token_inputs->width) {
  const int32_t width = layer_width_ * layer_count(spec);
  table_ = binder.linear(kWholeModel, "model.embed_tokens_per_layer", spec.token_inputs->vocab_size,
                         width);
  projection_ = binder.linear(kWholeModel, "model.per_layer_model_projection", width, hidden_,
                              false, Precision::kFloatActivations);
  norm_ = binder.norm(kWholeModel, spec.token_inputs->norm, layer_width_);
  inputs_ = scratch.ask<float>(BufferUse::kWholePass, {.per_row = width});
  row_ = scratch.ask<float>(BufferUse::kWholePass, {.fixed = width, .per_member = true});
}

void TokenTable::begin(const Pass& pass) const {
  const ColumnShares<1> shares(pass, {&projection_}, 64);
  const Activations in = {.x = pass.ws.residual.row(0)};
  claim_columns(pass, shares, {},
                [&](const ColumnRange& columns, const kernels::NextWeights& next) {
                  multiply(pass, projection_, in,
                           {.rows = pass.rows(),
                            .begin = columns.begin,
                            .end = columns.end,
                            .y = pass.ws.at(inputs_),
                            .y_stride = width(),
                            .next = next});
                });
  pass.team.barrier(pass.member);
  claim_rows(pass, pass.all_rows(), [&](int32_t begin, int32_t end) {
    const trace::Scope scope(trace::Kind::kKernel, "embed");
    for (int32_t row = begin; row < end; ++row) finish_row(pass, row);
  });
  pass.team.barrier(pass.member);
}

void TokenTable::finish_row(const Pass& pass, int32_t row) const {
  float* x = pass.ws.at(inputs_) + int64_t{row} * width();
  pass.ops.scale(1 / std::sqrt(static_cast<float>(hidden_)), width(), x);
  normalise(pass.ops, norm_, x, layer_width_, 0, width() / layer_width_, x);
  // A place that holds a vector in place of a token is as token 0.
  const bool vector = pass.batch.vector_of(row, hidden_) != nullptr;
  int32_t token = vector ? 0 : pass.batch.token_of(row);
  if (token >= table_.n) token = 0;
  float* stored = pass.ws.at(row_, pass.member);
  read_row(pass.ops, table_, token, stored);
  pass.ops.add_scaled(stored, std::sqrt(static_cast<float>(layer_width_)), width(), x);
  pass.ops.scale(std::sqrt(0.5f), width(), x);
}

}  // namespace weir::model
