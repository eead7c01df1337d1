// WeightTally: how many numbers a model's weights have, and in which formats they are stored,
// wherever each of them goes.
//
// Threads: one, at load.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/stored_matrix.h"

namespace weir::model {

class WeightTally {
 public:
  void add(const StoredMatrix& matrix) { of_format_[matrix.format_name()] += matrix.numbers(); }
  void add_vector(int64_t numbers) { of_vectors_ += numbers; }

  // The model's parameters: those of all matrices and vectors.
  int64_t numbers() const;
  // How the matrices are stored, most of the numbers first: "4-bit g32 79 %, 8-bit g32 21 %".
  std::string formats() const;

 private:
  std::map<std::string, int64_t> of_format_;
  int64_t of_vectors_ = 0;
};

}  // namespace weir::model
