// llama-server's own endpoints as a Protocol: completions in other words, with answers of their
// own.
//
// Threads: as Protocol.
#pragma once

#include <memory>

#include "api/prompt/protocol.h"

namespace weir::api::llama {

std::unique_ptr<Protocol> make_completion_protocol();
// Refuses requests where the model has no fill-in-the-middle tokens.
std::unique_ptr<Protocol> make_infill_protocol();

}  // namespace weir::api::llama
