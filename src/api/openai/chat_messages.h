// Messages of a chat: what clients send, checked, and rewritten as chat templates expect it. What
// templates expect is a convention of transformers: content a string, or beside images a list of
// parts, and tool arguments an object.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "api/request/generate_request.h"
#include "api/request/message_content.h"
#include "api/request/request_field.h"
#include "base/json.h"
#include "base/result.h"

namespace weir::api::openai {

// Text parts joined, `developer` as `system`, tool arguments as objects. Fills messages, media,
// last_role and last_content.
Result<void> parse_messages(const FieldInput& in, GenerateRequest& out);

// Parts of messages: a string, or parts, those of images noted in `out.media`.
Result<MessageContent> message_content(std::string_view path, JsonValue content,
                                       GenerateRequest& out);
// The same of texts alone, joined by line feeds.
Result<std::string> content_text(std::string_view path, JsonValue content);
// A call's arguments, a string of JSON, as the object that templates want.
Result<void> write_arguments(std::string_view path, JsonValue arguments, JsonWriter& json);

}  // namespace weir::api::openai
