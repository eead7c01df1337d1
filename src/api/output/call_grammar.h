// The grammar of an answer with calls of functions: forced ones, or free text whose calls, once
// they begin, are valid. And of reasoning before whatever the answer is bound to.
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/output/call_format.h"
#include "api/output/reasoning_format.h"
#include "grammar/source.h"

namespace weir::api::output {

// A function as the grammar sees it.
struct BoundFunction {
  std::string name;
  std::string parameters;  // A JSON schema; empty: none.
  bool strict = false;  // What of the schema cannot be enforced is an error; else it is left out,
  std::string field{};  // and named after the field that the schema stands in.
  // Where a function's one argument `input` is a text: what binds the text.
  std::optional<grammar::GrammarSource> input{};
};

struct CallBinding {
  const CallFormat* format = nullptr;
  std::vector<BoundFunction> functions;
  bool forced = false;    // Nothing but calls, their arguments by the schemas. Else free text may
                          // come, and only arguments of strict functions follow their schema.
  bool parallel = false;  // More than one call.
};

// A call as text; the arguments are JSON.
struct WrittenCall {
  std::string name;
  std::string arguments;
};
// How calls look where a grammar forces them. For what the model is shown.
std::string write_calls(const CallFormat& format, std::span<const WrittenCall> calls);

// Both return a part as grammar/parts.h reads it.
std::string calls_part(const CallBinding& binding);
// `answer`, after reasoning: which is there if the prompt has opened it, and else may be.
std::string behind_reasoning(const ReasoningFormat& reasoning, bool begun, std::string_view answer);

}  // namespace weir::api::output
