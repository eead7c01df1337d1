// Calls whose arguments are nearly JSON: Gemma's `call:NAME{key:value}`, and Python's
// `[NAME(key=value), ...]` of LFM2 and Llama 4.
//
// Threads: as CallReader.
#pragma once

#include <string_view>

#include "api/output/call_reader.h"

namespace weir::api::output {

struct GemmaCallForm {
  std::string_view quote{};  // Around strings.
  std::string_view close{};  // The marker after the call.
};

CallReaderPtr gemma_calls(const GemmaCallForm& form);
// `close`: the marker after the list; empty: none.
CallReaderPtr python_calls(std::string_view close);

}  // namespace weir::api::output
