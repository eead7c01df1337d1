// Chats and completions as events.
//
// Threads: as AnswerShape.
#pragma once

#include <memory>

#include "api/openai/chat_shape.h"

namespace weir::api::openai {

std::unique_ptr<AnswerShape> make_chat_events(const ChatFacts& facts);

}  // namespace weir::api::openai
