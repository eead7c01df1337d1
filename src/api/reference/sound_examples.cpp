// Recordings. The built-in model hears nothing: these are answers as a speech model gives them.
#include <array>

#include "api/reference/reference.h"

namespace weir::api::reference {

namespace {

constexpr auto kExamples = std::to_array<Example>({
    {"POST", "/v1/audio/transcriptions", "A recording", "",
     R"({"file": "speech.wav", "language": "en"})",
     R"({
  "text": "The sea is salty.",
  "usage": {
    "type": "tokens", "input_tokens": 1500,
    "input_token_details": {"text_tokens": 0, "audio_tokens": 1500},
    "output_tokens": 8, "total_tokens": 1508
  }
})"},
    {"POST", "/v1/audio/transcriptions", "With its segments", "",
     R"({"file": "speech.wav", "response_format": "verbose_json"})",
     R"({
  "task": "transcribe", "language": "english", "duration": 1.84, "text": "The sea is salty.",
  "segments": [
    {
      "id": 0, "seek": 0, "start": 0, "end": 1.8, "text": " The sea is salty.",
      "tokens": [50364, 440, 4158, 307, 1845, 874, 13, 50454], "temperature": 0,
      "avg_logprob": -0.21, "compression_ratio": 0.68, "no_speech_prob": 0.02
    }
  ],
  "usage": {"type": "duration", "seconds": 2}
})"},
    {"POST", "/v1/audio/transcriptions", "In events", "",
     R"({"file": "speech.wav", "stream": true})",
     R"([
  {"type": "transcript.text.delta", "delta": "The sea is salty."},
  {
    "type": "transcript.text.done", "text": "The sea is salty.",
    "usage": {
      "type": "tokens", "input_tokens": 1500,
      "input_token_details": {"text_tokens": 0, "audio_tokens": 1500},
      "output_tokens": 8, "total_tokens": 1508
    }
  }
])"},
    {"POST", "/v1/audio/translations", "A recording in another language", "",
     R"({"file": "rede.ogg", "prompt": "About the sea."})",
     R"({
  "text": "The sea is salty.",
  "usage": {
    "type": "tokens", "input_tokens": 1505,
    "input_token_details": {"text_tokens": 5, "audio_tokens": 1500},
    "output_tokens": 8, "total_tokens": 1513
  }
})"},
});

}  // namespace

std::span<const Example> sound_examples() { return kExamples; }

}  // namespace weir::api::reference
