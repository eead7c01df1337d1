// Calls as a function's name, then its arguments as a JSON object, each between markers: DeepSeek,
// Kimi K2, Mistral since 2025, Functionary, Solar Open.
//
// Threads: as CallReader.
#pragma once

#include <string_view>

#include "api/output/call_reader.h"

namespace weir::api::output {

struct NamedCallForm {
  std::string_view call_begin{};   // Empty: the format's marker begins the call itself.
  std::string_view name_end{};     // Between name and arguments.
  std::string_view call_end{};     // Empty: none.
  std::string_view section_end{};  // After all calls; empty: there is no section.
  std::string_view id_begin{};     // Between name and id, if the format has ids.
  std::string_view id_end{};       // Between id and name, of a format whose ids come first.
  bool kimi_names = false;         // functions.NAME:INDEX, which is the call's id too.
};

CallReaderPtr named_calls(const NamedCallForm& form);

}  // namespace weir::api::output
