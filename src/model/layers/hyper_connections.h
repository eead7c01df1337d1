// Hyper-connections (Zhu et al. 2024, arXiv:2409.19606), with mixing that a manifold constrains
// (Xie et al. 2025, arXiv:2512.24880): the residual is n streams X [n, hidden], which all begin as
// the embedding. A sublayer f reads a mixture of them and gives to all of them:
//   m = fn rms(X), of all n * hidden numbers at once;   [pre, post, mix] of m and base are apart
//   pre = sigmoid(pre scale_0 + base) + eps;  post = 2 sigmoid(post scale_1 + base)
//   C = Sinkhorn(softmax of rows(mix scale_2 + base) + eps): columns divided by their sums, then
//       rounds - 1 times rows and columns, with eps added to each sum
//   X_j = post_j f(sum_i pre_i X_i) + sum_i C_ij X_i
// and before the final norm the streams become sum_i pre_i X_i with weights of the head's own.
// HyperStreams is the model's, HyperConnection a sublayer's.
//
// Threads: immutable after load; rows are their members' own.
#pragma once

#include <span>
#include <string>

#include "model/pass.h"
#include "model/scratch.h"
#include "model/spec.h"
#include "model/weight_map.h"

namespace weir::model {

// What is bound of one module: numbers of all streams' mean and what they are multiplied by.
struct HyperWeights {
  Linear fn;                     // [outputs, streams * hidden]
  const float* base = nullptr;   // [outputs]
  const float* scale = nullptr;  // [scales]

  // `prefix`: what tensors' names begin with.
  static HyperWeights bind(WeightBinder& binder, int layer, const std::string& prefix,
                           int32_t outputs, int32_t scales, int32_t k);
};

class HyperStreams {
 public:
  // REQUIRES: the spec says hyper-connections.
  HyperStreams(WeightBinder& binder, const ModelSpec& spec, ScratchPlan& scratch);

  // The row of the residual stream holds the embedding: all streams begin as it.
  void begin_row(const Pass& pass, int32_t row) const;
  // The row of the residual stream becomes what the streams are together.
  void finish_row(const Pass& pass, int32_t row) const;

  const HyperConnections& spec() const { return spec_; }
  int32_t hidden() const { return hidden_; }
  // The row's streams, [streams, hidden].
  float* at(const Pass& pass, int64_t row) const {
    return pass.ws.at(streams_) + row * spec_.streams * hidden_;
  }
  // What a sublayer has found when it read, for when it gives: post [streams], C [streams,
  // streams].
  float* kept(const Pass& pass, int64_t row) const {
    return pass.ws.at(kept_) + row * spec_.streams * (1 + spec_.streams);
  }
  float* spare(const Pass& pass) const { return pass.ws.at(spare_, pass.member); }
  // y = fn rms(X) of the row.
  void project(const Pass& pass, const HyperWeights& weights, int32_t row, float* y) const;
  // The row of the residual stream becomes the streams' sum by these weights.
  void gather(const Pass& pass, const float* pre, int32_t row) const;

 private:
  HyperConnections spec_;
  int32_t hidden_;
  HyperWeights head_;
  Buffer<float> streams_, kept_;
  Buffer<float> spare_;  // Per member: [streams, hidden].
};

// `c`, [n, n], becomes a matrix whose rows and columns sum to nearly 1. REQUIRES: rounds >= 1.
void sinkhorn(int32_t n, int32_t rounds, float eps, std::span<float> c);

class HyperConnection {
 public:
  HyperConnection() = default;
  HyperConnection(WeightBinder& binder, int layer, const std::string& module,
                  const HyperStreams& streams);

  // The row of the residual stream becomes what the sublayer reads.
  void read(const Pass& pass, int32_t row) const;
  // The streams get what it gives, [hidden].
  void give(const Pass& pass, const float* given, int32_t row) const;

 private:
  const HyperStreams* streams_ = nullptr;
  HyperWeights weights_;
};

}  // namespace weir::model
