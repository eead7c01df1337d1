// TowerBinder: from a checkpoint's tensors to the weights of an encoder's stages, by the names that
// its spec has. Every tensor under the roots must be bound, or be one that the spec does without.
//
// Errors stick: after the first, getters return empty weights and finish() reports it.
//
// Threads: one, at load.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "encoder/spec.h"
#include "model/weight_map.h"

namespace weir::encoder {

class TowerBinder {
 public:
  // What is given outlives the binder.
  TowerBinder(const card::Checkpoint& checkpoint, const EncoderSpec& spec,
              const card::WeightFormat& format, const model::WeightBinder::Arithmetic& arithmetic,
              model::WeightStore& store);

  bool has(const std::string& tensor) const { return find(tensor) != nullptr; }
  // Of a tensor; 0 where there is none.
  int rank(const std::string& tensor) const {
    const card::StoredTensor* found = find(tensor);
    return found == nullptr ? 0 : found->tensor.rank;
  }
  // Module `module`: a weight [n, k], and a bias [n]. Rows take other forms whole here, so that in
  // bf16 k may be any.
  model::Linear linear(const std::string& module, int32_t n, int32_t k, bool bias);
  // A float32 matrix [n, k] of a tensor [k, n] of this very name.
  model::Linear turned(const std::string& tensor, int32_t n, int32_t k);
  // A convolution over whole patches, as a product with their numbers: float32, [n, k], where a
  // patch has frames x side x side x 3 numbers, in the order of `layout`. The file has it as [n,
  // k], or with dimensions of its own, colour first, or last, as MLX writes it.
  model::Linear patches(const std::string& module, int32_t n, const EncoderSpec& spec, bool bias);
  // A convolution over whole squares of side x side rows, as a product with all their numbers, row
  // by row of each number: float32, [n, k]. The file has the numbers first, or last, as MLX does.
  model::Linear squares(const std::string& module, int32_t n, int32_t k, int side, bool bias);
  // The same of a PixelConv: colour first.
  model::Linear pixels(const PixelConv& op, int32_t n);
  // A convolution's weights, [kernel * kernel][n], and its biases, [n], which a batch norm has
  // changed already.
  struct DepthwiseWeights {
    const float* taps = nullptr;
    const float* bias = nullptr;
  };
  DepthwiseWeights depthwise(const Depthwise& conv, int32_t n);
  // A convolution over taps of time, or of time and bands, as a product with the channels of one
  // tap after the other: float32, [n, k]. The file has channels first, or last, as MLX writes it.
  model::Linear along_time(const TimeConv& op, int32_t channels);
  // Weights [n, 1, taps] of a convolution of each number by itself, as [taps][n].
  const float* each_by_itself(const std::string& module, int32_t n, int32_t taps);
  // A norm of rows of n numbers, by its module.
  model::NormWeights norm(const Norm& norm, int32_t n);
  // A tensor of n numbers of this very name, which may have dimensions of 1 besides.
  const float* vector(const std::string& tensor, int32_t n);
  // A tensor of one number.
  float number(const std::string& tensor) {
    return binder_.number(model::kWholeModel, stored(tensor));
  }
  // A tensor of this shape.
  const float* tensor(const std::string& tensor, std::span<const int64_t> shape);
  void refuse(Error error) { binder_.refuse(std::move(error)); }
  bool failed() const { return binder_.failed(); }

  // The first error; else the first tensor under the roots that nothing has bound.
  Result<void> finish() const;
  const model::WeightTally& tally() const { return binder_.tally(); }

 private:
  // Weights [n, places, colours] or [n, colours, places], float32, as [n, colours * places]:
  // `colour_last` says what the file has, `wanted_last` what is wanted.
  model::Linear flattened(const std::string& module, std::span<const int64_t> shape,
                          bool colour_last, bool wanted_last, bool bias);
  float* allocate(int64_t count);
  static model::ModelSpec names_of(const card::Checkpoint& checkpoint, const EncoderSpec& spec);
  std::string stored(const std::string& name) const;
  const card::StoredTensor* find(const std::string& name) const {
    return checkpoint_.find(stored(name));
  }

  const card::Checkpoint& checkpoint_;
  std::string tower_, projector_;  // What the file has in place of these words.
  const model::ModelSpec names_;   // Of no model: only what messages and is_unused() ask for.
  const bool bf16_prompts_;
  model::WeightStore& store_;
  model::WeightBinder binder_;
};

}  // namespace weir::encoder
