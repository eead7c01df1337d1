// Stages that give fewer rows of a sound, or more, than they find.
#include "encoder/layers/layer.h"

namespace weir::encoder {

namespace {

class ThinLayer final : public Layer {
 public:
  ThinLayer(int32_t width, const Thin& op) : width_(width), op_(op) {}

  void reshape(View& view) const override {
    view.height = (view.height + (op_.mean ? 0 : op_.step - 1)) / op_.step;
  }
  std::string refusal(const View& view) const override {
    if (!op_.mean || view.height >= op_.step) return {};
    return "expected at least " + std::to_string(op_.step) + " rows to average, found " +
           std::to_string(view.height);
  }
  void run(const Pass& pass) const override {
    claim_rows(pass, pass.count_after(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r) {
        const View& to = view_of(pass.after, r);
        const View& from = pass.views[static_cast<size_t>(&to - pass.after.data())];
        const int64_t at = from.row_begin + int64_t{r - to.row_begin} * op_.step;
        float* y = pass.next + int64_t{r} * width_;
        std::copy_n(pass.rows + at * width_, width_, y);
        if (!op_.mean) continue;
        for (int64_t i = 1; i < op_.step; ++i)
          pass.ops.add_scaled(pass.rows + (at + i) * width_, 1, width_, y);
        pass.ops.scale(1 / static_cast<float>(op_.step), width_, y);
      }
    });
    pass.barrier();
  }

 private:
  int32_t width_;
  Thin op_;
};

class FillUpLayer final : public Layer {
 public:
  FillUpLayer(const LayerSource& source, const FillUp& op)
      : width_(source.width),
        op_(op),
        table_(source.binder.linear(op.table, op.entries, width_, /*bias=*/false)),
        norm_(source.binder.norm(op.norm, width_)) {}

  void reshape(View& view) const override { view.height = op_.rows; }
  std::string refusal(const View& view) const override {
    if (view.height <= op_.rows) return {};
    return "expected at most " + std::to_string(op_.rows) + " rows, found " +
           std::to_string(view.height);
  }
  void run(const Pass& pass) const override {
    claim_rows(pass, pass.count_after(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r) {
        const View& to = view_of(pass.after, r);
        const View& from = pass.views[static_cast<size_t>(&to - pass.after.data())];
        const int32_t at = r - to.row_begin;
        float* y = pass.next + int64_t{r} * width_;
        if (at < from.rows()) {
          std::copy_n(pass.rows + int64_t{from.row_begin + at} * width_, width_, y);
          continue;
        }
        model::read_row(pass.ops, table_, op_.entries - 1, y);
        normalise(pass.ops, norm_, y, width_, y);
      }
    });
    pass.barrier();
  }

 private:
  int32_t width_;
  FillUp op_;
  model::Linear table_;
  model::NormWeights norm_;
};

}  // namespace

std::unique_ptr<Layer> make(const LayerSource& source, const Thin& op, int32_t&) {
  return std::make_unique<ThinLayer>(source.width, op);
}

std::unique_ptr<Layer> make(const LayerSource& source, const FillUp& op, int32_t&) {
  return std::make_unique<FillUpLayer>(source, op);
}

}  // namespace weir::encoder
