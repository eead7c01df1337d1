#include "model/layers/streams.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace weir::model {

namespace {

double mean_square(const float* x, int32_t n) {
  double sum = 0;
  for (int32_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum / n;
}

// x gets the magnitude of `like`.
void match(const Pass& pass, const float* like, int32_t n, float* x) {
  constexpr double kLeast = 1e-5;
  const double factor = std::sqrt(mean_square(like, n) / std::max(mean_square(x, n), kLeast));
  pass.ops.scale(static_cast<float>(factor), n, x);
}

void multiply_row(const Pass& pass, const Linear& weight, const float* x, float* y) {
  multiply(pass, weight, {.x = x}, {.rows = 1, .end = weight.n, .y = y, .y_stride = weight.n});
}

}  // namespace

StreamTable::StreamTable(WeightBinder& binder, const ModelSpec& spec, ScratchPlan& scratch)
    : spec_(*spec.streams), hidden_(spec.hidden_size) {
  const auto bind = [&](const char* name, int stream) {
    return binder.linear(kWholeModel, std::string(name) + std::to_string(stream - 1), hidden_,
                         hidden_, false, Precision::kFloatActivations);
  };
  for (int stream = 1; stream < spec_.count; ++stream) {
    apart_.push_back(bind("model.altup_projections.", stream));
    together_.push_back(bind("model.altup_unembed_projections.", stream));
  }
  const int64_t all = int64_t{spec_.count} * hidden_;
  streams_ = scratch.ask<float>(BufferUse::kWholePass, {.per_row = all});
  spare_ = scratch.ask<float>(BufferUse::kWholePass, {.fixed = all, .per_member = true});
}

void StreamTable::begin(const Pass& pass) const {
  claim_rows(pass, pass.all_rows(), [&](int32_t begin, int32_t end) {
    const trace::Scope scope(trace::Kind::kKernel, "embed");
    const Activations in = {.x = pass.ws.residual.row(begin)};
    for (int stream = 1; stream < spec_.count; ++stream)
      multiply(pass, apart_[static_cast<size_t>(stream - 1)], in,
               {.rows = end - begin,
                .end = hidden_,
                .y = at(pass, begin, stream),
                .y_stride = int64_t{spec_.count} * hidden_});
    for (int32_t row = begin; row < end; ++row) {
      const float* first = pass.ws.residual.row(row);
      std::copy_n(first, hidden_, at(pass, row, 0));
      for (int stream = 1; stream < spec_.count; ++stream)
        match(pass, first, hidden_, at(pass, row, stream));
    }
  });
  pass.team.barrier(pass.member);
}

void StreamTable::finish_row(const Pass& pass, int32_t row) const {
  const float* first = at(pass, row, 0);
  float* sum = pass.ws.residual.begin_row(row);
  float* x = spare(pass);
  std::copy_n(first, hidden_, sum);
  for (int stream = 1; stream < spec_.count; ++stream) {
    multiply_row(pass, together_[static_cast<size_t>(stream - 1)], at(pass, row, stream), x);
    match(pass, first, hidden_, x);
    pass.ops.add_scaled(x, 1, hidden_, sum);
  }
  pass.ops.scale(1 / static_cast<float>(spec_.count), hidden_, sum);
}

StreamStep::StreamStep(WeightBinder& binder, int layer, const StreamTable& table) : table_(&table) {
  const int32_t count = table.spec().count, hidden = table.hidden();
  const auto bind = [&](const char* part, int32_t n, int32_t k) {
    return binder.linear(layer, part, n, k, false, Precision::kFloatActivations);
  };
  norm_ = binder.vector(layer, "altup.router_norm", hidden, 0);
  router_ = bind("altup.modality_router", count, hidden);
  prediction_ = bind("altup.prediction_coefs", count * count, count);
  correction_ = bind("altup.correction_coefs", count, count);
  if (table.spec().scaled)
    scale_ = binder.vector(layer, "altup.correct_output_scale", hidden, 0, /*bare=*/true);
  else
    binder.ignore(layer, "altup.correct_output_scale");
}

void StreamStep::route(const Pass& pass, const float* x, float* modalities) const {
  const int32_t hidden = table_->hidden();
  float* normed = table_->spare(pass);
  pass.ops.rms_norm(x, norm_, table_->spec().norm_eps, hidden, normed);
  pass.ops.scale(1 / static_cast<float>(hidden), hidden, normed);
  multiply_row(pass, router_, normed, modalities);
  for (int32_t i = 0; i < router_.n; ++i) modalities[i] = std::tanh(modalities[i]);
}

void StreamStep::predict(const Pass& pass, int32_t row) const {
  const int32_t hidden = table_->hidden();
  const int count = table_->spec().count, active = table_->spec().active;
  std::array<float, kStreamsMax> modalities;
  std::array<float, kStreamsMax * kStreamsMax> coefs;
  route(pass, table_->at(pass, row, active), modalities.data());
  multiply_row(pass, prediction_, modalities.data(), coefs.data());
  float* predicted = table_->spare(pass);
  std::copy_n(table_->at(pass, row, 0), int64_t{count} * hidden, predicted);
  for (int to = 0; to < count; ++to)
    for (int from = 0; from < count; ++from)
      pass.ops.add_scaled(table_->at(pass, row, from),
                          coefs[static_cast<size_t>(to * count + from)], hidden,
                          predicted + int64_t{to} * hidden);
  std::copy_n(predicted, int64_t{count} * hidden, table_->at(pass, row, 0));
  std::copy_n(table_->at(pass, row, active), hidden, pass.ws.residual.begin_row(row));
}

void StreamStep::correct(const Pass& pass, int32_t row) const {
  const int32_t hidden = table_->hidden();
  const int count = table_->spec().count, active = table_->spec().active;
  float* found = pass.ws.residual.begin_row(row);
  std::array<float, kStreamsMax> modalities, coefs;
  route(pass, found, modalities.data());
  multiply_row(pass, correction_, modalities.data(), coefs.data());
  pass.ops.add_scaled(table_->at(pass, row, active), -1, hidden, found);  // What was not predicted.
  for (int stream = 0; stream < count; ++stream)
    pass.ops.add_scaled(found, coefs[static_cast<size_t>(stream)] + 1, hidden,
                        table_->at(pass, row, stream));
  std::copy_n(table_->at(pass, row, active), hidden, found);
  for (int32_t i = 0; scale_ != nullptr && i < hidden; ++i) found[i] *= scale_[i];
}

void StreamStep::add_to_others(const Pass& pass, const float* x, int32_t row) const {
  for (int stream = 1; stream < table_->spec().count; ++stream)
    pass.ops.add_scaled(x, 1, table_->hidden(), table_->at(pass, row, stream));
}

}  // namespace weir::model
