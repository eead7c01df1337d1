// Messages as a chat template can write them: tools, calls and their results as text, for templates
// that leave them out; content as a string or as a list of parts, whichever the template knows.
// What one writes is seen by rendering it with words, and tools, that it cannot know.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/output/call_format.h"
#include "api/request/message_content.h"
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
  bool strings = true;  // Content that is a string. False: it must be a list of parts.
  // The model's mark of a medium, where a list has one; else the mark must stand in the string.
  struct Media {
    bool images = false, sounds = false;

    bool of(Medium medium) const { return medium == Medium::kSound ? sounds : images; }
  };
  Media media{};
  Media result_media{};  // The same in what came of a call.
};

using TemplateVariables = std::vector<std::pair<std::string, std::string>>;

TemplateTools probe_template(const text::ChatTemplate& chat_template,
                             const TemplateVariables& special_tokens,
                             const MediaMarks& marks = {});

// The messages with what the template leaves out, and content as it takes it. `tools`: the
// request's, as templates have them; empty: none. Calls are shown in `format`, so that what the
// model writes is read back. Media in a result that the template would not show stand before the
// user's next words. REQUIRES: `messages` are as in GenerateRequest.
Result<std::string> write_tools_into(const std::string& messages, const std::string& tools,
                                     const TemplateTools& written, const output::CallFormat& format,
                                     const MediaMarks& marks = {});

}  // namespace weir::api
