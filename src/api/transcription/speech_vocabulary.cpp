#include "api/transcription/speech_vocabulary.h"

#include <algorithm>

#include "base/concat.h"

namespace weir::api::transcription {

namespace {

std::string marked(std::string_view name) { return concat({"<|", name, "|>"}); }

}  // namespace

const SpokenLanguage* SpeechVocabulary::find(const Language* language) const {
  const auto found = std::ranges::find(languages, language, &SpokenLanguage::language);
  return found == languages.end() ? nullptr : &*found;
}

const SpokenLanguage* SpeechVocabulary::find(int32_t token) const {
  const auto found = std::ranges::find(languages, token, &SpokenLanguage::token);
  return found == languages.end() ? nullptr : &*found;
}

std::string SpeechVocabulary::language_list() const {
  if (!is_multilingual()) return "en (english)";
  std::string list;
  for (const SpokenLanguage& each : languages) {
    if (!list.empty()) list += ", ";
    list += concat({each.language->code, " (", each.language->name, ")"});
  }
  return list;
}

Result<SpeechVocabulary> read_speech_vocabulary(const text::Tokenizer& tokenizer) {
  SpeechVocabulary vocabulary;
  const auto token = [&](std::string_view name) { return tokenizer.id(marked(name)).value_or(-1); };
  vocabulary.no_speech = std::max(token("nospeech"), token("nocaptions"));
  for (const auto& [name, member] : {std::pair{"endoftext", &SpeechVocabulary::end_of_text},
                                     {"startoftranscript", &SpeechVocabulary::start},
                                     {"startofprev", &SpeechVocabulary::previous},
                                     {"notimestamps", &SpeechVocabulary::no_timestamps}}) {
    vocabulary.*member = token(name);
    if (vocabulary.*member < 0)
      return fail(ErrorCode::kUnsupported,
                  concat({"its vocabulary has no ", marked(name), ", which transcripts need"}));
  }
  if (vocabulary.no_speech < 0)
    return fail(ErrorCode::kUnsupported,
                "its vocabulary has neither <|nospeech|> nor <|nocaptions|>, which transcripts need");
  vocabulary.transcribe = token("transcribe");
  vocabulary.translate = token("translate");
  // Models that know English alone have these tokens too, in vocabularies that number them without
  // a use: their first language comes right after the start, and the tasks are never trained. They
  // are told by GPT-2's vocabulary, which is one token shorter.
  constexpr int32_t kEndOfEnglish = 50256;
  if (vocabulary.end_of_text == kEndOfEnglish || vocabulary.transcribe < 0) return vocabulary;
  for (const Language& language : languages())
    if (const int32_t id = token(language.code); id >= 0)
      vocabulary.languages.push_back({&language, id});
  return vocabulary;
}

}  // namespace weir::api::transcription
