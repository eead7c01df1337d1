// StoredMatrix: a matrix that a layer wants, as the checkpoint stores it: what is known of it, and
// where its numbers are. A Placer makes of it what kernels read.
//
// Threads: plain data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/dtype.h"
#include "base/file.h"
#include "card/weight_format.h"
#include "model/linear.h"
#include "model/row_packer.h"

namespace weir::model {

// REQUIRES: one of the types of floats.
inline kernels::FloatType float_type(DType type) {
  return type == DType::kF32   ? kernels::FloatType::kF32
         : type == DType::kF16 ? kernels::FloatType::kF16
                               : kernels::FloatType::kBF16;
}

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
  std::optional<card::MatrixFormat> format;  // How MLX's codes are stored; none: others, floats.
  DType scale_type = DType::kBF16;           // Of the scales, and the biases, of MLX's codes.
  // Words, scales and biases of MLX's codes, or floats, or the tensors that `source` reads.
  std::array<Piece, RowSource::kPiecesMax> piece{};
  int32_t pieces = 0;
  // Of any other format: what reads a module, whose row `first_row` is the first of this matrix.
  std::shared_ptr<const RowSource> source;
  int64_t first_row = 0;
  // How far it is, in stored numbers, from a number of `linear` to the one in the next row, and to
  // the one in the next column.
  int64_t row_step = 0;
  int64_t column_step = 1;
  RowRuns runs{};

  // REQUIRES: there is a `source`.
  RowPacker packer() const {
    return turned()
               ? RowPacker(source, first_row, runs, linear.k, linear.n, false)
               : RowPacker(source, first_row, runs, linear.n, linear.k, linear.order != nullptr);
  }
  RowSource::Bases bases() const {
    RowSource::Bases out{};
    for (size_t i = 0; i < static_cast<size_t>(pieces); ++i) out[i] = piece[i].data();
    return out;
  }

  // Rows lie as kernels want them, one after another; else they have to be rearranged.
  bool in_rows() const { return !turned() && column_step == 1 && runs.one(); }
  bool turned() const { return row_step != linear.k; }
  int64_t numbers() const { return linear.macs(); }
  // What people call the format: "4-bit g32", "BF16".
  std::string format_name() const {
    if (source) return source->name();
    if (!format) return std::string(dtype_name(type));
    return std::to_string(format->bits) + "-bit g" + std::to_string(format->group);
  }
};

}  // namespace weir::model
