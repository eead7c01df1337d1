// DraftChoice: what drafts for a model with weights of its own, as the options and the model's
// files say: a folder's drafter, the module that the model's checkpoint has, or nothing.
//
// Threads: a value.
#pragma once

#include <memory>

#include "base/result.h"
#include "card/model_card.h"
#include "program/options.h"

namespace weir {

struct DraftChoice {
  std::shared_ptr<const card::ModelCard> card;  // Of --draft-model.
  bool module = false;                          // The model's own.

  bool any() const { return card != nullptr || module; }
};

// An error names the option and what was expected: a drafter of the kind that --speculative says,
// with the model's vocabulary.
Result<DraftChoice> choose_drafter(const Options& options, const card::ModelCard& model);

}  // namespace weir
