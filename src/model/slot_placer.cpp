#include "model/slot_placer.h"

namespace weir::model {

Result<Linear> SlotPlacer::place(const StoredMatrix& matrix) {
  if (!matrix.source && !matrix.in_rows())
    return fail(ErrorCode::kUnsupported,
                "--stream-experts: tensor '" + matrix.name +
                    "': expected experts whose rows lie one after another in the file, found some "
                    "that have to be rearranged");
  placed_.push_back(matrix);
  return matrix.linear;
}

}  // namespace weir::model
