// ImageTower: what reads images for a model, beside it: a tower of its checkpoint, and what the
// executor has of it.
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

struct ImageTower {
  std::unique_ptr<encoder::Encoder> encoder;  // Null: the model sees no images,
  std::string refusal;                        // and why, as the end of a sentence.
  std::unique_ptr<exec::CpuEncoder> runs;     // Of it: it goes first. Made with the executor.

  bool loaded() const { return encoder != nullptr; }
};

// Its weights are placed with the model's (Executor::place_weights()). An error: a model whose images
// are computed here has another tower than its files say. `members`: of the team that will run it.
Result<ImageTower> bind_image_tower(const ModelChoice& choice, const kernels::Ops& ops,
                                    int members);

// By how many rows a step of this model must be larger than others, for a span of tokens that see
// both ways (model::BothWays): those of its largest image. 0 for most models.
int32_t image_span_rows(const card::ModelCard& card);

}  // namespace weir
