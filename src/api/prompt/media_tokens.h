// The tokens of a prompt with pictures and sounds: each one's placeholder in the place of its mark,
// and where in the prompt its rows of features go.
//
// Threads: any; slow work for a pool thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api/media/media_set.h"
#include "api/serving/serving_context.h"
#include "base/result.h"
#include "sched/request.h"

namespace weir::api {

struct PromptTokens {
  sched::Prompt ids{};
  std::shared_ptr<const sched::PromptMedia> media{};  // Null: it has none.
};

// Of a text as the chat template writes it, with the model's marks once for each medium, those of a
// kind in their order; media that are only counted become none of the prompt's. `field` names the
// prompt in errors: where there are other marks than these, because a template leaves media out or a
// text has a mark's letters in it.
Result<PromptTokens> tokenise_media(const ServingContext& serving, const std::string& field,
                                    int32_t tokens_max, std::string_view text,
                                    std::span<const SeenMedium> media);

}  // namespace weir::api
