// The bodies of /api/chat and /api/generate as a GenerateRequest: the same values that a chat
// completion becomes, so that everything after it is one way for all APIs.
//
// Threads: pure functions; a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/request/generate_request.h"
#include "api/request/message_content.h"
#include "api/request/request_field.h"

namespace weir::api::ollama {

struct Request : GenerateRequest {
  std::string shown_model;      // As the client calls it; `model` is that without what Ollama adds.
  std::string prompt;           // Of /api/generate,
  std::string system;           // where that stands before the prompt,
  MessageContent images;        // Of /api/generate, before the prompt.
  bool raw = false;             // unless the prompt is the whole text that the model reads.
  bool wants_thinking = false;  // So a model that cannot think is the wrong one.
  // Seconds for which the model stays loaded afterwards; negative: for ever.
  std::optional<double> keep_alive_s;

  // It asks for no answer, but to have the model loaded; with keep_alive 0 to have it unloaded.
  bool is_empty() const {
    return messages.empty() && prompt.empty() && suffix.empty() && media.empty();
  }
};

// Errors name the field (`messages[0].content`). An explicit null counts as absent; unknown fields
// are ignored, and named.
Result<Request> parse_chat(std::string_view body, const RequestLimits& limits);
Result<Request> parse_generate(std::string_view body, const RequestLimits& limits);

// Makes of a prompt what the model reads: a conversation of one message where there is a chat
// template, else the text itself. REQUIRES: it is of parse_generate(), and not empty.
Result<void> complete(Request& request, bool has_template);
// Whether complete() has made a conversation of it.
inline bool is_conversation(const Request& request) { return !request.messages.empty(); }

// Their fields, for the reference.
std::vector<FieldDoc> chat_fields();
std::vector<FieldDoc> generate_fields();

// --- Of further files.

// The conversation (messages.cpp): with the ids by which templates know calls and their results,
// which Ollama's clients may leave out. A last message of the assistant's is to be continued.
Result<void> parse_messages(const FieldInput& in, GenerateRequest& out);
// A list of images, which stand before the text.
Result<void> add_images(const std::string& path, JsonValue value, MessageContent& content,
                        GenerateRequest& out);

// How tokens are sampled, and how many (options.cpp).
Result<void> parse_options(const FieldInput& in, Request& out);

}  // namespace weir::api::ollama
