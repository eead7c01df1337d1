// What tests of transcriptions are made of: recordings, forms, and a vocabulary of bytes with the
// tokens of speech models after them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/test_api.h"
#include "api/transcription/speech_vocabulary.h"
#include "media/features/front_end.h"

namespace weir::api::transcription {

inline constexpr int32_t kEndOfText = 256, kStart = 257, kEnglish = 258, kGerman = 259,
                         kTranslateToken = 260, kTranscribeToken = 261, kPrevious = 262, kNoSpeech = 263,
                         kNoTimestamps = 264, kTimestamps = 265, kSpeechVocab = kTimestamps + 1501;

inline int32_t timestamp(double seconds) {
  return kTimestamps + static_cast<int32_t>(seconds * 50 + 0.5);
}

inline std::unique_ptr<text::Tokenizer> speech_tokenizer() {
  std::string json = byte_tokenizer_json();
  const std::string_view begin = R"("added_tokens":[)";
  const size_t first = json.find(begin) + begin.size();
  std::string added;
  int32_t id = kEndOfText;
  for (const char* name : {"endoftext", "startoftranscript", "en", "de", "translate", "transcribe",
                           "startofprev", "nospeech", "notimestamps"}) {
    if (!added.empty()) added += ',';
    added += R"({"id":)" + std::to_string(id++) + R"(,"content":"<|)" + name +
             R"(|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)"
             R"("special":true})";
  }
  json.replace(first, json.find("],\"normalizer\"") - first, added);
  auto tokenizer = text::Tokenizer::load(json);
  CHECK(tokenizer.has_value());
  return std::move(*tokenizer);
}

// Windows of one second.
inline media::FrontEnd second_long() {
  media::FrontEnd front_end;
  front_end.samples_max = front_end.multiple = front_end.rate;
  front_end.rows_max = 50;
  return front_end;
}

// A WAV file of 16-bit silence with a click, one channel at 16 kHz.
inline std::string wav(double seconds) {
  const auto samples = static_cast<uint32_t>(seconds * 16000 + 0.5);
  std::string out = "RIFF";
  const auto number = [&](uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  };
  number(36 + 2 * samples, 4);
  out += "WAVEfmt ";
  number(16, 4);
  number(1, 2);
  number(1, 2);
  number(16000, 4);
  number(32000, 4);
  number(2, 2);
  number(16, 2);
  out += "data";
  number(2 * samples, 4);
  for (uint32_t i = 0; i < samples; ++i) number(i == samples / 2 ? 9000 : 0, 2);
  return out;
}

inline constexpr std::string_view kFormType = "multipart/form-data; boundary=b0undary";

// The file, and further parts.
inline std::string form(std::string_view file,
                        const std::vector<std::pair<std::string, std::string>>& fields = {}) {
  std::string body;
  const auto part = [&](const std::string& disposition, std::string_view bytes) {
    body += "--b0undary\r\nContent-Disposition: form-data; name=" + disposition + "\r\n\r\n";
    body.append(bytes).append("\r\n");
  };
  part(R"("file"; filename="speech.wav")", file);
  for (const auto& [name, value] : fields) part("\"" + name + "\"", value);
  return body + "--b0undary--\r\n";
}

// Tokens of a text, a byte each, with timestamps around it where they are not negative.
inline std::vector<TokenLogprob> said(double begin, std::string_view text, double end) {
  std::vector<TokenLogprob> tokens;
  if (begin >= 0) tokens.push_back({timestamp(begin), -0.1f});
  for (const char c : text) tokens.push_back({static_cast<uint8_t>(c), -0.1f});
  if (end >= 0) tokens.push_back({timestamp(end), -0.1f});
  return tokens;
}

}  // namespace weir::api::transcription
