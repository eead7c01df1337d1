// Tools, calls and their results as text within messages, for chat templates that leave them out.
// Whether one does is seen by rendering it with tools that it cannot know.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/output/call_format.h"
#include "base/result.h"
#include "text/chat_template.h"

namespace weir::api {

// What a template writes. One that cannot be rendered at all is taken to write everything: its own
// error says more.
struct TemplateTools {
  bool tools = true;    // What may be called.
  bool calls = true;    // The calls that the assistant has made,
  bool results = true;  // and what came of them.
  bool system = true;   // System messages, where tools are described if they are not written.
};

using TemplateVariables = std::vector<std::pair<std::string, std::string>>;

TemplateTools probe_template(const text::ChatTemplate& chat_template,
                             const TemplateVariables& special_tokens);

// The messages with what the template leaves out. `tools`: the request's, as templates have them;
// empty: none. Calls are shown in `format`, so that what the model writes is read back.
Result<std::string> write_tools_into(const std::string& messages, const std::string& tools,
                                     const TemplateTools& written,
                                     const output::CallFormat& format);

}  // namespace weir::api
