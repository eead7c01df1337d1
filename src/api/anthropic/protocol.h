// Anthropic's messages as a Protocol.
//
// Threads: as Protocol.
#pragma once

#include <memory>

#include "api/prompt/protocol.h"

namespace weir::api::anthropic {

std::unique_ptr<Protocol> make_protocol();

}  // namespace weir::api::anthropic
