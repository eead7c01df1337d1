// GgufRows: the rows of a matrix that a GGUF file stores in blocks, of every type of card/
// block_format.h. All of them are read as they are meant, to the last bit.
//
// Threads: as RowSource.
#pragma once

#include <cstdint>

#include "card/block_format.h"
#include "model/row_source.h"

namespace weir::model {

class GgufRows final : public RowSource {
 public:
  // The tensors of a module: the rows, one after another, and, if `scaled`, a float that multiplies
  // them all (converted NVFP4 has one). REQUIRES: k is a multiple of the numbers in a block.
  enum Piece : size_t { kRows, kScale };
  GgufRows(const card::BlockFormat& format, int32_t n, int32_t k, bool scaled);

  void rows(const Bases& bases, int64_t first, int32_t count,
            kernels::RowNumbers* out) const override;

 private:
  const card::BlockFormat& format_;
  const int32_t k_;
  const bool scaled_;
};

}  // namespace weir::model
