// Stages of a tower of convolutions: from pixels, of each number by itself, and the numbers by
// which the mean of all rows multiplies each.
#include <cmath>

#include "encoder/layers/depthwise.h"
#include "encoder/layers/products.h"

namespace weir::encoder {

void DepthwiseConv::compute(const Pass& pass, const View& view, View::Place place,
                            float* out) const {
  const int32_t reach = kernel_ / 2, times = out_ / in_;
  std::copy_n(weights_.bias, out_, out);
  for (int32_t dy = 0; dy < kernel_; ++dy) {
    const int32_t y = place.y + dy - reach;
    if (y < 0 || y >= view.height) continue;
    for (int32_t dx = 0; dx < kernel_; ++dx) {
      const int32_t x = place.x + dx - reach;
      if (x < 0 || x >= view.width) continue;
      const float* row = pass.rows + int64_t{view.row_at(y, x)} * in_;
      const float* taps = weights_.taps + int64_t{dy * kernel_ + dx} * out_;
      if (times == 1)
        for (int32_t c = 0; c < out_; ++c) out[c] += taps[c] * row[c];
      else
        for (int32_t c = 0; c < out_; ++c) out[c] += taps[c] * row[c / times];
    }
  }
}

namespace {

// The sides that a stage with this stride can take.
std::string refuse_uneven(const View& view, int32_t stride) {
  if (view.height % stride == 0 && view.width % stride == 0) return {};
  return "expected sides that can be halved at each stage, found a grid of " +
         std::to_string(view.width) + " x " + std::to_string(view.height);
}

class PixelConvLayer final : public Layer {
 public:
  PixelConvLayer(const LayerSource& source, const PixelConv& op)
      : op_(op),
        width_(source.spec.width),
        stride_(source.spec.patch),
        numbers_(3 * op.kernel * op.kernel),
        products_(numbers_),
        gathered_(source.scratch.ask<float>(model::BufferUse::kComputing, {.per_row = numbers_})) {
    products_.add(source.binder.pixels(op, width_));
    products_.finish_adding(source);
  }

  void run(const Pass& pass) const override {
    float* gathered = pass.ws.at(gathered_);
    claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r) gather(pass, r, gathered + int64_t{r} * numbers_);
      products_.prepare(pass, gathered, begin, end);
    });
    pass.barrier();
    products_.run(pass, gathered, 0, pass.count(), [&](const Block& block) {
      for (int32_t r = 0; r < block.rows; ++r) {
        pass.ops.act(op_.act, block.columns(), block.row_of(r));
        std::copy_n(block.row_of(r), block.columns(),
                    pass.next + int64_t{block.row + r} * width_ + block.begin);
      }
    });
  }

 private:
  void gather(const Pass& pass, int32_t row, float* out) const {
    const View& view = view_of(pass.views, row);
    const View::Place place = view.place_of(row - view.row_begin);
    const int32_t high = view.height * stride_, wide = view.width * stride_;
    const int32_t top = place.y * stride_ - op_.kernel / 2;
    const int32_t left = place.x * stride_ - op_.kernel / 2;
    for (int32_t colour = 0; colour < 3; ++colour) {
      const float* plane = view.numbers + int64_t{colour} * high * wide;
      for (int32_t y = top; y < top + op_.kernel; ++y)
        for (int32_t x = left; x < left + op_.kernel; ++x) {
          const bool within = y >= 0 && y < high && x >= 0 && x < wide;
          *out++ = within ? plane[int64_t{y} * wide + x] : 0;
        }
    }
  }

  PixelConv op_;
  int32_t width_, stride_;
  int32_t numbers_;  // Of a row's pixels.
  Products products_;
  model::Buffer<float> gathered_;
};

class ConvolveLayer final : public Layer {
 public:
  ConvolveLayer(const LayerSource& source, const Convolve& op)
      : op_(op), conv_(source, op.conv, op.width) {}

