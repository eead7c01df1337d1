// SpeechVocabulary: the tokens by which a speech model is told what to do and tells what it hears:
// languages, tasks, timestamps. A vocabulary names them, but for timestamps, which are its last
// ones: 20 ms from one to the next.
//
// Threads: a plain value; read_speech_vocabulary() may run anywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/transcription/languages.h"
#include "base/result.h"
#include "text/tokenizer.h"

namespace weir::api::transcription {

inline constexpr double kTimestampStep = 0.02;  // Seconds.

struct SpokenLanguage {
  const Language* language = nullptr;
  int32_t token = -1;
};

struct SpeechVocabulary {
  int32_t end_of_text = -1;    // Tokens of text are those below it.
  int32_t start = -1;          // <|startoftranscript|>
  int32_t previous = -1;       // <|startofprev|>: text that came before.
  int32_t no_speech = -1;
  int32_t no_timestamps = -1;
  // Of these a model that knows English alone has none.
  std::vector<SpokenLanguage> languages{};
  int32_t transcribe = -1, translate = -1;

  bool is_multilingual() const { return !languages.empty(); }
  // The token of 0.00 s.
  int32_t timestamp_begin() const { return no_timestamps + 1; }
  const SpokenLanguage* find(const Language* language) const;
  const SpokenLanguage* find(int32_t token) const;
  // For errors: "en (english), ...".
  std::string language_list() const;
};

// kUnsupported where the vocabulary lacks one of them, with its name.
Result<SpeechVocabulary> read_speech_vocabulary(const text::Tokenizer& tokenizer);

}  // namespace weir::api::transcription
