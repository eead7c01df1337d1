// How a transcript is written: as JSON, as subtitles, as events.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/transcription/form_request.h"
#include "api/transcription/transcript.h"

namespace weir::api::transcription {

// What an answer says beside its segments.
struct TranscriptFacts {
  Task task = Task::kTranscribe;
  Format format = Format::kJson;
  bool segments = true, words = false;  // Of kVerboseJson.
  bool logprobs = false;                // Of kJson and events.
  std::string_view language{};          // Its name.
  double seconds = 0;
  int64_t audio_tokens = 0, text_tokens = 0, output_tokens = 0;
};

std::string_view content_type_of(Format format);

// The text of all, without the blank before it.
std::string text_of(std::span<const Segment> segments);

void append_transcript(std::string& out, const text::Tokenizer& tokenizer,
                       const TranscriptFacts& facts, std::span<const Segment> segments);

// transcript.text.delta. `first`: nothing was told before.
void append_delta(std::string& out, const text::Tokenizer& tokenizer, const TranscriptFacts& facts,
                  std::span<const Segment> segments, bool first);
// transcript.text.done.
void append_done(std::string& out, const text::Tokenizer& tokenizer, const TranscriptFacts& facts,
                 std::span<const Segment> segments);

}  // namespace weir::api::transcription
