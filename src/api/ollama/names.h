// Names of models, as Ollama's clients spell them.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::api::ollama {

// As this server spells it: "qwen" of "qwen:latest", "org/name:Q4_K_M" of "hf.co/org/name:Q4_K_M".
std::string_view bare_name(std::string_view name);

// With a tag, as Ollama lists models: "qwen:latest". Clients look for either.
std::string tagged_name(std::string_view name);

// In Ollama's words, which clients look for, and by the name that the client has given.
Error not_found(std::string_view name);

}  // namespace weir::api::ollama
