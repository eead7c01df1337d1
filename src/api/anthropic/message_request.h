// The body of Anthropic's /v1/messages and /v1/messages/count_tokens as a GenerateRequest: the same
// values that a chat completion becomes, so that everything after it is one way for all APIs.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/request/generate_request.h"
#include "api/request/request_field.h"

namespace weir::api::anthropic {

struct MessageRequest : GenerateRequest {
  std::string system;           // Stands before the messages.
  bool hide_reasoning = false;  // Also where it is asked for.
};

// Errors name the field (`messages[0].content[1].text`). An explicit null counts as absent; unknown
// fields are ignored.
Result<MessageRequest> parse_message_request(std::string_view body, const RequestLimits& limits);
// Reads a request without what only an answer needs.
Result<MessageRequest> parse_count_request(std::string_view body, const RequestLimits& limits);

// Their fields, for the reference.
std::vector<FieldDoc> message_fields();
std::vector<FieldDoc> count_fields();

// The conversation (conversation.cpp): blocks to turns with the text, reasoning, calls and results
// that templates expect; turns of one role that follow each other become one. parse_system() comes
// first: its text stands before the messages. A last turn of the assistant's is to be continued.
Result<void> parse_system(const FieldInput& in, MessageRequest& out);
Result<void> parse_conversation(const FieldInput& in, MessageRequest& out);

// Functions that may be called (message_tools.cpp).
Result<void> parse_message_tools(const FieldInput& in, GenerateRequest& out);
Result<void> parse_message_tool_choice(const FieldInput& in, GenerateRequest& out);

}  // namespace weir::api::anthropic
