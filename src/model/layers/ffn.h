// FfnLayer: a dense feed-forward sublayer, gated or not.
//
// Threads: as Layer.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "model/layers/norm_embed.h"

namespace weir::model {

// The weights of one feed-forward network: an FfnLayer's, or a routed layer's shared expert.
struct FfnWeights {
  Dense spec{};
  Linear gate{}, up{}, down{};
  kernels::Xielu xielu{};  // Where Dense::xielu says so.
  std::optional<NormWeights> inner_norm{};

  // `module`: "mlp" or "mlp.shared_expert".
  static FfnWeights bind(WeightBinder& binder, int layer, std::string_view module,
                         const Dense& spec, int32_t hidden);

  uint8_t input_forms() const { return gate.forms() | up.forms(); }
  int64_t weight_bytes() const {
    return gate.weight_bytes() + up.weight_bytes() + down.weight_bytes();
  }
  int64_t macs() const { return gate.macs() + up.macs() + down.macs(); }
  const Linear& first() const { return spec.gated ? gate : up; }

  // Columns of a claim must be a multiple of this, so that they can be converted at once.
  int32_t column_multiple() const { return down.int8 ? std::max(64, down.quant.group) : 64; }

  // Where activate() leaves its rows, from row `row` on: what down_proj reads, floats or another
  // form.
  struct Inner {
    float* hidden = nullptr;  // [rows, width]
    float* spare = nullptr;   // [rows, width]
    const ActivationForms* forms = nullptr;
    int32_t row = 0;
    int32_t prompt_begin = kNoPrompts;  // Among these rows.
  };
  // Which rows of the input, and how many.
  struct Rows {
    const int32_t* index = nullptr;  // Null: the first ones.
    int32_t count = 0;
    const float* weight = nullptr;  // [count]: multiplies the input. Null: 1.
    const float* up = nullptr;      // Dense::up_by_token's, `up_stride` from a row to the next.
    int64_t up_stride = 0;
  };
  // Columns of act(gate(in)) * up(in), or of act(up(in)). `after`: what the member most likely
  // multiplies by after them.
  void activate(const Pass& pass, const Activations& in, const Rows& rows,
                const ColumnRange& columns, const kernels::NextWeights& after,
                const Inner& out) const;
  // activate() leaves floats, for finish_rows() needs rows that are all there: gates that are cut,
  // with what they multiply, or what a norm follows.
  bool finishes_rows() const { return spec.gate_cut || inner_norm; }
  void finish_rows(const Pass& pass, const Inner& out, int32_t begin, int32_t end) const;
  // What activate() of these columns multiplies by first.
  kernels::NextWeights first_weights(const ColumnRange& columns) const;

 private:
  // Floats are read later, or an adapter of some row may read them.
  bool keeps_floats(const Pass& pass) const {
    return down.reads_floats() || finishes_rows() || (pass.adapted && down.target >= 0);
  }
  void cut_rows(const Pass& pass, const Inner& out, int32_t begin, int32_t end) const;
  // Writes the activated columns to out.y, as floats; `spare` has its shape.
  void activate_range(const Pass& pass, const Activations& in, const Rows& rows,
                      const kernels::GemmRange& out, const kernels::NextWeights& after,
                      float* spare) const;
};

// Where networks of one width leave their inner rows.
struct InnerBuffers {
  // Floats are kept only for a down_proj that reads floats.
  Buffer<float> hidden, spare;  // [rows, width]
  FormsBuffer forms;

  // Inner rows of `networks`, which have one width: `rows_per_row` for each row of a step.
  static InnerBuffers ask(ScratchPlan& scratch, std::span<const FfnWeights> networks,
                          int32_t rows_per_row);
  FfnWeights::Inner at(const Pass& pass) const;
};

class FfnLayer final : public Layer {
 public:
  FfnLayer(const LayerSource& source, const Dense& spec);

  void enter(const Pass& pass, int32_t begin, int32_t end) const override;
  void compute(const Pass& pass, const RowRange& all,
               const kernels::NextWeights& after) const override;
  kernels::NextWeights first_weights(const Pass& pass) const override;
  void leave(const Pass& pass, int32_t begin, int32_t end) const override;
  LayerFacts facts() const override;

 private:
  static Activations input(const Pass& pass);
  void activate(const Pass& pass) const;
  void project_down(const Pass& pass, const kernels::NextWeights& after) const;
  ColumnShares<1> inner_shares(const Pass& pass) const;

  SublayerInput input_;
  SublayerOutput output_;
  FfnWeights ffn_;
  InnerBuffers inner_;
  Buffer<float> token_inputs_;
  int64_t token_input_width_ = 0;
  int64_t token_input_ = 0;  // Where the layer's own begin.
};

}  // namespace weir::model
