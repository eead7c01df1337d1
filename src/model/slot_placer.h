// SlotPlacer: the Placer of matrices that stay in their files until a slot has room for them. What
// it returns has their shape and form, and no weights; where they are stored it remembers for the
// catalogue of what can be read.
//
// Threads: as Placer.
#pragma once

#include <utility>
#include <vector>

#include "model/placer.h"

namespace weir::model {

class SlotPlacer final : public Placer {
 public:
  // Refuses what is not stored row by row: it is read as it lies.
  Result<Linear> place(const StoredMatrix& matrix) override;
  // What was placed since the last call, in that order.
  std::vector<StoredMatrix> take() { return std::exchange(placed_, {}); }

 private:
  std::vector<StoredMatrix> placed_;
};

}  // namespace weir::model
