#include "api/transcription/transcript_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/json.h"

namespace weir::api::transcription {

namespace {

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text.remove_suffix(text.size() - (text.find_last_not_of(' ') + 1));
  return text;
}

// "01:02:03,450", or "02:03.450" where hours may be left out.
std::string clock_time(double seconds, char point, bool always_hours) {
  const auto ms = static_cast<int64_t>(std::llround(std::max(seconds, 0.0) * 1000));
  const int64_t hours = ms / 3'600'000;
  char text[40];
  size_t length = 0;
  if (always_hours || hours > 0)
    length = static_cast<size_t>(
        std::snprintf(text, sizeof text, "%02d:", static_cast<int>(hours)));
  std::snprintf(text + length, sizeof text - length, "%02d:%02d%c%03d",
                static_cast<int>(ms / 60'000 % 60), static_cast<int>(ms / 1000 % 60), point,
                static_cast<int>(ms % 1000));
  return text;
}

// To milliseconds: what is shorter is noise of additions.
double rounded(double seconds) { return std::round(seconds * 1000) / 1000; }

void append_srt(std::string& out, std::span<const Segment> segments) {
  int64_t number = 0;
  for (const Segment& segment : segments) {
    out.append(std::to_string(++number)).append("\n");
    out.append(clock_time(segment.start, ',', true)).append(" --> ");
    out.append(clock_time(segment.end, ',', true)).append("\n");
    out.append(trimmed(segment.text())).append("\n\n");
  }
}

// "-->" would be read as a cue's times.
std::string without_arrows(std::string text) {
  for (size_t at = 0; (at = text.find("-->", at)) != std::string::npos; at -= at > 0 ? 1 : 0)
    text.replace(at, 3, "->");  // The dash before it may make another.
  return text;
}

void append_vtt(std::string& out, std::span<const Segment> segments) {
  out += "WEBVTT\n\n";
  for (const Segment& segment : segments) {
    out.append(clock_time(segment.start, '.', false)).append(" --> ");
    out.append(clock_time(segment.end, '.', false)).append("\n");
    out.append(without_arrows(std::string(trimmed(segment.text())))).append("\n\n");
  }
}

void write_segment(JsonWriter& json, int64_t id, const Segment& segment) {
  const Hearing& heard = segment.hearing;
  constexpr double kSeeksPerSecond = 100;  // Frames of the front end, as the reference counts.
  json.begin_object().field("id", id);
  json.field("seek", static_cast<int64_t>(std::llround(heard.begin * kSeeksPerSecond)));
  json.field("start", rounded(segment.start)).field("end", rounded(segment.end));
  json.field("text", segment.text()).key("tokens").begin_array();
  if (segment.begin_token >= 0) json.value(segment.begin_token);
  for (const Word& word : segment.words)
    for (const TokenLogprob& said : word.tokens) json.value(said.token);
  if (segment.end_token >= 0) json.value(segment.end_token);
  json.end_array().field("temperature", heard.temperature);
  json.field("avg_logprob", heard.mean_logprob);
  json.field("compression_ratio", heard.compression_ratio);
  json.field("no_speech_prob", heard.no_speech).end_object();
}

void append_verbose(std::string& out, const TranscriptFacts& facts,
                    std::span<const Segment> segments) {
  JsonWriter json(out);
  json.begin_object();
  json.field("task", facts.task == Task::kTranscribe ? "transcribe" : "translate");
  json.field("language", facts.language).field("duration", rounded(facts.seconds));
  json.field("text", text_of(segments));
  if (facts.segments) {
    json.key("segments").begin_array();
    int64_t id = 0;
    for (const Segment& segment : segments) write_segment(json, id++, segment);
    json.end_array();
  }
  if (facts.words) {
    json.key("words").begin_array();
    double time = 0;  // It never goes back, where windows meet either.
    for (const Segment& segment : segments)
      for (const Word& word : segment.words) {
        const double start = std::max(word.start, time);
        time = std::max(word.end, start);
        json.begin_object().field("word", trimmed(word.text));
        json.field("start", rounded(start)).field("end", rounded(time)).end_object();
      }
    json.end_array();
  }
  json.key("usage").begin_object().field("type", "duration");
  json.field("seconds", static_cast<int64_t>(std::ceil(facts.seconds))).end_object();
  json.end_object();
}

void write_usage(JsonWriter& json, const TranscriptFacts& facts) {
  const int64_t input = facts.audio_tokens + facts.text_tokens;
  json.key("usage").begin_object().field("type", "tokens").field("input_tokens", input);
  json.key("input_token_details").begin_object().field("text_tokens", facts.text_tokens);
  json.field("audio_tokens", facts.audio_tokens).end_object();
  json.field("output_tokens", facts.output_tokens);
  json.field("total_tokens", input + facts.output_tokens).end_object();
}

void write_logprobs(JsonWriter& json, const text::Tokenizer& tokenizer,
                    std::span<const Segment> segments) {
  json.key("logprobs").begin_array();
  for (const Segment& segment : segments)
    for (const Word& word : segment.words)
      for (const TokenLogprob& said : word.tokens) {
        const std::string_view piece = tokenizer.piece(said.token);
        json.begin_object().field("token", piece).field("logprob", said.logprob);
        json.key("bytes").begin_array();
        for (const char c : piece) json.value(static_cast<int32_t>(static_cast<uint8_t>(c)));
        json.end_array().end_object();
      }
  json.end_array();
}

}  // namespace

std::string_view content_type_of(Format format) {
  switch (format) {
    case Format::kJson:
    case Format::kVerboseJson:
      return "application/json";
    case Format::kText:
    case Format::kSrt:
      return "text/plain; charset=utf-8";
    case Format::kVtt:
      return "text/vtt; charset=utf-8";
  }
  return {};
}

std::string text_of(std::span<const Segment> segments) {
  std::string text;
  for (const Segment& segment : segments) text += segment.text();
  return std::string(trimmed(text));
}

void append_transcript(std::string& out, const text::Tokenizer& tokenizer,
                       const TranscriptFacts& facts, std::span<const Segment> segments) {
  switch (facts.format) {
    case Format::kText:
      out.append(text_of(segments)).append("\n");
      return;
    case Format::kSrt:
      return append_srt(out, segments);
    case Format::kVtt:
      return append_vtt(out, segments);
    case Format::kVerboseJson:
      return append_verbose(out, facts, segments);
    case Format::kJson:
      break;
  }
  JsonWriter json(out);
  json.begin_object().field("text", text_of(segments));
  if (facts.logprobs) write_logprobs(json, tokenizer, segments);
  write_usage(json, facts);
  json.end_object();
}

void append_delta(std::string& out, const text::Tokenizer& tokenizer, const TranscriptFacts& facts,
                  std::span<const Segment> segments, bool first) {
  std::string text;
  for (const Segment& segment : segments) text += segment.text();
  out += "event: transcript.text.delta\ndata: ";
  JsonWriter json(out);
  json.begin_object().field("type", "transcript.text.delta");
  std::string_view delta = text;
  if (first) delta.remove_prefix(std::min(delta.find_first_not_of(' '), delta.size()));
  json.field("delta", delta);
  if (facts.logprobs) write_logprobs(json, tokenizer, segments);
  json.end_object();
  out += "\n\n";
}

void append_done(std::string& out, const text::Tokenizer& tokenizer, const TranscriptFacts& facts,
                 std::span<const Segment> segments) {
  out += "event: transcript.text.done\ndata: ";
  JsonWriter json(out);
  json.begin_object().field("type", "transcript.text.done").field("text", text_of(segments));
  if (facts.logprobs) write_logprobs(json, tokenizer, segments);
  write_usage(json, facts);
  json.end_object();
  out += "\n\n";
}

}  // namespace weir::api::transcription
