// A convolution along a sound, as a product with what its taps read, which is gathered for so many
// rows at a time; then a norm, an activation and learned positions.
#include <cmath>

#include "encoder/layers/products.h"

namespace weir::encoder {

namespace {

// Rows of taps that exist at one time: enough that a block of weights meets several blocks of them.
constexpr int32_t kGatheredRows = 1024;

class TimeConvLayer final : public Layer {
 public:
  TimeConvLayer(const LayerSource& source, const TimeConv& op)
      : op_(op),
        first_(source.width == 0),
        width_in_(first_ ? source.spec.bands : source.width),
        channels_in_(width_in_ / op.bands),
        bands_(op.band.count(op.bands)),
        width_(bands_ * op.channels),
        taps_(op.time.taps * op.band.taps * channels_in_),
        products_(taps_, kGatheredRows),
        gathered_(source.scratch.ask<float>(model::BufferUse::kComputing,
                                            {.fixed = int64_t{kGatheredRows} * taps_})),
        moments_(source.scratch.ask<double>(model::BufferUse::kComputing,
                                            {.per_row = op.running ? 2 : 0})) {
    products_.add(source.binder.along_time(op, channels_in_));
    products_.finish_adding(source);
    if (op.norm) norm_ = source.binder.norm(*op.norm, op.channels);
    if (op.positions.empty()) return;
    const std::array<int64_t, 2> shape = {op.positions_max, width_};
    positions_ = source.binder.tensor(op.positions, shape);
  }

  int32_t width() const { return width_; }
  void reshape(View& view) const override {
    view.height = op_.time.count(view.height);
    view.beyond = 0;
  }
  std::string refusal(const View& view) const override {
    const int rows = view.height + op_.time.before + op_.time.after < op_.time.taps
                         ? 0
                         : op_.time.count(view.height);
    if (rows > 0 && (positions_ == nullptr || rows <= op_.positions_max)) return {};
    return "expected 1 to " +
           std::to_string(positions_ == nullptr ? INT32_MAX : op_.positions_max) +
           " rows of a convolution, found " + std::to_string(rows);
  }

  void run(const Pass& pass) const override {
    const int64_t count = int64_t{pass.count_after()} * bands_;
    float* gathered = pass.ws.at(gathered_);
    for (int64_t first = 0; first < count; first += kGatheredRows) {
      const auto rows = static_cast<int32_t>(std::min<int64_t>(kGatheredRows, count - first));
      claim_rows(pass, rows, [&](int32_t begin, int32_t end) {
        for (int32_t i = begin; i < end; ++i)
          gather(pass, first + i, gathered + int64_t{i} * taps_);
        products_.prepare(pass, gathered, begin, end);
      });
      pass.barrier();
      products_.run(pass, gathered, 0, rows, [&](const Block& block) {
        for (int32_t r = 0; r < block.rows; ++r)
          std::copy_n(block.row_of(r), block.columns(),
                      pass.next + (first + block.row + r) * op_.channels + block.begin);
      });
    }
    if (op_.running) find_moments(pass);
    claim_rows(pass, pass.count_after(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r) finish(pass, r);
    });
    pass.barrier();
  }

 private:
  // What the taps of the i-th band of all rows read.
  void gather(const Pass& pass, int64_t i, float* out) const {
    const auto row = static_cast<int32_t>(i / bands_);
    const View& to = view_of(pass.after, row);
    const View& from = pass.views[static_cast<size_t>(&to - pass.after.data())];
    const float* rows = first_ ? from.numbers : pass.rows + int64_t{from.row_begin} * width_in_;
    const int32_t time = (row - to.row_begin) * op_.time.stride - op_.time.before;
    const int32_t band = static_cast<int32_t>(i % bands_) * op_.band.stride - op_.band.before;
    for (int32_t t = time; t < time + op_.time.taps; ++t)
      for (int32_t f = band; f < band + op_.band.taps; ++f, out += channels_in_) {
        if (t >= 0 && t < from.height + from.beyond && f >= 0 && f < op_.bands)
          std::copy_n(rows + int64_t{t} * width_in_ + int64_t{f} * channels_in_, channels_in_, out);
        else
          std::fill_n(out, channels_in_, 0.0f);
      }
  }

  // For each row the mean and the variance of all numbers up to its last one, as the reference
  // counts them: a row's part of the variance is around its own mean.
  void find_moments(const Pass& pass) const {
    double* moments = pass.ws.at(moments_);
    for (const int which : {0, 1}) {
      claim_rows(pass, pass.count_after(), [&](int32_t begin, int32_t end) {
        for (int32_t r = begin; r < end; ++r) {
          const float* x = pass.next + int64_t{r} * width_;
          const double mean = which == 0 ? 0 : moments[2 * int64_t{r}];
          double sum = 0;
          for (int32_t i = 0; i < width_; ++i) {
            const double number = double{x[i]} - mean;
            sum += which == 0 ? number : number * number;
          }
          moments[2 * int64_t{r} + which] = sum;
        }
      });
      pass.barrier();
      claim_blocks(pass, 1, pass.count_after(), [&](int64_t) {
        for (const View& view : pass.after) {
          double sum = 0, numbers = 0;
          for (int64_t r = view.row_begin; r < view.row_end(); ++r) {
            sum += moments[2 * r + which];
            numbers += width_;
            moments[2 * r + which] = sum / numbers;
          }
        }
      });
      pass.barrier();
    }
  }

  void finish(const Pass& pass, int32_t row) const {
    float* x = pass.next + int64_t{row} * width_;
    if (op_.running) {
      const double* moments = pass.ws.at(moments_) + 2 * int64_t{row};
      const auto mean = static_cast<float>(moments[0]);
      const auto scale = static_cast<float>(1 / std::sqrt(moments[1] + double{norm_->eps}));
      for (int32_t i = 0; i < width_; ++i)
        x[i] = (x[i] - mean) * scale * norm_->weight[i % op_.channels];
    } else if (norm_) {
      for (int32_t i = 0; i < width_; i += op_.channels)
        normalise(pass.ops, *norm_, x + i, op_.channels, x + i);
    }
    pass.ops.act(op_.act, width_, x);
    if (positions_ == nullptr) return;
    const int32_t at = row - view_of(pass.after, row).row_begin;
    pass.ops.add_scaled(positions_ + int64_t{at} * width_, 1, width_, x);
  }

  TimeConv op_;
  bool first_;  // It reads frames.
  int32_t width_in_, channels_in_, bands_, width_;
  int32_t taps_;  // Numbers that all of them read.
  Products products_;
  model::Buffer<float> gathered_;
  model::Buffer<double> moments_;
  std::optional<model::NormWeights> norm_;
  const float* positions_ = nullptr;
};

}  // namespace

std::unique_ptr<Layer> make(const LayerSource& source, const TimeConv& op, int32_t& width) {
  auto layer = std::make_unique<TimeConvLayer>(source, op);
  width = layer->width();
  return layer;
}

}  // namespace weir::encoder
