// The answers of a fixture to its sound: the encoder run on the recorded features, then on the
// sound's file, and the model of text on the rows that come of either.
//
// Threads: one, with the team's help.
#pragma once

#include <string>

#include "card/model_card.h"
#include "check.h"
#include "runtime.h"

namespace weir::check {

// Does nothing for a fixture without a sound.
Result<void> check_sound(const std::string& folder, const card::ModelCard& card,
                         const Runtime& runtime, Report& report);

}  // namespace weir::check
