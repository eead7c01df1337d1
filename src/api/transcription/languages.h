// The languages that Whisper's models are trained for: the codes of their tokens, and their names.
// OpenAI takes both, and answers with names.
//
// Threads: any; constant data.
#pragma once

#include <span>
#include <string_view>

namespace weir::api::transcription {

struct Language {
  std::string_view code;  // Of its token: "en" of <|en|>.
  std::string_view name;  // In lower-case English.
};

std::span<const Language> languages();

// By code or name, in any case, or by another name that is in use; null: there is none.
const Language* find_language(std::string_view text);

}  // namespace weir::api::transcription
