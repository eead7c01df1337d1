// Adapter: a low-rank adapter (LoRA) bound to a model: for each matrix that it changes what kernels
// want, by the matrix's number (Linear::target). A matrix's product becomes
//   y = lengths * (W x + s B (A x)) + bias
// where W may be another weight than the model's (whole), and lengths are DoRA's.
//
// Threads: made by any one thread while passes run; immutable afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/huge_pages.h"
#include "base/result.h"
#include "card/adapter_card.h"
#include "model/adapter_target.h"
#include "model/linear.h"

namespace weir::model {

// What an adapter does to one matrix.
struct AdaptedMatrix {
  // [rank, k] in floats; none where its n is 0. Of a table instead [n, rank], looked up by row.
  Linear inner{};
  kernels::LowRank outer{};        // [n, rank]
  float scale = 1;                 // Multiplies A x.
  const float* lengths = nullptr;  // [n], or none.
  const float* bias = nullptr;     // [n]: what is added to the product and to the model's bias.
  Linear whole{};                  // In place of the model's weight; none where its n is 0.

  bool low_rank() const { return outer.n > 0; }
  // Its effect is a multiple of its scale: requests may scale it.
  bool scales() const { return lengths == nullptr && bias == nullptr && whole.n == 0; }
};

// How a model wants its adapters.
struct AdapterForm {
  bool bf16 = false;          // A and B are rounded to bf16; else they are float32.
  bool paired_rows = false;   // Rows of q and k lie so that neighbours turn together,
  int32_t head_dim = 0;       // in heads of so many.
  int32_t rank_max = 0;       // Larger ones are refused.
  int64_t bytes_max = 0;      // What it may take in memory.
};

class Adapter {
 public:
  // An error names the adapter's file and the module that does not fit the model.
  static Result<std::shared_ptr<const Adapter>> bind(const card::AdapterCard& card,
                                                     std::span<const AdapterTarget> targets,
                                                     const AdapterForm& form,
                                                     const kernels::Ops& ops);

  // Null: it leaves the matrix as it is.
  const AdaptedMatrix* find(int32_t target) const {
    const int32_t at = index_[static_cast<size_t>(target)];
    return at < 0 ? nullptr : &matrices_[static_cast<size_t>(at)];
  }
  int32_t rank() const { return rank_; }
  int64_t bytes() const { return static_cast<int64_t>(memory_.bytes()); }
  // All of it is a multiple of a scale.
  bool scales() const { return scales_; }

 private:
  friend class AdapterBinder;
  Adapter() = default;

  std::vector<int32_t> index_;  // By target: which of the matrices.
  std::vector<AdaptedMatrix> matrices_;
  HugeBuffer memory_;
  int32_t rank_ = 0;
  bool scales_ = true;
};

}  // namespace weir::model
