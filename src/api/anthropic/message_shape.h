// The answers of /v1/messages: a message of blocks (thinking, text, tool_use), whole or in events.
//
// Threads: as AnswerShape.
#pragma once

#include <memory>
#include <string>

#include "api/answer/answer_shape.h"

namespace weir::api::anthropic {

struct MessageFacts {
  std::string id;     // "msg_..."
  std::string model;  // The served model's id, or its adapter's name.
  bool stream = false;
  bool show_reasoning = true;  // What is not shown still counts as output.
};

std::unique_ptr<AnswerShape> make_message_shape(const MessageFacts& facts);

}  // namespace weir::api::anthropic
