// Calls as JSON objects of a name and arguments, alone, several in a row, or in an array:
// {"name": "f", "arguments": {...}}. Hermes and Qwen, Llama 3, Mistral, Granite, Phi-4, Command R7B
// and others write them, with different markers around.
//
// Threads: as CallReader.
#pragma once

#include <string_view>

#include "api/output/call_reader.h"

namespace weir::api::output {

struct JsonCallForm {
  std::string_view close{};      // The marker after the calls; empty: none.
  bool needs_arguments = false;  // Without a marker before it, an object with a name is no call.
};

CallReaderPtr json_calls(const JsonCallForm& form);

}  // namespace weir::api::output
