#include "exec/step_work.h"

namespace weir::exec {

StepResults::StepResults(int32_t rows_max)
    : chosen(static_cast<size_t>(rows_max)),
      top_counts(static_cast<size_t>(rows_max)),
      ranks(static_cast<size_t>(rows_max)),
      probed(static_cast<size_t>(rows_max)),
      continuations(static_cast<size_t>(rows_max)),
      forced_counts(static_cast<size_t>(rows_max)),
      taken(static_cast<size_t>(rows_max)),
      outputs_before(static_cast<size_t>(rows_max)),
      tops_(static_cast<size_t>(rows_max) * kTopLogprobsMax),
      forced_(static_cast<size_t>(rows_max) * sample::kForcedTokensMax) {}

}  // namespace weir::exec
