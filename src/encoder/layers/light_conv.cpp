// The light convolution of a conformer: a gated linear layer, each number along time by itself, and
// a linear layer back.
#include "encoder/layers/products.h"
#include "encoder/layers/residual.h"

namespace weir::encoder {

namespace {

class LightConvLayer final : public Layer {
 public:
  LightConvLayer(const LayerSource& source, const LightConv& op)
      : op_(op),
        width_(source.width),
        limit_(source.stage.limit),
        pre_(source.binder.norm(*source.stage.pre, source.width)),
        norm_(source.binder.norm(op.norm, source.width)),
        taps_(source.binder.each_by_itself(op.conv, source.width, op.taps)),
        in_(source.width),
        out_(source.width),
        output_(source, source.width),
        normed_(ask(source, source.width)),
        gated_(ask(source, int64_t{2} * source.width)) {
    in_.add(source, op.in, 2 * source.width, /*bias=*/false, op.clipped);
    in_.finish_adding(source);
    out_.add(source, op.out, source.width, /*bias=*/false, op.clipped);
    out_.finish_adding(source);
  }

  bool moves_rows() const override { return false; }

  void run(const Pass& pass) const override {
    float* normed = pass.ws.at(normed_);
    float* gated = pass.ws.at(gated_);
    const int64_t wide = int64_t{2} * width_;
    claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
      for (int64_t r = begin; r < end; ++r)
        normalise(pass.ops, pre_, pass.rows + r * width_, width_, normed + r * width_);
      in_.prepare(pass, normed, begin, end);
    });
    pass.barrier();
    in_.run(pass, normed, 0, pass.count(), [&](const Block& block) {
      for (int32_t r = 0; r < block.rows; ++r)
        std::copy_n(block.row_of(r), block.columns(), gated + (block.row + r) * wide + block.begin);
    });
    claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
      for (int64_t r = begin; r < end; ++r) {
        float* x = gated + r * wide;
        pass.ops.act(kernels::Act::kSigmoid, width_, x + width_);
        pass.ops.product(x + width_, width_, x);
      }
    });
    pass.barrier();
    claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r) convolve(pass, r);
      out_.prepare(pass, normed, begin, end);
    });
    pass.barrier();
    out_.run(pass, normed, 0, pass.count(), [&](const Block& block) { output_.take(pass, block); });
    output_.finish(pass);
  }

 private:
  static model::Buffer<float> ask(const LayerSource& source, int64_t per_row) {
    return source.scratch.ask<float>(model::BufferUse::kComputing, {.per_row = per_row});
  }

  // The taps in the order of time, as far back as the sound goes.
  void convolve(const Pass& pass, int32_t row) const {
    const int32_t before = row - view_of(pass.views, row).row_begin;
    const float* gated = pass.ws.at(gated_);
    float* y = pass.ws.at(normed_) + int64_t{row} * width_;
    std::fill_n(y, width_, 0.0f);
    for (int32_t tap = std::max(op_.taps - 1 - before, 0); tap < op_.taps; ++tap) {
      const float* x = gated + int64_t{row - (op_.taps - 1 - tap)} * 2 * width_;
      const float* weight = taps_ + int64_t{tap} * width_;
      for (int32_t i = 0; i < width_; ++i) y[i] += weight[i] * x[i];
    }
    normalise(pass.ops, norm_, limit_, y, width_, y);
    pass.ops.act(op_.act, width_, y);
  }

  LightConv op_;
  int32_t width_;
  float limit_;
  model::NormWeights pre_, norm_;
  const float* taps_;  // [taps][width].
  Products in_, out_;
  ResidualOutput output_;
  model::Buffer<float> normed_, gated_;
};

}  // namespace

std::unique_ptr<Layer> make(const LayerSource& source, const LightConv& op, int32_t&) {
  return std::make_unique<LightConvLayer>(source, op);
}

}  // namespace weir::encoder
