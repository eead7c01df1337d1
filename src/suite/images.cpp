// images: what a picture costs beside its text, that it is encoded once for all turns, and that an
// answer about it does not depend on what runs beside it.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/base64.h"
#include "suite/parts.h"

namespace weir::suite {

namespace {

constexpr int32_t kAnswerTokens = 16;
constexpr int32_t kAtOnce = 8;
constexpr int32_t kPictures = 16, kQuickPictures = 8;
constexpr int32_t kSide = 512;
// Of the first time's first token (product goal): the second turn computes its new text alone.
// Where that was less than a second, reading the file again counts as much.
constexpr double kSecondShareMax = 25, kJudgedSeconds = 1;

// A picture of soft stripes and some noise, as a BMP file of 24 bits: no library packs it, and it is
// the same everywhere. Others for another seed.
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
        pixel[c] = static_cast<char>(level + static_cast<int32_t>(next_random(state) % 16) + 13 * c);
    }
  return file;
}

std::string data_url(const std::string& file) {
  std::string url = "data:image/bmp;base64,";
  append_base64(url, std::as_bytes(std::span(file)));
  return url;
}

// A chat about a picture; with `answer` its second turn. `salt`: what prompts must share to share what
// is computed of them.
Request about(const Run& run, const std::string& url, const std::string* answer, bool stream,
              std::string_view salt = {}) {
  Request request{.path = "/v1/chat/completions", .body = {}};
  JsonWriter json(request.body);
  json.begin_object().field("model", run.model_id()).key("messages").begin_array();
  json.begin_object().field("role", "user").key("content").begin_array();
  json.begin_object().field("type", "image_url").key("image_url");
  json.begin_object().field("url", url).end_object().end_object();
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

Result<void> measure_turns(Run& run, const Endpoint& at) {
  run.say("a picture, and a second turn about it");
  const std::string url = data_url(bmp(kSide, 1));
  const Answer first = at.ask(about(run, url, nullptr, true));
  if (!first.error.empty()) return fail(ErrorCode::kIo, first.error);
  const std::string said = text_of(first);
  const double encoded = at.metric("weir_image_encoded_total");
  const Answer second = at.ask(about(run, url, &said, true));
  if (!second.error.empty()) return fail(ErrorCode::kIo, second.error);
  run.add({.name = "a picture of 512 x 512: first token",
           .value = 1000 * first_text_of(first),
           .unit = "ms"});
  run.add({.name = "its second turn: first token, of the first's",
           .value = 100 * first_text_of(second) / std::max(first_text_of(first), 1e-9),
           .unit = "%",
           .limit = first_text_of(first) >= kJudgedSeconds
                        ? std::optional(at_most(kSecondShareMax))
                        : std::nullopt});
  if (run.inside())
    run.add({.name = "its second turn: pictures encoded",
             .value = at.metric("weir_image_encoded_total") - encoded,
             .limit = at_most(0)});
  return {};
}

Result<void> measure_together(Run& run, const Endpoint& at) {
  const int32_t count = run.quick() ? kQuickPictures : kPictures;
  // Mixed sizes, none of them twice.
  std::vector<Request> requests, again;
  for (int32_t i = 0; i < count; ++i) {
    const std::string url = data_url(bmp(kSide - 17 * i, 100 + static_cast<uint64_t>(i)));
    requests.push_back(about(run, url, nullptr, false));
    again.push_back(about(run, url, nullptr, false, "again"));
  }
  run.say(std::to_string(count) + " pictures at once, then one after another");
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
  run.add({.name = "pictures of mixed sizes, 8 at once",
           .value = count / seconds.count(),
           .unit = "images/s",
           .better = Better::kMore,
           .tolerance = 0.1});
  run.add({.name = std::to_string(count) + " pictures alone and together: differ",
           .value = static_cast<double>(differ),
           .limit = at_most(0)});
  return {};
}

}  // namespace

Result<void> measure_images(Run& run) {
  WEIR_ASSIGN(const Endpoint* at, run.endpoint());
  const Answer answer = at->ask(about(run, data_url(bmp(kSide, 0)), nullptr, false));
  if (answer.status == 400) {
    run.skip("pictures", "the server takes none: " + answer.error);
    return {};
  }
  if (!answer.error.empty()) return fail(ErrorCode::kIo, answer.error);
  WEIR_TRY(measure_turns(run, *at));
  return measure_together(run, *at);
}

}  // namespace weir::suite
