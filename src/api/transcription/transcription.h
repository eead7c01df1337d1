// /v1/audio/transcriptions and /v1/audio/translations: from a form to a batch, whose requests are the
// windows of a recording: which language is spoken first, then what is said in each, again at a
// higher temperature where it is not believed.
//
// Threads: pure functions, for the pool.
#pragma once

#include "api/stream/batch_answer.h"

namespace weir::api::transcription {

// `in.content_type` and `in.media_budget` are looked at; `in.endpoint` is not.
Result<PreparedBatch> prepare_transcription(const ServingContext& serving, MemoryBudget& budget,
                                            const PrepareInput& in);
Result<PreparedBatch> prepare_translation(const ServingContext& serving, MemoryBudget& budget,
                                          const PrepareInput& in);

}  // namespace weir::api::transcription
