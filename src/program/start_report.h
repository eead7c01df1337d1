// What the log says of the model, the machine and the plan before the first request.
#pragma once

#include <chrono>
#include <cstdint>

#include "model/model.h"
#include "program/memory_plan.h"
#include "program/model_choice.h"
#include "program/options.h"
#include "program/text_parts.h"

namespace weir {

void log_start(const Options& options, const ModelChoice& choice, const model::Model& model,
               const MemoryPlan& plan, const TextParts& text);

// What a model is asked in the first place.
enum class Use : uint8_t { kChats, kCompletions, kTranscriptions };
Use use_of(const TextParts& text);

// The server answers: the log has its address, standard output how to ask it. `port`: 0 where it
// listens on Unix sockets alone.
void announce(const Options& options, uint16_t port, std::chrono::steady_clock::duration startup,
              Use use, bool with_key);

}  // namespace weir
