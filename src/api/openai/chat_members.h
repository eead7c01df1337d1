// Members of the JSON of chats and completions, which whole answers and events have alike.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/openai/chat_shape.h"

namespace weir::api::openai {

// "id":...,"object":...,"created":...,"model":...
std::string facts_json(const ChatFacts& facts, std::string_view object);
// The object that `usage` holds.
void write_usage(std::string& out, const Usage& usage);
std::string ids_json(std::span<const int32_t> ids);
// Adds the member "token_ids" of the tokens that wait, and forgets them, if the request asks for
// it.
void append_token_ids(std::string& out, ChoiceRef choice);
// `legacy_functions`: an answer calls a `function_call`.
std::string_view finish_reason(const Finish& finish, bool legacy_functions);

}  // namespace weir::api::openai
