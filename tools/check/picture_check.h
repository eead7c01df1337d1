// The answers of a fixture to its pictures: the tower run on the recorded pixel values, then on the
// picture's file, and the model of text on the rows of features that come of either.
//
// Threads: one, with the team's help.
#pragma once

#include <string>

#include "card/model_card.h"
#include "check.h"
#include "runtime.h"

namespace weir::check {

// Does nothing for a fixture without pictures.
Result<void> check_pictures(const std::string& folder, const card::ModelCard& card,
                            const Runtime& runtime, Report& report);

}  // namespace weir::check
