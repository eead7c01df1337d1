// OutputPlan: what an answer's text is parsed by and bound to: formats of calls and of reasoning,
// and the grammar of all of it together.
//
// Threads: OutputFormats is immutable; plan_output() is a pure function, for the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/output/call_format.h"
#include "api/output/output_parser.h"
#include "api/output/reasoning_format.h"
#include "api/request/generate_request.h"
#include "api/serving/tool_messages.h"
#include "text/tokenizer.h"

namespace weir::api {

struct ApiConfig;

// The formats of the server's model, and those of its special tokens that are their markers.
struct OutputFormats {
  const output::CallFormat* calls = nullptr;           // Null: none.
  const output::ReasoningFormat* reasoning = nullptr;  // Null: none.
  bool reasoning_is_content = false;
  std::vector<int32_t> markers;  // Sorted token ids.
  // What the templates write of tools: the one for chats, and the one for chats with tools.
  TemplateTools chat_writes, tool_use_writes;
};

// Finds them by the names that the config has (program/options_check.cpp knows which there are), or
// by the template.
OutputFormats choose_formats(const ApiConfig& config);

struct OutputPlan {
  std::shared_ptr<const output::ParserOptions> parser;  // Null: all is content.
  bool short_call_ids = false;
  std::optional<grammar::GrammarSource> grammar;
  std::string grammar_field;  // The field that an error in it belongs to.
  // The format in which the answer may reason; null: it does not, or the prompt has closed it.
  const output::ReasoningFormat* reasoning = nullptr;
  bool reasoning_begun = false;  // By the prompt.
};

// Plans the answer to a prompt. `inputs_bound`: the formats of custom tools bind their inputs.
OutputPlan plan_output(const OutputFormats& formats, const GenerateRequest& request,
                       std::string_view prompt, bool inputs_bound = true);

}  // namespace weir::api
