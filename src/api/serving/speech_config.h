// SpeechConfig: what a model that writes down what is said wants of a recording, and the rules of
// its transcripts.
//
// Threads: a plain value.
#pragma once

#include "card/generation_settings.h"
#include "media/features/front_end.h"

namespace weir::api {

struct SpeechConfig {
  media::FrontEnd front_end{};
  card::SpeechSettings rules{};
};

}  // namespace weir::api
