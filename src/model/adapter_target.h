// AdapterTarget: a matrix of the model that adapters may change, by the module of the checkpoint
// that it is, or whose rows it has some of. Linear::target is its number among them.
//
// Threads: plain data.
#pragma once

#include <cstdint>
#include <string>

#include "model/linear.h"
#include "model/row_packer.h"

namespace weir::model {

struct AdapterTarget {
  std::string module;     // Its path. Several matrices may be of one module.
  int64_t rows = 0;       // Of the stored module.
  int64_t row = 0;        // Which of them is the matrix's first; its others follow in `runs`.
  RowRuns runs{};
  Linear weight{};
  bool table = false;     // Rows are looked up: the embedding.
  bool resident = true;   // Its numbers stay where `weight` says; else they come from disk.

  // Which row of the stored module row i of the matrix is.
  int64_t stored_row(int64_t i) const { return row + runs.stored(i); }
};

}  // namespace weir::model
