// TranscriptionRequest: the form of /v1/audio/transcriptions and /v1/audio/translations as native
// types.
//
// Threads: pure functions; a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/reference/endpoint_table.h"
#include "api/request/ignored.h"
#include "api/transcription/languages.h"
#include "base/result.h"

namespace weir::api::transcription {

enum class Task : uint8_t { kTranscribe, kTranslate };

enum class Format : uint8_t { kJson, kText, kSrt, kVtt, kVerboseJson };

// Bits of the endpoints that know a field.
inline constexpr uint8_t kTranscriptions = 1, kTranslations = 2;

struct TranscriptionRequest {
  Task task = Task::kTranscribe;
  std::string model;
  std::string_view file;                // Within the body.
  const Language* language = nullptr;   // Null: the one that is heard.
  std::string prompt;                   // Text before the recording, by which it is written.
  double temperature = 0;
  double temperature_step = 0.2;        // Of each attempt after the first; 0: there is one.
  std::optional<uint64_t> seed;
  Format format = Format::kJson;
  bool segments = true;                 // Of kVerboseJson,
  bool words = false;                   // and these.
  bool logprobs = false;
  bool stream = false;
  Ignored ignored;
};

// `content_type`: the request's header. Errors name the part.
Result<TranscriptionRequest> parse_transcription(Task task, std::string_view content_type,
                                                 std::string_view body);

// Their fields, for the reference.
std::vector<FieldDoc> transcription_fields();
std::vector<FieldDoc> translation_fields();

}  // namespace weir::api::transcription
