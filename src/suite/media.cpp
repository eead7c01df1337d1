// images and audio: what a picture or a sound costs beside its text, that it is encoded once for
// all turns, and that an answer about it does not depend on what runs beside it.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/base64.h"
#include "base/concat.h"
#include "suite/parts.h"

namespace weir::suite {

namespace {

constexpr int32_t kAnswerTokens = 16;
constexpr int32_t kAtOnce = 8;
constexpr int32_t kCount = 16, kQuickCount = 8;
constexpr int32_t kSide = 512;
// The shortest that the encoders of published models take at once is 30 s, of fixtures 1 s.
constexpr int32_t kRate = 16000, kSamples = kRate * 9 / 10;
// Of the first time's first token (product goal): the second turn computes its new text alone.
// Where that was less than a second, reading the file again counts as much.
constexpr double kSecondShareMax = 25, kJudgedSeconds = 1;

// A picture of soft stripes and some noise, as a BMP file of 24 bits: no library packs it, and it
// is the same everywhere. Others for another seed.
std::string bmp(int32_t side, uint64_t seed) {
  constexpr size_t kHead = 54;
  const size_t line = (static_cast<size_t>(side) * 3 + 3) / 4 * 4;
  std::string file(kHead + line * static_cast<size_t>(side), '\0');
  const auto put = [&](size_t at, uint32_t value, size_t bytes) {
    std::memcpy(file.data() + at, &value, bytes);  // Little-endian, as every machine of ours.
  };
  file[0] = 'B', file[1] = 'M';
  put(2, static_cast<uint32_t>(file.size()), 4);
  put(10, kHead, 4);
  put(14, 40, 4);  // BITMAPINFOHEADER
  put(18, static_cast<uint32_t>(side), 4);
  put(22, static_cast<uint32_t>(side), 4);
  put(26, 1, 2);   // Plane.
  put(28, 24, 2);  // Bits.
  uint64_t state = seed;
  const int32_t slope = pick(state, 1, 7), period = pick(state, 40, 90);
  for (int32_t y = 0; y < side; ++y)
    for (int32_t x = 0; x < side; ++x) {
      const int32_t level = (x * slope + y) % period * 200 / period;
      char* pixel = file.data() + kHead + line * static_cast<size_t>(y) + size_t{3} * x;
      for (int32_t c = 0; c < 3; ++c)
        pixel[c] =
            static_cast<char>(level + static_cast<int32_t>(next_random(state) % 16) + 13 * c);
    }
  return file;
}

// A sound of a wandering tone and some noise, as a WAV file of 16 bits. Others for another seed.
std::string wav(int32_t samples, uint64_t seed) {
  constexpr size_t kHead = 44;
  std::string file(kHead + 2 * static_cast<size_t>(samples), '\0');
  const auto put = [&](size_t at, uint32_t value, size_t bytes) {
    std::memcpy(file.data() + at, &value, bytes);
  };
  std::memcpy(file.data(), "RIFF", 4);
  put(4, static_cast<uint32_t>(file.size() - 8), 4);
  std::memcpy(file.data() + 8, "WAVEfmt ", 8);
  put(16, 16, 4);
  put(20, 1, 2);  // Integers.
  put(22, 1, 2);  // Channels.
  put(24, kRate, 4);
  put(28, 2 * kRate, 4);
  put(32, 2, 2);
  put(34, 16, 2);
  std::memcpy(file.data() + 36, "data", 4);
  put(40, 2 * static_cast<uint32_t>(samples), 4);
  uint64_t state = seed;
  const int32_t longest = pick(state, 60, 160);
  int32_t phase = 0, period = longest;
  for (int32_t i = 0; i < samples; ++i) {
    if (++phase >= period) phase = 0, period = period > 30 ? period - 1 : longest;
    const int32_t level = phase * 16000 / period - 8000;
    put(kHead + 2 * static_cast<size_t>(i),
        static_cast<uint16_t>(level + static_cast<int32_t>(next_random(state) % 1024)), 2);
  }
  return file;
}

std::string base64_of(const std::string& file) {
  std::string digits;
  append_base64(digits, std::as_bytes(std::span(file)));
  return digits;
}

// What is asked about, and how it is told of.
struct Kind {
  const char* one;      // "picture"
  const char* many;     // "pictures"
  const char* first;    // What the first turn is about.
  const char* unit;     // Of how many a second.
  const char* encoded;  // The metric of those that were encoded.
  // The part of a message with the `number`-th of them, each of another size.
  void (*write)(JsonWriter& json, int32_t number);
};

void write_picture(JsonWriter& json, int32_t number) {
  const std::string file = bmp(kSide - 17 * number, 1 + static_cast<uint64_t>(number));
  json.begin_object().field("type", "image_url").key("image_url");
  json.begin_object().field("url", "data:image/bmp;base64," + base64_of(file)).end_object();
  json.end_object();
}

void write_sound(JsonWriter& json, int32_t number) {
  const std::string file = wav(kSamples - 331 * number, 1 + static_cast<uint64_t>(number));
  json.begin_object().field("type", "input_audio").key("input_audio");
  json.begin_object().field("data", base64_of(file)).field("format", "wav").end_object();
  json.end_object();
}

constexpr Kind kPictures = {.one = "picture",
                            .many = "pictures",
                            .first = "a picture of 512 x 512",
                            .unit = "images/s",
                            .encoded = "weir_image_encoded_total",
                            .write = &write_picture};
constexpr Kind kSounds = {.one = "sound",
                          .many = "sounds",
                          .first = "a sound of 0.9 s",
                          .unit = "sounds/s",
                          .encoded = "weir_audio_encoded_total",
                          .write = &write_sound};

// A chat about one of them; with `answer` its second turn. `salt`: what prompts must share to share
// what is computed of them.
Request about(const Run& run, const Kind& kind, int32_t number, const std::string* answer,
              bool stream, std::string_view salt = {}) {
  Request request{.path = "/v1/chat/completions", .body = {}};
  JsonWriter json(request.body);
  json.begin_object().field("model", run.model_id()).key("messages").begin_array();
  json.begin_object().field("role", "user").key("content").begin_array();
  kind.write(json, number);
  json.begin_object().field("type", "text").field("text", "What is this?").end_object();
  json.end_array().end_object();
  if (answer != nullptr) {
    json.begin_object().field("role", "assistant").field("content", *answer).end_object();
    json.begin_object().field("role", "user").field("content", "Say more.").end_object();
  }
  json.end_array().field("max_tokens", kAnswerTokens).field("temperature", 0.0);
  if (!salt.empty()) json.field("cache_salt", salt);
  if (stream)
    json.field("stream", true);
  else
    json.field("logprobs", true);
  json.end_object();
  return request;
}

Result<void> measure_turns(Run& run, const Kind& kind, const Endpoint& at) {
  run.say(concat({"a ", kind.one, ", and a second turn about it"}));
  const Answer first = at.ask(about(run, kind, 0, nullptr, true));
  if (!first.error.empty()) return fail(ErrorCode::kIo, first.error);
  const std::string said = text_of(first);
  const double encoded = at.metric(kind.encoded);
  const Answer second = at.ask(about(run, kind, 0, &said, true));
  if (!second.error.empty()) return fail(ErrorCode::kIo, second.error);
  run.add({.name = concat({kind.first, ": first token"}),
           .value = 1000 * first_text_of(first),
           .unit = "ms"});
  run.add({.name = "its second turn: first token, of the first's",
           .value = 100 * first_text_of(second) / std::max(first_text_of(first), 1e-9),
           .unit = "%",
           .limit = first_text_of(first) >= kJudgedSeconds ? std::optional(at_most(kSecondShareMax))
                                                           : std::nullopt});
  if (run.inside())
    run.add({.name = concat({"its second turn: ", kind.many, " encoded"}),
             .value = at.metric(kind.encoded) - encoded,
             .limit = at_most(0)});
  return {};
}

Result<void> measure_together(Run& run, const Kind& kind, const Endpoint& at) {
  const int32_t count = run.quick() ? kQuickCount : kCount;
  // Mixed sizes, none of them twice.
  std::vector<Request> requests, again;
  for (int32_t i = 0; i < count; ++i) {
    requests.push_back(about(run, kind, 1 + i, nullptr, false));
    again.push_back(about(run, kind, 1 + i, nullptr, false, "again"));
  }
  run.say(concat({std::to_string(count), " ", kind.many, " at once, then one after another"}));
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Answer> together = at.ask(requests, kAtOnce);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const std::vector<Answer> alone = at.ask(again, 1);
  int32_t differ = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    WEIR_ASSIGN(const std::string one, choices_of(alone[i]));
    WEIR_ASSIGN(const std::string other, choices_of(together[i]));
    differ += one != other;
  }
  run.add({.name = concat({kind.many, " of mixed sizes, 8 at once"}),
           .value = count / seconds.count(),
           .unit = kind.unit,
           .better = Better::kMore,
           .tolerance = 0.1});
  run.add({.name = concat({std::to_string(count), " ", kind.many, " alone and together: differ"}),
           .value = static_cast<double>(differ),
           .limit = at_most(0)});
  return {};
}

Result<void> measure(Run& run, const Kind& kind) {
  WEIR_ASSIGN(const Endpoint* at, run.endpoint());
  const Answer answer = at->ask(about(run, kind, kCount + 1, nullptr, false));
  if (answer.status == 400) {
    run.skip(kind.many, "the server takes none: " + answer.error);
    return {};
  }
  if (!answer.error.empty()) return fail(ErrorCode::kIo, answer.error);
  WEIR_TRY(measure_turns(run, kind, *at));
  return measure_together(run, kind, *at);
}

}  // namespace

Result<void> measure_images(Run& run) { return measure(run, kPictures); }

Result<void> measure_audio(Run& run) { return measure(run, kSounds); }

}  // namespace weir::suite
