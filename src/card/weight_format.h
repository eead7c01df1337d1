// WeightFormat: how a checkpoint's matrices are stored, as a description. A matrix is floats, or
// codes of a few bits in groups that share a scale; which module has which is said by its path.
//
// Read from config.json's `quantization` (MLX affine; per-module overrides by path). A module is
// quantised iff the file has its `.scales`.
//
// Threads: immutable.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/dtype.h"
#include "base/json.h"
#include "base/result.h"

namespace weir::card {

// What a stored matrix of codes is made of.
struct MatrixFormat {
  // What a code stands for before its group's scale multiplies it. A further grid (16 numbers by
  // table, e4m3, ternary) is a further value: the loader turns its codes into those of the kernels,
  // whose table of ops knows bits and groups only.
  enum class Grid : uint8_t {
    kUniform,  // 0 to 2^bits - 1, each its own number.
  };
  Grid grid = Grid::kUniform;
  int32_t bits = 4;
  int32_t group = 64;               // Neighbouring inputs of a row that share a scale.
  DType scale_type = DType::kBF16;  // Of scales, and of biases.
  bool biases = true;               // A group has a number that is added, too.

  // 32-bit words of codes, and scales, in a row of k inputs. REQUIRES: k is a multiple of `group`.
  int64_t row_words(int32_t k) const { return int64_t{k} * bits / 32; }
  int64_t row_scales(int32_t k) const { return k / group; }
};

class WeightFormat {
 public:
  // kUnsupported for formats that we do not read (GPTQ, AWQ, FP8, MXFP4, ...).
  static Result<WeightFormat> from_config(JsonValue config);

  bool quantised() const { return quantised_; }
  // The format of a quantised module by its path in the checkpoint; its scales' tensor says their
  // type.
  MatrixFormat of(std::string_view module, DType scale_type) const;

 private:
  bool quantised_ = false;
  MatrixFormat default_;
  std::map<std::string, MatrixFormat, std::less<>> overrides_;
};

}  // namespace weir::card
