#include "api/transcription/form_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "api/request/json_fields.h"
#include "api/request/multipart.h"
#include "base/concat.h"

namespace weir::api::transcription {

namespace {

using Request = TranscriptionRequest;

// One part's value.
struct PartInput {
  std::string_view name;
  std::string_view value;
};

using PartParser = Result<void> (*)(const PartInput& in, Request& out);

struct PartField {
  std::string_view name, type;
  PartParser parse;  // Null: accepted and ignored, whatever it holds.
  std::string_view help;
  double min = 0, max = 0;
  uint8_t endpoints = kTranscriptions | kTranslations;
  bool required = false;
  bool refused = false;
};

tl::unexpected<Error> unexpected_value(const PartInput& in, std::string_view expected) {
  return out_of_range(
      in.name, concat({"expected ", expected, ", found \"", std::string(shown(in.value)), "\""}));
}

Result<void> parse_file(const PartInput& in, Request& out) {
  out.file = in.value;
  if (out.file.empty()) return unexpected_value(in, "the bytes of a sound's file");
  return {};
}

Result<void> parse_model(const PartInput& in, Request& out) {
  out.model = in.value;
  return {};
}

Result<void> parse_language(const PartInput& in, Request& out) {
  if (in.value.empty()) return {};
  out.language = find_language(in.value);
  if (out.language != nullptr) return {};
  std::string known;
  for (const Language& each : languages())
    known += concat({known.empty() ? "" : ", ", each.code, " (", each.name, ")"});
  return unexpected_value(in, concat({"one of ", known}));
}

Result<void> parse_prompt(const PartInput& in, Request& out) {
  out.prompt = in.value;
  return {};
}

Result<double> parse_number(const PartInput& in, double min, double max) {
  double number = 0;
  const char* const end = in.value.data() + in.value.size();
  const auto read = std::from_chars(in.value.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || !std::isfinite(number))
    return unexpected_value(in, "a number");
  WEIR_TRY(check_range(in.name, number, min, max));
  return number;
}

Result<void> parse_temperature(const PartInput& in, Request& out) {
  WEIR_ASSIGN(out.temperature, parse_number(in, 0, 1));
  return {};
}

Result<void> parse_step(const PartInput& in, Request& out) {
  WEIR_ASSIGN(out.temperature_step, parse_number(in, 0, 1));
  return {};
}

Result<void> parse_seed(const PartInput& in, Request& out) {
  int64_t seed = 0;
  const char* const end = in.value.data() + in.value.size();
  const auto read = std::from_chars(in.value.data(), end, seed);
  if (read.ec != std::errc() || read.ptr != end) return unexpected_value(in, "an integer");
  out.seed = static_cast<uint64_t>(seed);
  return {};
}

Result<void> parse_format(const PartInput& in, Request& out) {
  constexpr std::pair<std::string_view, Format> kFormats[] = {{"json", Format::kJson},
                                                              {"text", Format::kText},
                                                              {"srt", Format::kSrt},
                                                              {"vtt", Format::kVtt},
                                                              {"verbose_json", Format::kVerboseJson}};
  for (const auto& [name, format] : kFormats)
    if (in.value == name) {
      out.format = format;
      return {};
    }
  return unexpected_value(in, "json, text, srt, vtt or verbose_json");
}

// The first part of the list takes the place of what is usual.
Result<void> parse_granularity(const PartInput& in, Request& out) {
  if (in.value == "word")
    out.words = true;
  else if (in.value != "segment")
    return unexpected_value(in, "segment or word");
  return {};
}

Result<void> parse_include(const PartInput& in, Request& out) {
  if (in.value != "logprobs") return unexpected_value(in, "logprobs");
  out.logprobs = true;
  return {};
}

Result<void> parse_stream(const PartInput& in, Request& out) {
  out.stream = in.value == "true" || in.value == "1";
  if (!out.stream && in.value != "false" && in.value != "0")
    return unexpected_value(in, "true or false");
  return {};
}

Result<void> refuse_speakers(const PartInput& in, Request&) {
  return unsupported(in.name, "speakers are not told apart");
}

// Of lists: clients write an element as NAME[], as NAME[0], or as NAME.
constexpr std::string_view kWordTimes = "timestamp_granularities[]", kInclude = "include[]";

constexpr auto kFields = std::to_array<PartField>({
    {.name = "file", .type = "string", .parse = &parse_file,
     .help = "The sound: WAV, FLAC, MP3, Ogg Vorbis or Ogg Opus.", .required = true},
    {.name = "model", .type = "string", .parse = &parse_model,
     .help = "The model's id, or what else names it."},
    {.name = "language", .type = "string", .parse = &parse_language,
     .help = "A code of ISO 639-1 or an English name; absent: the one that is heard in the first "
             "half minute.",
     .endpoints = kTranscriptions},
    {.name = "prompt", .type = "string", .parse = &parse_prompt,
     .help = "Text that comes before; it shows how words and names are written."},
    {.name = "response_format", .type = "string", .parse = &parse_format,
     .help = "json, text, srt, vtt or verbose_json."},
    {.name = "temperature", .type = "number", .parse = &parse_temperature,
     .help = "0: the likeliest tokens, and higher ones where what they say is not likely enough or "
             "repeats itself.",
     .max = 1},
    {.name = "temperature_inc", .type = "number", .parse = &parse_step,
     .help = "By how much it rises with each attempt, 0.2 if absent; 0: there is one "
             "(whisper.cpp).",
     .max = 1},
    {.name = "seed", .type = "integer", .parse = &parse_seed,
     .help = "Of the tokens that are drawn (vLLM)."},
    {.name = kWordTimes, .type = "array", .parse = &parse_granularity,
     .help = "Of verbose_json: segment, word, or both; absent: segment.", .endpoints = kTranscriptions},
    {.name = kInclude, .type = "array", .parse = &parse_include,
     .help = "logprobs: each token's, with json.", .endpoints = kTranscriptions},
    {.name = "stream", .type = "boolean", .parse = &parse_stream,
     .help = "Text as events, as windows of the recording are heard; with json.",
     .endpoints = kTranscriptions},
    {.name = "chunking_strategy", .type = "string", .parse = nullptr,
     .help = "Recordings are always cut into windows.", .endpoints = kTranscriptions},
    {.name = "known_speaker_names[]", .type = "array", .parse = &refuse_speakers,
     .help = "Speakers are not told apart.", .endpoints = kTranscriptions, .refused = true},
    {.name = "known_speaker_references[]", .type = "array", .parse = &refuse_speakers,
     .help = "Speakers are not told apart.", .endpoints = kTranscriptions, .refused = true},
});

bool names(const PartField& field, std::string_view name) {
  if (name == field.name) return true;
  if (!field.name.ends_with("[]")) return false;
  const std::string_view bare = field.name.substr(0, field.name.size() - 2);
  if (!name.starts_with(bare)) return false;
  name.remove_prefix(bare.size());
  if (name.empty()) return true;
  if (!name.starts_with('[') || !name.ends_with(']')) return false;
  return name.substr(1).find_first_not_of("0123456789") == name.size() - 2;
}

const PartField* find_field(uint8_t endpoint, std::string_view name) {
  for (const PartField& field : kFields)
    if ((field.endpoints & endpoint) && names(field, name)) return &field;
  return nullptr;
}

// What only some formats can say.
Result<void> check_together(const Request& request, bool has_granularity) {
  const bool verbose = request.format == Format::kVerboseJson;
  if (has_granularity && !verbose)
    return out_of_range(kWordTimes, "expected response_format verbose_json beside it, found another");
  if (request.logprobs && request.format != Format::kJson)
    return out_of_range(kInclude, "expected response_format json beside logprobs, found another");
  if (request.stream && request.format != Format::kJson && request.format != Format::kText)
    return out_of_range("stream", "expected response_format json or text beside it, found another");
  return {};
}

std::vector<FieldDoc> docs_of(uint8_t endpoint) {
  std::vector<FieldDoc> docs;
  for (const PartField& field : kFields)
    if (field.endpoints & endpoint)
      docs.push_back({field.name, field.type, field.help,
                      field.refused            ? Treatment::kRefused
                      : field.parse == nullptr ? Treatment::kIgnored
                                               : Treatment::kHonoured,
                      field.min, field.max, field.required});
  return docs;
}

}  // namespace

Result<TranscriptionRequest> parse_transcription(Task task, std::string_view content_type,
                                                 std::string_view body) {
  const uint8_t endpoint = task == Task::kTranscribe ? kTranscriptions : kTranslations;
  WEIR_ASSIGN(const std::vector<FormPart> parts, read_multipart(content_type, body));
  Request request;
  request.task = task;
  std::vector<const PartField*> seen;
  bool segments = false;
  for (const FormPart& part : parts) {
    const PartField* const field = find_field(endpoint, part.name);
    if (field == nullptr) {
      request.ignored.add(part.name);
      continue;
    }
    const bool is_list = field->name.ends_with("[]");
    if (std::ranges::find(seen, field) != seen.end() && !is_list)
      return out_of_range(field->name, "expected one part of that name, found several");
    seen.push_back(field);
    if (field->parse != nullptr) WEIR_TRY(field->parse({field->name, part.bytes}, request));
    segments = segments || (field->name == kWordTimes && part.bytes == "segment");
  }
  for (const PartField& field : kFields)
    if ((field.endpoints & endpoint) && field.required &&
        std::ranges::find(seen, &field) == seen.end())
      return missing(field.name);
  const bool has_granularity = request.words || segments;
  if (has_granularity) request.segments = segments;
  WEIR_TRY(check_together(request, has_granularity));
  return request;
}

std::vector<FieldDoc> transcription_fields() { return docs_of(kTranscriptions); }
std::vector<FieldDoc> translation_fields() { return docs_of(kTranslations); }

}  // namespace weir::api::transcription
