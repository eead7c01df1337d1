// Products: linear layers that read the same rows, with what clips their inputs and outputs where a
// family does so.
//
// Threads: immutable after load; called by every member with the same arguments.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "encoder/layers/layer.h"
#include "encoder/product.h"

namespace weir::encoder {

class Products {
 public:
  // Of rows of k numbers, which are `kept` at most at one time; 0: as many as the workspace is made
  // for.
  explicit Products(int32_t k, int32_t kept = 0) : k_(k), kept_(kept) {}

  // A module [n, k]. `clipped`: it is `module`.linear, and its bounds lie beside that.
  void add(const LayerSource& source, const std::string& module, int32_t n, bool bias,
           bool clipped = false);
  void add(const model::Linear& weight) { weights_.push_back({.weight = weight}); }
  // After the last one.
  void finish_adding(const LayerSource& source);

  // Rows [begin, end) of x, [.., k], are there: they take the forms that weights want. A barrier
  // follows.
  void prepare(const Pass& pass, const float* x, int32_t begin, int32_t end) const {
    if (prepares()) convert(pass, x, begin, end);
  }
  bool prepares() const { return converts() && !clipped_; }
  // In those forms alone, so that rows need never be there as floats: they may be prepared part by
  // part, columns from a multiple of a block's on to another or to the end.
  bool takes_parts() const { return takes_parts_; }
  // A part of rows [begin, end), which lie `stride` apart and begin with the part.
  void prepare_part(const Pass& pass, const float* x, int64_t stride, int32_t begin, int32_t end,
                    int32_t column, int32_t columns) const;
  // Calls fn(block) for each block of rows [first, first + rows) times each of the weights. All
  // members leave together.
  template <class F>
  void run(const Pass& pass, const float* x, int32_t first, int32_t rows, F&& fn) const {
    if (!clipped_) {
      run_part(pass, x, first, rows, 0, weights_.size(), fn);
      return;
    }
    // Each has bounds of its own.
    for (size_t i = 0; i < weights_.size(); ++i) {
      clip_rows(pass, x, first, rows, weights_[i]);
      run_part(pass, pass.ws.at(clipped_rows_), 0, rows, i, 1, [&](const Block& block) {
        for (int32_t r = 0; r < block.rows; ++r)
          clip(block.row_of(r), block.columns(), weights_[i].out_least, weights_[i].out_most);
        fn(block);
      });
    }
  }

 private:
  struct Weight {
    model::Linear weight{};
    float in_least = 0, in_most = 0;
    float out_least = 0, out_most = 0;
  };

  bool converts() const { return forms_ != 0 || in_pairs_; }
  kernels::PairRows pairs(const Pass& pass) const {
    return {.k = k_, .stride = kernels::pair_stride(k_), .x = pass.ws.at(rounded_)};
  }
  static void clip(float* x, int64_t n, float least, float most) {
    for (int64_t i = 0; i < n; ++i) x[i] = std::min(std::max(x[i], least), most);
  }
  void convert(const Pass& pass, const float* x, int32_t begin, int32_t end) const;
  void clip_rows(const Pass& pass, const float* x, int32_t first, int32_t rows,
                 const Weight& weight) const;

  // Weights [begin, begin + count) of x's rows from `first` on.
  template <class F>
  void run_part(const Pass& pass, const float* x, int32_t first, int32_t rows, size_t begin,
                size_t count, F&& fn) const {
    Input in = {.x = x, .first = first};
    if (forms_ != 0) in.forms = &pass.ws.at(buffer_);
    if (in_pairs_) in.pairs = pairs(pass);
    for_product(pass, std::span(pointers_).subspan(begin, count), in, rows,
                pass.ws.at(block_, pass.member), [&](Block block) {
                  block.weight += begin;
                  fn(block);
                });
    pass.barrier();
  }

  int32_t k_;
  int32_t kept_;
  std::vector<Weight> weights_;
  std::vector<const model::Linear*> pointers_;
  uint8_t forms_ = 0;
  bool in_pairs_ = false;  // All weights meet rows in bf16, pair by pair.
  bool clipped_ = false;
  bool takes_parts_ = false;
  model::FormsBuffer buffer_{};
  model::Buffer<uint16_t> rounded_;
  model::Buffer<float> block_, clipped_rows_;
};

}  // namespace weir::encoder
