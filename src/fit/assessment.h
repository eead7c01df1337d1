// Assessment: what becomes of a model on this machine, from its files' headers alone: the very
// binder and planner that loading uses say it. In which other way it runs is looked for where it
// does not run as it was asked for.
//
// Threads: one, which may take seconds for a model of tens of thousands of tensors.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "fit/lookup.h"
#include "fit/speed.h"
#include "fit/verdict.h"
#include "model/model.h"
#include "program/media_towers.h"
#include "program/model_choice.h"

namespace weir::fit {

struct Assessment {
  Fit fit;
  std::optional<Speed> speed;  // Of the way that `fit` tells; nullopt: not measured, or unknown.
};

// `bound`, `towers`: the model as the options have it. `elsewhere`: other files of the same model, in
// fewer bits. `disk`: a path on the disk that has the model, or would; for the speed of experts.
Result<Assessment> assess(const Options& options, const MemoryLimit& limit,
                          const ModelChoice& choice, const model::Model& bound,
                          const MediaTowers& towers, std::span<const Way> elsewhere,
                          const std::string& disk);

// The same of files that are not bound yet. Errors are not about the model: those are a verdict.
Result<Assessment> assess(const Options& options, const MemoryLimit& limit, const Found& found);

// The error of opening or binding as a verdict, where it is about the model: kUnknown.
Result<Assessment> not_read(const Error& error);

}  // namespace weir::fit
