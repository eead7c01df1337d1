// What all sublayers share: norms, the input and the output of a sublayer; and the token embedding.
//
// Threads: immutable after load.
#pragma once

#include <cstdint>
#include <optional>

#include "model/layers/hyper_connections.h"
#include "model/layers/layer.h"
#include "model/layers/streams.h"
#include "model/model.h"

namespace weir::model {

// y = norm(x) of rows [begin, end), both [rows, n]; y may be x.
void normalise(const kernels::Ops& ops, const NormWeights& norm, const float* x, int32_t n,
               int32_t begin, int32_t end, float* y);

// What a layer is built from.
struct LayerSource {
  WeightBinder& binder;
  ScratchPlan& scratch;
  const Sublayer& sublayer;
  int32_t hidden = 0;
  int memory = -1;                       // The first of its needs, as KvCache numbers layers.
  Buffer<float> held{};                  // [rows, hidden]: what a sublayer leaves for the next.
  Buffer<float> beside{};                // [rows, hidden]: Sublayer::beside_token's.
  Buffer<float> token_inputs{};          // [rows, layers, width]: ModelSpec::token_inputs.
  int64_t token_input_width = 0;         // Of all layers.
  const StreamTable* streams = nullptr;  // Where ModelSpec::streams is said.
  const HyperStreams* hyper = nullptr;   // Where ModelSpec::hyper is said.

  int stored_layer() const { return sublayer.stored_layer; }
  // Of a row of the sublayer's input.
  int32_t input_width() const { return sublayer.beside_token ? 2 * hidden : hidden; }
};

// The input side that all sublayers share: norm into Pass::normed(), and its other forms.
struct SublayerInput {
  std::optional<NormWeights> norm;  // None: the residual stream as it is.
  bool same_as_before = false;      // Pass::normed() is what the sublayer before has left there.
  uint8_t forms = 0;
  std::optional<StreamStep> predicts;
  std::optional<HyperConnection> hyper;
  std::optional<Buffer<float>> beside;  // It comes first in each row.

  // `forms`: those that the weights which read it want.
  static SublayerInput bind(const LayerSource& source, uint8_t forms);
  void enter(const Pass& pass, int32_t begin, int32_t end) const;
  // The residual stream as it is, in the forms that the weights want.
  void convert(const Pass& pass, int32_t begin, int32_t end) const;

 private:
  void enter_beside(const Pass& pass, int32_t begin, int32_t end) const;
};

// The output side: residual = carry * residual + scale * norm(delta), or the same of its input, and
// what Sublayer says of what is held. A late one waits for the next sublayer's input.
struct SublayerOutput {
  std::optional<NormWeights> norm, joint;
  float scale = 1, carry = 1;
  bool carries_input = false;
  const float* stream_scale = nullptr;
  bool late = false;

  static SublayerOutput bind(const LayerSource& source);

  // Without a norm, columns can be added as soon as they are computed, unless they are late, held,
  // or followed by what was held, or the row that they are added to changes first, or there are
  // several streams.
  bool adds_columns() const {
    return !norm && !late && !holds_ && !adds_held_ && carry == 1 && !carries_input && !hyper_;
  }
  // A phase: weight(in) for some rows, to the residual stream, or, where it does not add columns,
  // to a buffer for add_rows().
  void project(const Pass& pass, const Linear& weight, const Activations& in, const RowRange& rows,
               const kernels::NextWeights& after) const;
  // What this member most likely multiplies by first in project().
  static kernels::NextWeights first_weights(const Pass& pass, const Linear& weight);
  void add_rows(const Pass& pass, int32_t begin, int32_t end) const;
  // Adds to one row what the caller has, [hidden], and overwrites that.
  void add_row(const Pass& pass, float* delta, int32_t row) const;

 private:
  void project_columns(const Pass& pass, const Linear& weight, const Activations& in,
                       const RowRange& rows, const ColumnRange& columns,
                       const kernels::NextWeights& next) const;

  Buffer<float> delta_;  // [rows, hidden], unless it adds columns.
  bool holds_ = false, adds_held_ = false, plus_input_ = false, corrects_ = false,
       to_others_ = false;
  float stream_factor_ = 1;
  std::optional<StreamStep> streams_;
  std::optional<HyperConnection> hyper_;
  Buffer<float> held_;
};

class Embedding {
 public:
  Embedding(WeightBinder& binder, const ModelSpec& spec);

  // A token's, [hidden].
  void look_up(const Pass& pass, int32_t token, float* out) const;
  // Writes row `row` of the residual stream.
  void embed(const Pass& pass, int32_t row, int32_t token) const;
  // To what it begins with, whether a token's or not: its position's vector, and the norm.
  void finish(const Pass& pass, int32_t row) const;
  const Linear& weight() const { return weight_; }

 private:
  Linear weight_;
  Linear positions_;  // [positions, hidden], or none.
  std::optional<NormWeights> norm_;
  float scale_;
};

}  // namespace weir::model
