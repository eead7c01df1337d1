// Calls as elements: a function's name, then each argument's key and text, in tags. Qwen3-Coder,
// Seed-OSS, MiniMax-M2 and DeepSeek V3.2 have a tag for the function and one for each argument; GLM
// writes the name bare and tags keys and values.
//
// Threads: as CallReader.
#pragma once

#include <string_view>

#include "api/output/call_reader.h"

namespace weir::api::output {

struct XmlCallForm {
  // Up to the name, which ends with '>' and may be quoted; empty: the name is bare, and ends where
  // a line or a tag does.
  std::string_view function_begin{};
  std::string_view function_end{};
  std::string_view key_begin{};    // Up to the key.
  std::string_view key_end{};      // Between key and value.
  std::string_view value_begin{};  // After key_end and white space; empty: none.
  std::string_view value_end{};
  std::string_view section_end{};  // After all functions; empty: there is one.
  bool in_function = false;        // function_begin has been read already.
};

CallReaderPtr xml_calls(const XmlCallForm& form);

}  // namespace weir::api::output
