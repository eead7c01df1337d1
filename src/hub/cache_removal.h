// Takes models out of a cache: never a byte outside of it, and no blob that another snapshot has.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "hub/cache.h"

namespace weir::hub {

struct Removed {
  size_t files = 0;
  int64_t bytes = 0;  // That the disk has back.
};

// "org/name": all of it. With a revision: that snapshot. With a file: that GGUF file, of the
// revision. Errors: kNotFound, kIo; kUnavailable while another process fetches the model.
Result<Removed> remove_model(const Cache& cache, const ModelName& name);

}  // namespace weir::hub
