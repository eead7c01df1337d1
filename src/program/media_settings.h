// What a model wants of images and of sounds, as its files say it.
//
// Threads: any; the card's JSON belongs to the caller meanwhile.
#pragma once

#include "base/result.h"
#include "card/model_card.h"
#include "media/features/front_end.h"
#include "media/processor/processor.h"

namespace weir {

// The error says why the model sees none, as the end of a sentence: its files say nothing of a
// tower, its family's images are not computed here, or a key of preprocessor_config.json is wrong.
Result<media::Processor> image_processor(const card::ModelCard& card);
// The same of sounds.
Result<media::FrontEnd> sound_front_end(const card::ModelCard& card);

}  // namespace weir
