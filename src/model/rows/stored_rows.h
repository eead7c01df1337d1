// StoredRows: a quantised module's tensors, checked, and the RowSource that reads them.
//
// Threads: one, at load.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "card/weight_format.h"
#include "model/row_source.h"
#include "model/tensor_taker.h"

namespace weir::model {

struct StoredRows {
  std::shared_ptr<const RowSource> source;
  std::vector<const card::StoredTensor*> tensors;  // The source's pieces.
};

// Takes the tensors of the module `path` [rows..., k] as `format` lays them out; `rows` ends with
// the rows of one matrix, before which come the dimensions that the module stacks matrices in, as
// only layouts that lie row by row do. Nothing after an error, which the taker has.
std::optional<StoredRows> take_rows(TensorTaker& taker, const std::string& path,
                                    const card::MatrixFormat& format, std::span<const int64_t> rows,
                                    int32_t k);

// OpenAI's experts, `path`_blocks [matrices, n, k / 32, 16] and `path`_scales [matrices, n, k /
// 32].
std::optional<StoredRows> take_blocks(TensorTaker& taker, const std::string& path, int64_t matrices,
                                      int64_t n, int32_t k);

// `weight`, a GGUF file's blocks [rows..., k]. A float that multiplies each matrix is the tensor
// `factor`, where the file has it and the blocks are NVFP4.
std::optional<StoredRows> take_gguf(TensorTaker& taker, const card::StoredTensor& weight,
                                    const std::string& factor, std::span<const int64_t> rows,
                                    int32_t k);

}  // namespace weir::model
