// The first stage: numbers of pixels become rows, by a product with the numbers of each patch; a
// class row, learned positions and angles come with them.
#include <array>

#include "encoder/layers/products.h"
#include "encoder/positions.h"

namespace weir::encoder {

namespace {

class PatchesLayer final : public Layer {
 public:
  PatchesLayer(const LayerSource& source, const Patches& op)
      : op_(op),
        width_(source.spec.width),
        patch_(source.spec.patch),
        gathers_(source.spec.layout == media::PixelLayout::kPlanes),
        numbers_(3 * source.spec.frames * patch_ * patch_),
        rope_(source.spec.rope),
        head_dim_(head_dim_of(source.spec)),
        angles_(source.angles),
        products_(numbers_),
        gathered_(source.scratch.ask<float>(model::BufferUse::kComputing, {.per_row = numbers_})) {
    products_.add(source.binder.patches(op.module, width_, source.spec, op.bias));
    products_.finish_adding(source);
    if (op.norm) norm_ = source.binder.norm(*op.norm, width_);
    if (!op.class_row.empty()) class_row_ = source.binder.vector(op.class_row, width_);
    bind_positions(source);
  }

  void reshape(View& view) const override {
    if (class_row_ == nullptr) return;
    (op_.class_last ? view.after : view.before) = 1;
  }

  std::string refusal(const View& view) const override {
    const int side = op_.positions.side;
    if (op_.positions.kind == PositionTable::kAxes && std::max(view.height, view.width) > side)
      return "expected at most " + std::to_string(side) + " patches a side, found " +
             std::to_string(view.width) + " x " + std::to_string(view.height);
    if (op_.positions.kind != PositionTable::kOneByOne ||
        (view.height == side && view.width == side))
      return {};
    return "expected a picture of " + std::to_string(side) + " x " + std::to_string(side) +
           " patches, found " + std::to_string(view.width) + " x " + std::to_string(view.height);
  }

  void run(const Pass& pass) const override {
    float* gathered = pass.ws.at(gathered_);
    const int32_t cells = cells_before(pass, pass.after.size());
    claim_rows(pass, cells, [&](int32_t begin, int32_t end) {
      for (int32_t i = begin; i < end; ++i) gather(pass, i, gathered + int64_t{i} * numbers_);
      products_.prepare(pass, gathered, begin, end);
    });
    pass.barrier();
    products_.run(pass, gathered, 0, cells, [&](const Block& block) {
      for (int32_t r = 0; r < block.rows; ++r)
        std::copy_n(block.row_of(r), block.columns(),
                    pass.next + int64_t{row_of(pass, block.row + r)} * width_ + block.begin);
    });
    claim_rows(pass, pass.count_after(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r) finish(pass, r);
    });
    pass.barrier();
  }

 private:
  static int32_t head_dim_of(const EncoderSpec& spec) {
    for (const Stage& stage : spec.stages)
      if (const auto* attention = std::get_if<Attention>(&stage.op)) return attention->head_dim;
    return 0;
  }

  void bind_positions(const LayerSource& source) {
    const PositionTable& table = op_.positions;
    if (table.kind == PositionTable::kNone) return;
    if (table.kind == PositionTable::kAxes) {
      const std::array<int64_t, 3> both = {2, table.side, width_};
      positions_ = source.binder.tensor(table.tensor, both);
      return;
    }
    const bool class_row = table.kind == PositionTable::kOneByOne && class_row_ != nullptr;
    const int64_t rows = int64_t{table.side} * table.side + (class_row ? 1 : 0);
    // InternVL's has a dimension of 1 before.
    const std::array<int64_t, 3> shape = {1, rows, width_};
    const bool leading = source.binder.rank(table.tensor) == 3;
    positions_ = source.binder.tensor(table.tensor, std::span(shape).subspan(leading ? 0 : 1));
  }

  // Patches of the first `views` views, whose numbers are multiplied without rows between.
  static int32_t cells_before(const Pass& pass, size_t views) {
    int32_t cells = 0;
    for (const View& view : pass.after.first(views)) cells += view.cells();
    return cells;
  }
  // The view of the i-th patch of all; i becomes the patch's number there.
  static const View& view_of_cell(const Pass& pass, int32_t& i) {
    size_t view = 0;
    for (; i >= pass.after[view].cells(); ++view) i -= pass.after[view].cells();
    return pass.after[view];
  }
  static int32_t row_of(const Pass& pass, int32_t cell) {
    const View& view = view_of_cell(pass, cell);
    return view.grid_begin() + cell;
  }

