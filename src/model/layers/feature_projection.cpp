#include "model/layers/feature_projection.h"

#include <algorithm>

#include "base/concat.h"

namespace weir::model {

FeatureProjection::FeatureProjection(WeightBinder& binder, const ModelSpec& spec,
                                     ScratchPlan& scratch)
    : spec_(*spec.features), hidden_(spec.hidden_size) {
  const int32_t width = spec_.width + (spec_.joins() ? hidden_ : 0);
  const bool bias = binder.has_tensor(kWholeModel, concat({spec_.projection, ".bias"}));
  projection_ = binder.linear(kWholeModel, spec_.projection, hidden_, width, bias);
  if (spec_.norm) norm_ = binder.norm(kWholeModel, *spec_.norm, spec_.width);
  if (spec_.token_norm) token_norm_ = binder.norm(kWholeModel, *spec_.token_norm, hidden_);
  if (spec_.out_norm) out_norm_ = binder.norm(kWholeModel, *spec_.out_norm, hidden_);
  in_ = scratch.ask<float>(BufferUse::kComputing, {.per_row = width});
  forms_ = scratch.ask_forms(width, 1, projection_.forms());
  if (spec_.way == FeatureInput::kBeside)
    beside_ = scratch.ask<float>(BufferUse::kWholePass, {.per_row = hidden_});
}

// What the projection reads of a row, and what stands beside it.
void FeatureProjection::gather_row(const Pass& pass, const Embedding& embedding,
                                   int32_t row) const {
  float* const in = pass.ws.at(in_) + int64_t{row} * projection_.k;
  const bool beside = spec_.way == FeatureInput::kBeside;
  float* const token = beside ? pass.ws.at(beside_) + int64_t{row} * hidden_
                              : in + (spec_.way == FeatureInput::kFeatureFirst ? spec_.width : 0);
  if (beside || spec_.joins()) {
    embedding.look_up(pass, pass.batch.token_of(row), token);
    if (token_norm_) normalise(pass.ops, *token_norm_, token, hidden_, 0, 1, token);
  }
  const float* const feature = pass.batch.features.of_row[static_cast<size_t>(row)];
  if (skips_projection(pass)) {
    std::copy_n(feature, hidden_, pass.ws.residual.begin_row(row));
    return;
  }
  float* const to = in + (spec_.way == FeatureInput::kJoined ? hidden_ : 0);
  std::copy_n(feature, spec_.width, to);
  if (norm_) normalise(pass.ops, *norm_, to, spec_.width, 0, 1, to);
  pass.ws.at(forms_).convert(
      pass.ops, projection_.forms(), in, projection_.k,
      {.k = projection_.k, .begin = row, .end = row + 1, .columns = projection_.k}, kNoPrompts);
}

void FeatureProjection::project(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "features");
  const Activations in = {.x = pass.ws.at(in_), .forms = &pass.ws.at(forms_)};
  claim_columns(pass, ColumnShares<1>(pass, {&projection_}, 16), {},
                [&](const ColumnRange& columns, const kernels::NextWeights& next) {
                  const kernels::GemmRange range = {.rows = pass.rows(),
                                                    .begin = columns.begin,
                                                    .end = columns.end,
                                                    .y = pass.ws.residual.begin_row(0),
                                                    .y_stride = hidden_,
                                                    .next = next};
                  multiply(pass, projection_, in, range);
                  add_bias(pass.ops, projection_, range);
                });
  pass.team.barrier(pass.member);
}

void FeatureProjection::begin(const Pass& pass, const Embedding& embedding) const {
  claim_rows(pass, pass.all_rows(), [&](int32_t begin, int32_t end) {
    for (int32_t row = begin; row < end; ++row) gather_row(pass, embedding, row);
  });
  pass.team.barrier(pass.member);
  if (!skips_projection(pass)) project(pass);
  if (!out_norm_) return;
  claim_rows(pass, pass.all_rows(), [&](int32_t begin, int32_t end) {
    float* const x = pass.ws.residual.begin_row(0);
    normalise(pass.ops, *out_norm_, x, hidden_, begin, end, x);
  });
  pass.team.barrier(pass.member);
}

}  // namespace weir::model
