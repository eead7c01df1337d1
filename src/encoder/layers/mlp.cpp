// An ungated network of two layers, or a gated one of three. Its wide rows exist for a few rows at
// a time, which go through both halves before the next ones.
#include "encoder/layers/depthwise.h"
#include "encoder/layers/products.h"
#include "encoder/layers/residual.h"

namespace weir::encoder {

namespace {

// Wide rows that exist at one time: enough that a block of weights meets several blocks of them,
// and that the blocks of the second product, of which 1,152 columns have 9, are many for a team.
// Where they are floats they take twice the memory, or with a gate four times.
constexpr int32_t kWideRows = 1024, kWideRowsInForms = 2048;

class MlpLayer final : public Layer {
 public:
  MlpLayer(const LayerSource& source, const Mlp& op)
      : op_(op),
        width_(source.width),
        limit_(source.stage.limit),
        in_(source.width),
        wide_rows_(source.exact || !op.gate.empty() ? kWideRows : kWideRowsInForms),
        out_(op.width, wide_rows_),
        output_(source, source.width),
        normed_(ask(source, {.per_row = source.width})) {
    if (op.conv)
      conv_.emplace(source, *op.conv, source.width);
    else if (source.stage.pre)
      pre_ = source.binder.norm(*source.stage.pre, source.width);
    in_.add(source, op.up, op.width, op.bias, op.clipped);
    if (!op.gate.empty()) in_.add(source, op.gate, op.width, op.bias, op.clipped);
    in_.finish_adding(source);
    out_.add(source, op.out, source.width, op.bias, op.clipped);
    out_.finish_adding(source);
    in_parts_ = op.gate.empty() && out_.takes_parts();
    const int64_t wide = int64_t{wide_rows_} * op.width;
    wide_ = ask(source, {.fixed = in_parts_ ? 0 : wide});
    gated_ = ask(source, {.fixed = op.gate.empty() ? 0 : wide});
  }

  bool moves_rows() const override { return false; }

  void run(const Pass& pass) const override {
    float* normed = pass.ws.at(normed_);
    claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r) enter(pass, r, normed + int64_t{r} * width_);
      in_.prepare(pass, normed, begin, end);
    });
    pass.barrier();
    for (int32_t begin = 0; begin < pass.count(); begin += wide_rows_)
      run_rows(pass, begin, std::min(begin + wide_rows_, pass.count()));
    output_.finish(pass);
  }

 private:
  static model::Buffer<float> ask(const LayerSource& source, const model::BufferSize& size) {
    return source.scratch.ask<float>(model::BufferUse::kComputing, size);
  }

  void enter(const Pass& pass, int32_t row, float* out) const {
    const float* x = pass.rows + int64_t{row} * width_;
    if (pre_) return normalise(pass.ops, *pre_, limit_, x, width_, out);
    if (!conv_) return static_cast<void>(std::copy_n(x, width_, out));
    const View& view = view_of(pass.views, row);
    conv_->compute(pass, view, view.place_of(row - view.grid_begin()), out);
  }

  void run_rows(const Pass& pass, int32_t first, int32_t last) const {
    float* wide = pass.ws.at(wide_);
    float* gated = pass.ws.at(gated_);
    const bool has_gate = !op_.gate.empty();
    const int32_t rows = last - first;
    in_.run(pass, pass.ws.at(normed_), first, rows, [&](const Block& block) {
      float* to = block.weight == 0 ? wide : gated;
      for (int32_t r = 0; r < block.rows; ++r) {
        float* y = block.row_of(r);
        if (has_gate == (block.weight == 1)) pass.ops.act(op_.act, block.columns(), y);
        if (in_parts_) continue;
        std::copy_n(y, block.columns(), to + int64_t{block.row + r} * op_.width + block.begin);
      }
      if (in_parts_)
        out_.prepare_part(pass, block.y, block.stride, block.row, block.row + block.rows,
                          block.begin, block.columns());
    });
    if (has_gate || (out_.prepares() && !in_parts_)) {
      claim_rows(pass, rows, [&](int32_t begin, int32_t end) {
        const int64_t at = int64_t{begin} * op_.width;
        const int32_t count = (end - begin) * op_.width;
        if (has_gate) pass.ops.product(gated + at, count, wide + at);
        out_.prepare(pass, wide, begin, end);
      });
      pass.barrier();
    }
    out_.run(pass, wide, 0, rows, [&](Block block) {
      block.row += first;
      output_.take(pass, block);
    });
  }

  Mlp op_;
  int32_t width_;
  float limit_;
  std::optional<model::NormWeights> pre_;
  std::optional<DepthwiseConv> conv_;
  Products in_;
  int32_t wide_rows_;
  Products out_;
  bool in_parts_ = false;  // Wide rows exist in the forms of the second product only.
  ResidualOutput output_;
  model::Buffer<float> normed_, wide_, gated_;
};

}  // namespace

std::unique_ptr<Layer> make(const LayerSource& source, const Mlp& op, int32_t&) {
  return std::make_unique<MlpLayer>(source, op);
}

}  // namespace weir::encoder
