#include "suite/words.h"

#include <array>
#include <optional>

#include "suite/json_value.h"

namespace weir::suite {

namespace {

// Common words of one or two tokens in most vocabularies.
constexpr std::array<std::string_view, 48> kWords = {
    "apple",    "autumn", "basket", "bottle", "branch",  "bread",  "butter", "castle",
    "cloud",    "corner", "cotton", "desert", "dinner",  "dragon", "family", "farmer",
    "finger",   "flower", "friend", "guitar", "hammer",  "horse",  "hunter", "iron",
    "jacket",   "kettle", "lemon",  "light",  "magic",   "meadow", "minute", "monkey",
    "mountain", "needle", "ocean",  "office", "painter", "pepper", "pocket", "rabbit",
    "school",   "sister", "spring", "summer", "ticket",  "tower",  "wagon",  "wooden"};

std::string_view text_in(JsonValue root) {
  std::string_view text;
  JsonValue choice;
  if (root["choices"].at(0).get(choice) != simdjson::SUCCESS) return text;
  for (const char* where : {"delta", "message"})
    if (choice[where]["content"].get(text) == simdjson::SUCCESS) return text;
  return value_or(choice["text"], std::string_view());
}

// The last event of a stream that has it, or the answer.
template <class Find>
int64_t number_in(const Answer& answer, const Find& find) {
  int64_t number = 0;
  const auto look = [&](std::string_view json) {
    const Result<JsonDoc> doc = JsonDoc::parse(json);
    if (doc) find(doc->root(), number);
  };
  if (answer.events.empty()) look(answer.body);
  for (const auto& event : answer.events) look(event.second);
  return number;
}

}  // namespace

uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

int32_t pick(uint64_t& state, int32_t low, int32_t high) {
  return low + static_cast<int32_t>(next_random(state) % static_cast<uint64_t>(high - low + 1));
}

std::string words(int32_t count, uint64_t seed) {
  uint64_t state = seed;
  std::string text;
  for (int32_t i = 0; i < count; ++i) {
    if (i > 0) text += ' ';
    text += kWords[next_random(state) % kWords.size()];
  }
  return text;
}

Request completion(const Completion& of) {
  Request request{.path = "/v1/completions", .body = {}};
  JsonWriter json(request.body);
  json.begin_object();
  if (!of.model.empty()) json.field("model", of.model);
  json.field("prompt", of.prompt).field("max_tokens", of.max_tokens);
  json.field("temperature", of.temperature).field("seed", of.seed).field("ignore_eos", true);
  if (of.stream) {
    json.field("stream", true).key("stream_options").begin_object();
    json.field("include_usage", true).end_object();
  }
  if (of.more) of.more(json);
  json.end_object();
  return request;
}

Result<std::string> choices_of(const Answer& answer) {
  if (!answer.error.empty()) return fail(ErrorCode::kIo, answer.error);
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(answer.body));
  JsonValue choices;
  if (doc.root()["choices"].get(choices) != simdjson::SUCCESS)
    return fail(ErrorCode::kIo, "no choices in " + json_excerpt(doc.root()));
  std::string text;
  JsonWriter(text).value(choices);
  return text;
}

std::string text_of(const Answer& answer) {
  std::string text;
  const auto add = [&](std::string_view json) {
    const Result<JsonDoc> doc = JsonDoc::parse(json);
    if (doc) text += text_in(doc->root());
  };
  if (answer.events.empty()) add(answer.body);
  for (const auto& event : answer.events) add(event.second);
  return text;
}

int64_t usage_of(const Answer& answer, std::string_view member) {
  return number_in(answer, [&](JsonValue root, int64_t& number) {
    number = value_or(root["usage"][member], number);
  });
}

int64_t cached_tokens_of(const Answer& answer) {
  return number_in(answer, [](JsonValue root, int64_t& number) {
    number = value_or(root["usage"]["prompt_tokens_details"]["cached_tokens"], number);
  });
}

double first_text_of(const Answer& answer) {
  for (const auto& [seconds, data] : answer.events) {
    const Result<JsonDoc> doc = JsonDoc::parse(data);
    if (doc && !text_in(doc->root()).empty()) return seconds;
  }
  return answer.seconds;
}

}  // namespace weir::suite
