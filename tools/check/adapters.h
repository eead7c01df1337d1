// Adapters beside a family's fixture: each must give the reference's answers, alone and beside the
// others, and the model without one what it gives where there are none.
//
// Threads: one, with the team's help.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "card/model_card.h"
#include "check.h"
#include "runtime.h"

namespace weir::check {

// Those in `folder`/adapters, if there are any. `base`: the model's logits as it is without adapters
// (FamilyComparison::logits). An error: the model itself could not be loaded.
Result<void> check_adapters(const std::string& folder, const card::ModelCard& card,
                            const Runtime& runtime, std::span<const float> base, Report& report);

}  // namespace weir::check
