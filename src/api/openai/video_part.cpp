#include "api/openai/video_part.h"

#include <optional>
#include <string_view>
#include <utility>

#include "api/openai/chat_messages.h"
#include "api/request/json_fields.h"
#include "base/ascii.h"
#include "base/concat.h"

namespace weir::api::openai {

namespace {

// Of a list, where no rate is given: what the references sample from a video.
constexpr double kRate = 2;
// From a frame in a quarter of an hour to what the fastest cameras take.
constexpr double kRateMin = 0.001, kRateMax = 100'000;

// More than any server takes of images (--max-images): the list must not outgrow what is leased for
// its text.
constexpr size_t kFramesMax = 1024;

constexpr std::string_view kFrames = "data:video/jpeg;base64,";

// A file of a video, of which as many frames a second are to be seen.
Result<std::vector<MediaSource>> file_of(const std::string& field, std::string_view url,
                                         std::optional<double> rate) {
  WEIR_ASSIGN(MediaSource file, media_at(Medium::kVideo, field, url));
  file.rate = rate;
  return std::vector<MediaSource>{std::move(file)};
}

tl::unexpected<Error> too_many(const std::string& field) {
  return out_of_range(field, "expected at most 1024 images, found more");
}

Result<std::optional<double>> rate_of(const std::string& path, JsonObject part) {
  for (const char* key : {"fps", "sample_fps"}) {
    const auto value = json_get(part, key);
    double rate = 0;
    if (!value) continue;
    if (value->get(rate) != simdjson::SUCCESS)
      return wrong_type(join(path, key), "a number", *value);
    if (rate >= kRateMin && rate <= kRateMax) return rate;
    return out_of_range(join(path, key), "expected from 0.001 to 100000 frames a second, found " +
                                             json_excerpt(*value));
  }
  return std::nullopt;
}

Result<MediaSource> frame_of(const std::string& path, JsonValue value) {
  std::string_view url;
  if (value.get(url) == simdjson::SUCCESS) return media_at(Medium::kPicture, path, url);
  JsonObject object;
  if (value.get(object) != simdjson::SUCCESS)
    return wrong_type(path, "an image's address or a part with an image_url", value);
  if (const auto image = json_get(object, "image"); image && image->get(url) == simdjson::SUCCESS)
    return media_at(Medium::kPicture, join(path, "image"), url);
  return picture_of_url(path, object);
}

// Says of each which frame of the video it is.
std::vector<MediaSource> numbered(std::vector<MediaSource> frames, const std::string& part,
                                  double rate) {
  for (size_t i = 0; i < frames.size(); ++i)
    frames[i].frame = FramePlace{.index = static_cast<int32_t>(i),
                                 .count = static_cast<int32_t>(frames.size()),
                                 .rate = rate,
                                 .part = part};
  return frames;
}

}  // namespace

Result<std::vector<MediaSource>> frames_of_video(const std::string& path, JsonObject part) {
  WEIR_ASSIGN(const std::optional<double> rate, rate_of(path, part));
  WEIR_ASSIGN(const JsonValue value, required_member(path, part, "video"));
  const std::string list_path = join(path, "video");
  if (std::string_view url; value.get(url) == simdjson::SUCCESS)
    return file_of(list_path, url, rate);
  JsonArray list;
  if (value.get(list) != simdjson::SUCCESS)
    return wrong_type(list_path, "a list of images or an address", value);
  std::vector<MediaSource> frames;
  for (const JsonValue element : list) {
    if (frames.size() == kFramesMax) return too_many(list_path);
    WEIR_ASSIGN(MediaSource frame, frame_of(at(list_path, frames.size()), element));
    frames.push_back(std::move(frame));
  }
  if (frames.empty()) return out_of_range(list_path, "expected at least one image, found none");
  return numbered(std::move(frames), list_path, rate.value_or(kRate));
}

Result<std::vector<MediaSource>> frames_of_video_url(const std::string& path, JsonObject part) {
  WEIR_ASSIGN(const std::optional<double> rate, rate_of(path, part));
  WEIR_ASSIGN(const JsonValue value, required_member(path, part, "video_url"));
  std::string url_path = join(path, "video_url");
  std::string_view url;
  if (JsonObject object; value.get(object) == simdjson::SUCCESS) {
    WEIR_ASSIGN(url, required_string(url_path, object, "url"));
    url_path = join(url_path, "url");
  } else if (value.get(url) != simdjson::SUCCESS) {
    return wrong_type(url_path, "a string or an object with a url", value);
  }
  if (!starts_with_ignoring_case(url, kFrames)) return file_of(url_path, url, rate);
  std::vector<MediaSource> frames;
  for (size_t begin = kFrames.size(); begin <= url.size();) {
    if (frames.size() == kFramesMax) return too_many(url_path);
    const size_t end = std::min(url.find(',', begin), url.size());
    frames.push_back(media_of_base64(Medium::kPicture, url_path, url.substr(begin, end - begin)));
    begin = end + 1;
  }
  return numbered(std::move(frames), url_path, rate.value_or(kRate));
}

}  // namespace weir::api::openai
