// StoredMatrix: a matrix that a layer wants, as the checkpoint stores it: what is known of it, and
// where its numbers are. A Placer makes of it what kernels read.
//
// Threads: plain data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/dtype.h"
#include "base/file.h"
#include "card/weight_format.h"
#include "model/linear.h"

namespace weir::model {

// REQUIRES: one of the types of floats.
inline kernels::FloatType float_type(DType type) {
  return type == DType::kF32   ? kernels::FloatType::kF32
         : type == DType::kF16 ? kernels::FloatType::kF16
                               : kernels::FloatType::kBF16;
}

// Which rows of those stored are a matrix's: runs of `length`, each `step` rows after the one
// before.
struct RowRuns {
  int64_t length = 0;  // 0: one run.
  int64_t step = 0;

  bool one() const { return length == 0; }
  int64_t stored(int64_t row) const { return one() ? row : row / length * step + row % length; }
};

struct StoredMatrix {
  // Where some of its bytes begin, and how many they are.
  struct Piece {
    const FileView* file = nullptr;
    int32_t file_number = 0;  // Among the checkpoint's.
    uint64_t offset = 0;      // In that file.
    uint64_t bytes = 0;

    const std::byte* data() const { return file->bytes().data() + offset; }
  };

  std::string name;  // Of its tensor, for messages.
  // What kernels are to have of it: all but the weights. A bias is in memory already.
  Linear linear;
  DType type = DType::kF32;                  // Of floats as stored.
  std::optional<card::MatrixFormat> format;  // How codes are stored; none: these are floats.
  std::array<Piece, 3> piece{};              // Words, scales and biases of codes, or floats.
  int32_t pieces = 0;
  // How far it is, in stored numbers, from a number of `linear` to the one in the next row, and to
  // the one in the next column.
  int64_t row_step = 0;
  int64_t column_step = 1;
  RowRuns runs{};

  // Rows lie as kernels want them, one after another; else they have to be rearranged.
  bool in_rows() const { return !turned() && column_step == 1 && runs.one(); }
  bool turned() const { return row_step != linear.k; }
  int64_t numbers() const { return linear.macs(); }
  // What people call the format: "4-bit g32", "BF16".
  std::string format_name() const {
    if (!format) return std::string(dtype_name(type));
    return std::to_string(format->bits) + "-bit g" + std::to_string(format->group);
  }
};

}  // namespace weir::model
