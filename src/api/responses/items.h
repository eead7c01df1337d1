// ResponseItems: items of the Responses API (messages, calls, outputs of calls, reasoning) to the
// messages that chat templates expect. What the model said in one turn is several items and one
// message.
//
// Threads: used by one at a time.
#pragma once

#include <string>
#include <string_view>

#include "api/request/generate_request.h"
#include "api/request/message_content.h"
#include "base/json.h"
#include "base/result.h"

namespace weir::api::responses {

class ResponseItems {
 public:
  // Writes the messages of `out`. REQUIRES: it outlives the object.
  explicit ResponseItems(GenerateRequest& out);

  // A system message, before any item.
  void add_instructions(std::string_view text);
  // A message of the user.
  void add_text(std::string_view text);
  // `path` names the item in errors.
  Result<void> add(std::string_view path, JsonValue item);
  // All items are there.
  void finish();

 private:
  // The model's turn, as far as its items have come.
  struct Turn {
    bool open = false;
    bool has_content = false;
    std::string content;
    std::string reasoning;
    std::string calls;  // Members of a JSON array.
  };

  Result<void> add_message(std::string_view path, JsonObject item);
  Result<void> add_reasoning(std::string_view path, JsonObject item);
  Result<void> add_call(std::string_view path, JsonObject item, bool custom);
  Result<void> add_call_output(std::string_view path, JsonObject item);
  void add_assistant(std::string text);
  void close();
  void write(std::string_view role, const MessageContent& content,
             std::string_view call_id = {});

  GenerateRequest& out_;
  JsonWriter json_;
  std::string system_;
  bool has_system_ = false;
  bool begun_ = false;  // A message is written.
  Turn turn_;
};

}  // namespace weir::api::responses
