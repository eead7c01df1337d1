// Chats and completions as a Protocol.
//
// Threads: as Protocol.
#pragma once

#include <memory>

#include "api/openai/request_fields.h"
#include "api/prompt/protocol.h"

namespace weir::api::openai {

// `endpoint`: kChat or kCompletions.
std::unique_ptr<Protocol> make_protocol(Endpoint endpoint);

}  // namespace weir::api::openai
