// Residual streams side by side (AltUp): sublayers see the active one; before a layer what all of
// them become is predicted, and afterwards the predictions are corrected by what the active one has
// become. StreamTable is the model's, StreamStep a layer's.
//
// Threads: immutable after load; rows are their members' own.
#pragma once

#include <vector>

#include "model/pass.h"
#include "model/scratch.h"
#include "model/spec.h"
#include "model/weight_map.h"

namespace weir::model {

inline constexpr int kStreamsMax = 8;  // Twice the most published.

class StreamTable {
 public:
  // REQUIRES: the spec says streams.
  StreamTable(WeightBinder& binder, const ModelSpec& spec, ScratchPlan& scratch);

  // Phases that end with a barrier, once the residual stream holds the embeddings.
  void begin(const Pass& pass) const;
  // The row of the residual stream becomes what the streams are together.
  void finish_row(const Pass& pass, int32_t row) const;

  const Streams& spec() const { return spec_; }
  int32_t hidden() const { return hidden_; }
  float* at(const Pass& pass, int64_t row, int stream) const {
    return pass.ws.at(streams_) + (row * spec_.count + stream) * hidden_;
  }
  float* spare(const Pass& pass) const { return pass.ws.at(spare_, pass.member); }

 private:
  Streams spec_;
  int32_t hidden_;
  std::vector<Linear> apart_, together_;  // From the first stream to each other, and back.
  Buffer<float> streams_;                 // [rows, streams, hidden]
  Buffer<float> spare_;                   // Per member: [streams, hidden].
};

class StreamStep {
 public:
  StreamStep() = default;
  StreamStep(WeightBinder& binder, int layer, const StreamTable& table);

  // The streams become predictions, and the row of the residual stream the active one.
  void predict(const Pass& pass, int32_t row) const;
  // The streams are corrected by the row of the residual stream, which becomes what the sublayer
  // after reads of the active one.
  void correct(const Pass& pass, int32_t row) const;
  // x [hidden] is added to all but the first.
  void add_to_others(const Pass& pass, const float* x, int32_t row) const;

 private:
  void route(const Pass& pass, const float* x, float* modalities) const;

  const StreamTable* table_ = nullptr;
  const float* norm_ = nullptr;   // [hidden]
  const float* scale_ = nullptr;  // [hidden], or null.
  Linear router_, prediction_, correction_;
};

}  // namespace weir::model
