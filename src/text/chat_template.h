// ChatTemplate: a model's Jinja chat template, applied to a conversation.
//
// Threads: immutable after parse(); render() may be called from any thread at once.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "jinja/jinja.h"

namespace weir::text {

class ChatTemplate {
 public:
  // An error shows the template's line.
  static Result<ChatTemplate> parse(std::string source);

  // `variables_json`: one JSON object of all variables (messages, tools, add_generation_prompt,
  // bos_token, ...). kInvalid with the template's own message for raise_exception; step, output and
  // recursion limits are errors too, as is anything Jinja2 would raise. strftime_now uses `now`
  // (seconds since the epoch, rendered in UTC).
  Result<std::string> render(std::string_view variables_json, int64_t now) const;

  const std::string& source() const { return parsed_.source(); }

 private:
  explicit ChatTemplate(jinja::Template parsed) : parsed_(std::move(parsed)) {}

  jinja::Template parsed_;
};

}  // namespace weir::text
