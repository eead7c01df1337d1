// OutputParser: an answer's text to pieces, as it arrives, in the format that the model's chat
// template has taught it. Formats are data (call_format.h, reasoning_format.h) and a reader of
// calls each; answers to plain chats of models that do not reason have no parser at all.
//
// Threads: owned by one stream.
//
// Invariants:
// (1) The pieces depend on the text only, never on how it was cut.
// (2) Nothing is lost: text that belongs to no reasoning and to no whole call is content. Left out
//     are markers, and white space beside them.
// (3) Held back are at most a marker's beginning, white space before it, and a call that may still
//     turn out to be none, up to CallGate::kHeldBytesMax.
// (4) The work is linear in the text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/output/pieces.h"

namespace weir::api::output {

struct CallFormat;
struct ReasoningFormat;

// A function that may be called. Formats without types need to know which arguments are strings.
struct CallableFunction {
  std::string name;
  std::vector<std::string> string_parameters;
};

// What the parsers of one answer's choices share.
struct ParserOptions {
  const CallFormat* calls = nullptr;  // Null: calls are content.
  std::vector<CallableFunction> functions;
  bool parallel = true;      // More than one call.
  bool calls_bound = false;  // A grammar makes all calls valid: no need to wait for their ends.
  const ReasoningFormat* reasoning = nullptr;  // Null: none.
  bool begins_in_reasoning = false;            // The prompt has opened it.
  bool reasoning_is_content = false;           // Shown as it is, with its markers.
};

class OutputParser {
 public:
  virtual ~OutputParser() = default;
  // Adds to `out` what is certain now.
  virtual void push(std::string_view text, Pieces& out) = 0;
  // The output has ended.
  virtual void finish(Pieces& out) = 0;
  virtual bool in_reasoning() const = 0;
};

// Null if the text is content and nothing else. `options` outlives the parser.
std::unique_ptr<OutputParser> make_parser(const ParserOptions& options);

}  // namespace weir::api::output