  // The numbers of a patch, in the order of the weight's.
  void gather(const Pass& pass, int32_t cell, float* out) const {
    const View& view = view_of_cell(pass, cell);
    if (!gathers_) {
      const float* from = view.numbers + int64_t{view.without_windows(cell)} * numbers_;
      for (int32_t i = 0; i < numbers_; ++i) out[i] = op_.factor * (from[i] - op_.middle);
      return;
    }
    const View::Place place = view.place_of(cell);
    const int64_t line = int64_t{view.width} * patch_, plane = line * view.height * patch_;
    const float* from = view.numbers + place.y * patch_ * line + int64_t{place.x} * patch_;
    for (int32_t colour = 0; colour < 3; ++colour)
      for (int32_t y = 0; y < patch_; ++y, out += patch_)
        std::copy_n(from + colour * plane + y * line, patch_, out);
  }

  void finish(const Pass& pass, int32_t row) const {
    const View& view = view_of(pass.after, row);
    float* x = pass.next + int64_t{row} * width_;
    const int32_t cell = row - view.grid_begin();
    const bool of_grid = cell >= 0 && cell < view.cells();
    if (!of_grid) std::copy_n(class_row_, width_, x);
    if (norm_ && of_grid) normalise(pass.ops, *norm_, x, width_, x);
    if (op_.positions.kind == PositionTable::kOneByOne)
      pass.ops.add_scaled(positions_ + int64_t{row - view.row_begin} * width_, 1, width_, x);
    else if (of_grid && op_.positions.kind != PositionTable::kNone)
      add_position(pass, view, view.place_of(cell), x);
    if (rope_.kind == Rope::kNone) return;
    float* angles = pass.ws.at(angles_) + int64_t{row} * head_dim_;
    of_grid ? turn(rope_, head_dim_, view.place_of(cell), angles) : stand_still(head_dim_, angles);
  }

  void add_position(const Pass& pass, const View& view, View::Place place, float* x) const {
    const int32_t side = op_.positions.side;
    const auto entry = [&](int32_t y, int32_t x_at) {
      return positions_ + (int64_t{y} * side + x_at) * width_;
    };
    if (op_.positions.kind == PositionTable::kAxes) {
      pass.ops.add_scaled(entry(0, place.x), 1, width_, x);
      pass.ops.add_scaled(entry(1, place.y), 1, width_, x);
      return;
    }
    if (op_.positions.kind == PositionTable::kBucketed) {
      pass.ops.add_scaled(
          entry(bucket_of(place.y, view.height, side), bucket_of(place.x, view.width, side)), 1,
          width_, x);
      return;
    }
    const Mixture down = mixture(place.y, view.height), across = mixture(place.x, view.width);
    for (size_t i = 0; i < down.weights.size(); ++i)
      for (size_t j = 0; j < across.weights.size(); ++j)
        pass.ops.add_scaled(
            entry(down.first + static_cast<int32_t>(i), across.first + static_cast<int32_t>(j)),
            down.weights[i] * across.weights[j], width_, x);
  }

  // By what the table's entries count for the i-th of `count` places of a side.
  Mixture mixture(int32_t i, int32_t count) const {
    const PositionTable& table = op_.positions;
    if (table.kind == PositionTable::kCorners) return corner_to_corner(i, count, table.side);
    if (table.kind == PositionTable::kBicubic) return bicubic(i, count, table.side);
    return antialiased(i, count, table.side);
  }

  Patches op_;
  int32_t width_;
  int32_t patch_;
  bool gathers_;     // Patches lie in planes.
  int32_t numbers_;  // Of a patch.
  Rope rope_;
  int32_t head_dim_;
  model::Buffer<float> angles_;
  Products products_;
  model::Buffer<float> gathered_;
  std::optional<model::NormWeights> norm_;
  const float* class_row_ = nullptr;
  const float* positions_ = nullptr;
};

}  // namespace

std::unique_ptr<Layer> make(const LayerSource& source, const Patches& op, int32_t& width) {
  width = source.spec.width;
  return std::make_unique<PatchesLayer>(source, op);
}

}  // namespace weir::encoder
