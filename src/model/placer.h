// Placer: where weights go. It takes a matrix as the checkpoint stores it and returns where kernels
// will find it. The code that binds a layer's weights does not know which placer it asks:
//  - WeightStore packs a matrix into the model's memory, or leaves it mapped in its file;
//  - SlotPlacer leaves the matrices of streamed experts in their files: kernels find them in a slot
//    of memory, at one time in this one, at another in that (streamed_bank.h).
// One for a device would take memory there, queue the copy in the form that the device's kernels
// read, and return a Linear with the device's addresses.
//
// Threads: one, at load.
#pragma once

#include "base/result.h"
#include "model/linear.h"
#include "model/stored_matrix.h"

namespace weir::model {

class Placer {
 public:
  virtual ~Placer() = default;
  // An error names the tensor. What the returned weights point to, if anything yet, need not have
  // its numbers before the placer says so.
  virtual Result<Linear> place(const StoredMatrix& matrix) = 0;
};

}  // namespace weir::model
