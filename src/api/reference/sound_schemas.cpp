// Recordings: what is said in them.
#include <array>

#include "api/reference/reference.h"

namespace weir::api::reference {

namespace {

constexpr auto kSchemas = std::to_array<Schema>({
    {"TranscriptUsage", R"({"anyOf": [
  {"type": "object",
   "required": ["type", "input_tokens", "input_token_details", "output_tokens", "total_tokens"],
   "properties": {
    "type": {"const": "tokens"}, "input_tokens": {"type": "integer"},
    "input_token_details": {
      "type": "object", "required": ["text_tokens", "audio_tokens"],
      "properties": {
        "text_tokens": {"type": "integer", "description": "Of the prompt, once for each window."},
        "audio_tokens": {"type": "integer",
          "description": "Rows of the encoder: of each window all, silence included."}}},
    "output_tokens": {"type": "integer"}, "total_tokens": {"type": "integer"}}},
  {"type": "object", "required": ["type", "seconds"], "properties": {
    "type": {"const": "duration"}, "seconds": {"type": "integer"}}}]})"},

    {"TranscriptLogprob", R"({
  "type": "object", "required": ["token", "logprob", "bytes"], "properties": {
    "token": {"type": "string"}, "logprob": {"type": "number"},
    "bytes": {"type": "array", "items": {"type": "integer"}}}})"},

    {"TranscriptSegment", R"({
  "type": "object",
  "required": ["id", "seek", "start", "end", "text", "tokens", "temperature", "avg_logprob",
    "compression_ratio", "no_speech_prob"],
  "properties": {
    "id": {"type": "integer"},
    "seek": {"type": "integer", "description": "Where its window begins, in hundredths of a second."},
    "start": {"type": "number"}, "end": {"type": "number"}, "text": {"type": "string"},
    "tokens": {"type": "array", "items": {"type": "integer"}}, "temperature": {"type": "number"},
    "avg_logprob": {"type": "number"}, "compression_ratio": {"type": "number"},
    "no_speech_prob": {"type": "number"}}})"},

    {"TranscriptWord", R"({
  "type": "object", "required": ["word", "start", "end"], "properties": {
    "word": {"type": "string"}, "start": {"type": "number"}, "end": {"type": "number"}}})"},

    {"Transcript", R"({
  "type": "object", "required": ["text", "usage"], "properties": {
    "text": {"type": "string"},
    "task": {"enum": ["transcribe", "translate"], "description": "This and those below: verbose_json."},
    "language": {"type": "string"}, "duration": {"type": "number"},
    "segments": {"type": "array", "items": {"$ref": "#/components/schemas/TranscriptSegment"}},
    "words": {"type": "array", "items": {"$ref": "#/components/schemas/TranscriptWord"}},
    "logprobs": {"type": "array", "items": {"$ref": "#/components/schemas/TranscriptLogprob"}},
    "usage": {"$ref": "#/components/schemas/TranscriptUsage"}}})"},

    {"TranscriptEvent", R"({"anyOf": [
  {"type": "object", "required": ["type", "delta"], "properties": {
    "type": {"const": "transcript.text.delta"}, "delta": {"type": "string"},
    "logprobs": {"type": "array", "items": {"$ref": "#/components/schemas/TranscriptLogprob"}}}},
  {"type": "object", "required": ["type", "text", "usage"], "properties": {
    "type": {"const": "transcript.text.done"}, "text": {"type": "string"},
    "logprobs": {"type": "array", "items": {"$ref": "#/components/schemas/TranscriptLogprob"}},
    "usage": {"$ref": "#/components/schemas/TranscriptUsage"}}}]})"},
});

}  // namespace

std::span<const Schema> sound_schemas() { return kSchemas; }

}  // namespace weir::api::reference
