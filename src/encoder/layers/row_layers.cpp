// Stages that give other rows of those they find, without weights of many columns: norms, patches
// that join, a class row that goes.
#include "encoder/layers/layer.h"

namespace weir::encoder {

namespace {

class NormaliseLayer final : public Layer {
 public:
  NormaliseLayer(const LayerSource& source, const Normalise& op)
      : width_(source.width),
        limit_(source.stage.limit),
        norm_(source.binder.norm(op.norm, source.width)),
        act_(op.act) {}

  bool moves_rows() const override { return false; }
  void run(const Pass& pass) const override {
    claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r) {
        float* x = pass.rows + int64_t{r} * width_;
        normalise(pass.ops, norm_, limit_, x, width_, x);
        if (act_) pass.ops.act(*act_, width_, x);
      }
    });
    pass.barrier();
  }

 private:
  int32_t width_;
  float limit_;
  model::NormWeights norm_;
  std::optional<kernels::Act> act_;
};

class StandardiseLayer final : public Layer {
 public:
  StandardiseLayer(const LayerSource& source, const Standardise& op)
      : width_(source.width),
        bias_(source.binder.vector(op.bias, width_)),
        scale_(source.binder.vector(op.scale, width_)) {}

  bool moves_rows() const override { return false; }
  void run(const Pass& pass) const override {
    claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r) {
        float* x = pass.rows + int64_t{r} * width_;
        pass.ops.add_scaled(bias_, -1, width_, x);
        pass.ops.product(scale_, width_, x);
      }
    });
    pass.barrier();
  }

 private:
  int32_t width_;
  const float* bias_;
  const float* scale_;
};

class DropClassRowLayer final : public Layer {
 public:
  explicit DropClassRowLayer(int32_t width) : width_(width) {}

  void reshape(View& view) const override { view.before = view.after = 0; }
  void run(const Pass& pass) const override {
    claim_rows(pass, pass.count_after(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r) {
        const View& to = view_of(pass.after, r);
        const View& from = pass.views[static_cast<size_t>(&to - pass.after.data())];
        std::copy_n(pass.rows + int64_t{from.grid_begin() + r - to.row_begin} * width_, width_,
                    pass.next + int64_t{r} * width_);
      }
    });
    pass.barrier();
  }

 private:
  int32_t width_;
};

// Squares of patches become one row each, by rows.
class SquareLayer : public Layer {
 public:
  SquareLayer(int32_t width, int32_t side, int32_t given)
      : width_(width), side_(side), given_(given) {}

  int32_t patches_joined() const override { return side_ * side_; }
  void reshape(View& view) const override {
    view.height /= side_;
    view.width /= side_;
    if (transposed()) std::swap(view.height, view.width);
    view.block = 1;
    view.window = 0;
  }
  std::string refusal(const View& view) const override {
    if (view.before == 0 && view.after == 0 && view.height >= side_ && view.width >= side_ &&
        (pools() || (view.height % side_ == 0 && view.width % side_ == 0)))
      return {};
    return "expected sides of a multiple of " + std::to_string(side_) + " patches, found " +
           std::to_string(view.width) + " x " + std::to_string(view.height);
  }
  void run(const Pass& pass) const override {
    claim_rows(pass, pass.count_after(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r) {
        const View& to = view_of(pass.after, r);
        const View& from = pass.views[static_cast<size_t>(&to - pass.after.data())];
        View::Place place = to.place_of(r - to.grid_begin());
        if (transposed()) std::swap(place.x, place.y);
        join(pass, from, {place.y * side_, place.x * side_}, pass.next + int64_t{r} * given_);
      }
    });
    pass.barrier();
  }

 protected:
  // Patches that are left over at the edges are dropped.
  virtual bool pools() const { return false; }
  virtual bool transposed() const { return false; }  // Merge::transposed.
  // The square whose upper left patch lies at `place`, as one row.
  virtual void join(const Pass& pass, const View& from, View::Place place, float* out) const = 0;

  const float* patch(const Pass& pass, const View& from, View::Place place, int32_t y,
                     int32_t x) const {
    return pass.rows + int64_t{from.row_at(place.y + y, place.x + x)} * width_;
  }

  int32_t width_, side_, given_;
};

class MergeLayer final : public SquareLayer {
 public:
  MergeLayer(int32_t width, const Merge& op)
      : SquareLayer(width, op.side, width * op.side * op.side),
        order_(op.order),
        transposed_(op.transposed) {}

 private:
  bool transposed() const override { return transposed_; }
  void join(const Pass& pass, const View& from, View::Place place, float* out) const override {
    const int32_t patches = side_ * side_;
    for (int32_t i = 0; i < patches; ++i) {
      const float* x = patch(pass, from, place, i / side_, i % side_);
      if (order_ == Merge::kPatchByPatch)
        std::copy_n(x, width_, out + int64_t{i} * width_);
      else
        for (int32_t c = 0; c < width_; ++c) out[int64_t{c} * patches + i] = x[c];
    }
  }

  Merge::Order order_;
  bool transposed_;
};

class PoolLayer final : public SquareLayer {
 public:
  PoolLayer(int32_t width, const Pool& op)
      : SquareLayer(width, op.side, width), factor_(op.factor) {}

 private:
  bool pools() const override { return true; }
  void join(const Pass& pass, const View& from, View::Place place, float* out) const override {
    std::fill_n(out, width_, 0.0f);
    for (int32_t i = 0; i < side_ * side_; ++i)
      pass.ops.add_scaled(patch(pass, from, place, i / side_, i % side_), 1, width_, out);
    pass.ops.scale(factor_ / static_cast<float>(side_ * side_), width_, out);
  }

  float factor_;
};

}  // namespace

std::unique_ptr<Layer> make(const LayerSource& source, const Normalise& op, int32_t&) {
  return std::make_unique<NormaliseLayer>(source, op);
}

std::unique_ptr<Layer> make(const LayerSource& source, const Standardise& op, int32_t&) {
  return std::make_unique<StandardiseLayer>(source, op);
}

std::unique_ptr<Layer> make(const LayerSource& source, const DropClassRow&, int32_t&) {
  return std::make_unique<DropClassRowLayer>(source.width);
}

std::unique_ptr<Layer> make(const LayerSource& source, const Merge& op, int32_t& width) {
  width = source.width * op.side * op.side;
  return std::make_unique<MergeLayer>(source.width, op);
}

std::unique_ptr<Layer> make(const LayerSource& source, const Pool& op, int32_t&) {
  return std::make_unique<PoolLayer>(source.width, op);
}

}  // namespace weir::encoder