  int32_t patches_joined() const override { return op_.stride * op_.stride; }
  void reshape(View& view) const override {
    view.height /= op_.stride;
    view.width /= op_.stride;
  }
  std::string refusal(const View& view) const override { return refuse_uneven(view, op_.stride); }
  void run(const Pass& pass) const override {
    claim_rows(pass, pass.count_after(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r) {
        const View& to = view_of(pass.after, r);
        const View& from = pass.views[static_cast<size_t>(&to - pass.after.data())];
        const View::Place place = to.place_of(r - to.row_begin);
        float* out = pass.next + int64_t{r} * op_.width;
        conv_.compute(pass, from, {place.y * op_.stride, place.x * op_.stride}, out);
        if (op_.act) pass.ops.act(*op_.act, op_.width, out);
      }
    });
    pass.barrier();
  }

 private:
  Convolve op_;
  DepthwiseConv conv_;
};

class SqueezeExciteLayer final : public Layer {
 public:
  SqueezeExciteLayer(const LayerSource& source, const SqueezeExcite& op)
      : op_(op),
        width_(source.width),
        reduce_(source.binder.linear(op.module + ".reduce", op.inner, width_, true)),
        expand_(source.binder.linear(op.module + ".expand", width_, op.inner, true)),
        factors_(ask(source, int64_t{kViewsMax} * width_)),
        mean_(ask(source, int64_t{kViewsMax} * width_)),
        inner_(ask(source, int64_t{kViewsMax} * op.inner)) {}

  bool moves_rows() const override { return false; }
  void run(const Pass& pass) const override {
    const int64_t work = int64_t{pass.count()} * width_;
    claim_blocks(pass, std::ssize(pass.views), work, [&](int64_t view) { weigh(pass, view); });
    pass.barrier();
    claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r) {
        const View& view = view_of(pass.views, r);
        float* x = pass.rows + int64_t{r} * width_;
        pass.ops.product(pass.ws.at(factors_) + (&view - pass.views.data()) * width_, width_, x);
        pass.ops.act(op_.act, width_, x);
      }
    });
    pass.barrier();
  }

 private:
  static model::Buffer<float> ask(const LayerSource& source, int64_t count) {
    return source.scratch.ask<float>(model::BufferUse::kComputing, {.fixed = count});
  }

  // By what the rows of a view are multiplied. It is little work: one member does it.
  void weigh(const Pass& pass, int64_t number) const {
    const View& view = pass.views[static_cast<size_t>(number)];
    float* mean = pass.ws.at(mean_) + number * width_;
    float* inner = pass.ws.at(inner_) + number * op_.inner;
    float* factors = pass.ws.at(factors_) + number * width_;
    std::fill_n(mean, width_, 0.0f);
    for (int32_t r = view.row_begin; r < view.row_end(); ++r)
      pass.ops.add_scaled(pass.rows + int64_t{r} * width_, 1, width_, mean);
    pass.ops.scale(1 / static_cast<float>(view.rows()), width_, mean);
    multiply(pass, reduce_, mean, inner);
    pass.ops.act(kernels::Act::kRelu, op_.inner, inner);
    multiply(pass, expand_, inner, factors);
    pass.ops.act(kernels::Act::kSigmoid, width_, factors);
  }

  static void multiply(const Pass& pass, const model::Linear& weight, const float* x, float* y) {
    const kernels::GemmRange range = {.rows = 1, .end = weight.n, .y = y, .y_stride = weight.n};
    model::multiply_floats(pass.ops, weight, x, weight.k, range, pass.scratch());
    model::add_bias(pass.ops, weight, range);
  }

  SqueezeExcite op_;
  int32_t width_;
  model::Linear reduce_, expand_;
  model::Buffer<float> factors_, mean_, inner_;
};

}  // namespace

std::unique_ptr<Layer> make(const LayerSource& source, const PixelConv& op, int32_t& width) {
  width = source.spec.width;
  return std::make_unique<PixelConvLayer>(source, op);
}

std::unique_ptr<Layer> make(const LayerSource& source, const Convolve& op, int32_t& width) {
  width = op.width;
  return std::make_unique<ConvolveLayer>(source, op);
}

std::unique_ptr<Layer> make(const LayerSource& source, const SqueezeExcite& op, int32_t&) {
  return std::make_unique<SqueezeExciteLayer>(source, op);
}

}  // namespace weir::encoder
