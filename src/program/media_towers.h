// MediaTowers: what reads images and sounds for a model, beside it: the encoders of its checkpoint, and
// what the executor has of them.
//
// Threads: bind on any; the card's JSON belongs to the caller meanwhile.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "encoder/encoder.h"
#include "exec/cpu_encoder.h"
#include "kernels/ops.h"
#include "model/model.h"
#include "program/model_choice.h"

namespace weir {

struct MediaTower {
  std::unique_ptr<encoder::Encoder> encoder;  // Null: the model takes none of the kind,
  std::string refusal;                        // and why, as the end of a sentence.

  bool loaded() const { return encoder != nullptr; }
};

struct MediaTowers {
  MediaTower images, sounds;
  std::unique_ptr<exec::CpuEncoder> runs;  // Of both: it goes first. Made with the executor.

  bool any() const { return images.loaded() || sounds.loaded(); }
};

// Their weights are placed with the model's (Executor::place_weights()). An error: a model whose
// media are computed here has other encoders than its files say. `members`: of the team that will
// run them.
Result<MediaTowers> bind_media_towers(const ModelChoice& choice, const kernels::Ops& ops,
                                      int members);

// A model that transcribes has nothing else to do: an error where it has no encoder of sounds.
Result<void> check_hearing(const model::Model& model, const MediaTowers& towers);

// By how many rows a step of this model must be larger than others, for a span of tokens that see
// both ways (model::BothWays): those of its largest image. 0 for most models.
int32_t image_span_rows(const card::ModelCard& card);

}  // namespace weir
