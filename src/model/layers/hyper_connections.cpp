#include "model/layers/hyper_connections.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace weir::model {

namespace {

constexpr int kOutputsMax = kHyperStreamsMax * (kHyperStreamsMax + 2);

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// Divides numbers that lie `step` apart by their sum + eps.
void divide_by_sum(float* x, int32_t n, int32_t step, float eps) {
  float sum = eps;
  for (int32_t i = 0; i < n; ++i) sum += x[i * step];
  for (int32_t i = 0; i < n; ++i) x[i * step] /= sum;
}

}  // namespace

void sinkhorn(int32_t n, int32_t rounds, float eps, std::span<float> c) {
  for (int32_t i = 0; i < n; ++i) {
    float* row = &c[static_cast<size_t>(i * n)];
    const float most = *std::max_element(row, row + n);
    for (int32_t j = 0; j < n; ++j) row[j] = std::exp(row[j] - most);
    divide_by_sum(row, n, 1, 0);
    for (int32_t j = 0; j < n; ++j) row[j] += eps;
  }
  for (int32_t round = 0; round < rounds; ++round) {
    for (int32_t i = 0; round > 0 && i < n; ++i)
      divide_by_sum(&c[static_cast<size_t>(i * n)], n, 1, eps);
    for (int32_t j = 0; j < n; ++j) divide_by_sum(&c[static_cast<size_t>(j)], n, n, eps);
  }
}

HyperWeights HyperWeights::bind(WeightBinder& binder, int layer, const std::string& prefix,
                                int32_t outputs, int32_t scales, int32_t k) {
  const std::array<int64_t, 2> shape = {outputs, k};
  HyperWeights w;
  w.fn = {.n = outputs, .k = k};
  w.fn.floats = {.n = outputs, .k = k, .rows = binder.tensor(layer, prefix + "fn", shape)};
  w.base = binder.vector(layer, prefix + "base", outputs, 0, /*bare=*/true);
  w.scale = binder.vector(layer, prefix + "scale", scales, 0, /*bare=*/true);
  return w;
}

HyperStreams::HyperStreams(WeightBinder& binder, const ModelSpec& spec, ScratchPlan& scratch)
    : spec_(*spec.hyper), hidden_(spec.hidden_size) {
  const int64_t all = int64_t{spec_.streams} * hidden_;
  head_ = HyperWeights::bind(binder, kWholeModel, "model.hc_head.hc_", spec_.streams, 1,
                             static_cast<int32_t>(all));
  streams_ = scratch.ask<float>(BufferUse::kWholePass, {.per_row = all});
  kept_ = scratch.ask<float>(BufferUse::kWholePass,
                             {.per_row = int64_t{spec_.streams} * (1 + spec_.streams)});
  spare_ = scratch.ask<float>(BufferUse::kWholePass, {.fixed = all, .per_member = true});
}

void HyperStreams::begin_row(const Pass& pass, int32_t row) const {
  for (int64_t i = 0; i < spec_.streams; ++i)
    std::copy_n(pass.ws.residual.row(row), hidden_, at(pass, row) + i * hidden_);
}

void HyperStreams::project(const Pass& pass, const HyperWeights& weights, int32_t row,
                           float* y) const {
  float* normed = spare(pass);
  pass.ops.rms_norm(at(pass, row), nullptr, spec_.norm_eps, weights.fn.k, normed);
  multiply(pass, weights.fn, {.x = normed},
           {.rows = 1, .end = weights.fn.n, .y = y, .y_stride = weights.fn.n});
}

void HyperStreams::gather(const Pass& pass, const float* pre, int32_t row) const {
  float* sum = pass.ws.residual.begin_row(row);
  std::fill_n(sum, hidden_, 0.0f);
  for (int64_t i = 0; i < spec_.streams; ++i)
    pass.ops.add_scaled(at(pass, row) + i * hidden_, pre[i], hidden_, sum);
}

void HyperStreams::finish_row(const Pass& pass, int32_t row) const {
  std::array<float, kHyperStreamsMax> pre;
  project(pass, head_, row, pre.data());
  for (size_t i = 0; i < static_cast<size_t>(spec_.streams); ++i)
    pre[i] = sigmoid(pre[i] * head_.scale[0] + head_.base[i]) + spec_.eps;
  gather(pass, pre.data(), row);
}

HyperConnection::HyperConnection(WeightBinder& binder, int layer, const std::string& module,
                                 const HyperStreams& streams)
    : streams_(&streams) {
  const int32_t n = streams.spec().streams;
  weights_ = HyperWeights::bind(binder, layer, module + ".", n * (n + 2), 3, n * streams.hidden());
}

void HyperConnection::read(const Pass& pass, int32_t row) const {
  const HyperConnections& spec = streams_->spec();
  const int32_t n = spec.streams;
  std::array<float, kOutputsMax> m;
  streams_->project(pass, weights_, row, m.data());
  for (int32_t i = 0; i < weights_.fn.n; ++i)
    m[static_cast<size_t>(i)] =
        m[static_cast<size_t>(i)] * weights_.scale[std::min(i / n, 2)] + weights_.base[i];
  for (int32_t i = 0; i < n; ++i) {
    float& pre = m[static_cast<size_t>(i)];
    float& post = m[static_cast<size_t>(n + i)];
    pre = sigmoid(pre) + spec.eps;
    post = 2 * sigmoid(post);
  }
  sinkhorn(n, spec.sinkhorn_rounds, spec.eps, std::span(m).subspan(static_cast<size_t>(2 * n)));
  std::copy_n(m.data() + n, n * (n + 1), streams_->kept(pass, row));
  streams_->gather(pass, m.data(), row);
}

void HyperConnection::give(const Pass& pass, const float* given, int32_t row) const {
  const int32_t n = streams_->spec().streams, hidden = streams_->hidden();
  const float* post = streams_->kept(pass, row);
  const float* mix = post + n;
  float* before = streams_->at(pass, row);
  float* after = streams_->spare(pass);
  for (int64_t j = 0; j < n; ++j) {
    float* to = after + j * hidden;
    std::copy_n(given, hidden, to);
    pass.ops.scale(post[j], hidden, to);
    for (int64_t i = 0; i < n; ++i)
      pass.ops.add_scaled(before + i * hidden, mix[i * n + j], hidden, to);
  }
  std::copy_n(after, int64_t{n} * hidden, before);
}

}  // namespace weir::model
