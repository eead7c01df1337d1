#include "api/transcription/recording.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "api/request/media_source.h"
#include "base/concat.h"
#include "media/audio/decode_sound.h"
#include "media/features/sound_features.h"
#include "media/features/sound_plan.h"

namespace weir::api::transcription {

namespace {

tl::unexpected<Error> of_file(const Error& error) {
  if (error.code == ErrorCode::kOverloaded) return tl::unexpected<Error>(error);
  return media_error(Medium::kSound, "file", error);
}

tl::unexpected<Error> no_memory(const MemoryBudget& budget, size_t bytes, int64_t seconds) {
  if (bytes > budget.most_of_one())
    return fail(ErrorCode::kTooLarge,
                concat({"a recording of up to ", std::to_string(seconds), " s would take ",
                        std::to_string(bytes), " bytes of memory, more than the ",
                        std::to_string(budget.most_of_one()),
                        " that this server gives to one (--image-memory)"}));
  return fail(ErrorCode::kOverloaded,
              "the memory for images and sounds is used up (--image-memory); try again later");
}

size_t features_bytes(const media::FrontEnd& front_end, const media::SoundPlan& plan) {
  return static_cast<size_t>(plan.frames * front_end.mels) * sizeof(float);
}

struct Decoded {
  MemoryLease lease;  // Declared first: given back after the samples are freed.
  media::Sound sound;
};

// The file says how long it is only where it is decoded, and some do not say it before their end. So
// it is decoded under limits that grow: memory is that of recordings as they come, mostly short ones,
// and the longest are decoded a third more often.
Result<Decoded> decode(const media::FrontEnd& front_end, std::string_view file,
                       MemoryBudget& budget, uint64_t caller) {
  constexpr int64_t kFirstLimit = 60, kGrowth = 4;
  media::SoundLimits limits;
  for (int64_t seconds = kFirstLimit;; seconds *= kGrowth) {
    limits.seconds_max = std::min(seconds, kSecondsMax);
    const auto bytes = static_cast<size_t>(media::kDecodeBytesPerSample * limits.seconds_max *
                                           front_end.rate);
    std::optional<MemoryLease> lease = budget.take(caller, bytes);
    if (!lease) return no_memory(budget, bytes, limits.seconds_max);
    Result<media::Sound> sound = media::decode_sound(file, front_end.rate, limits);
    if (sound) {
      const size_t held = sound->samples.capacity() * sizeof(float);
      Decoded decoded{lease->part(std::min(held, lease->bytes())), *std::move(sound)};
      return decoded;
    }
    if (sound.error().code != ErrorCode::kTooLarge || limits.seconds_max == kSecondsMax)
      return tl::unexpected(std::move(sound).error());
  }
}

Result<std::shared_ptr<const sched::HeardSound>> hear(const media::FrontEnd& front_end,
                                                      std::span<const float> samples,
                                                      MemoryBudget& budget, uint64_t caller) {
  WEIR_ASSIGN(const media::SoundPlan plan, media::plan_sound(front_end, std::ssize(samples)));
  const size_t bytes = features_bytes(front_end, plan);
  std::optional<MemoryLease> lease = budget.take(caller, bytes);
  if (!lease) return no_memory(budget, bytes, kSecondsMax);
  struct Held {
    MemoryLease lease;  // Declared first: given back after the numbers are freed.
    media::SoundFeatures features;
  };
  const auto held = std::make_shared<Held>();
  held->features = media::sound_features(front_end, plan, samples);
  held->lease = *std::move(lease);
  auto heard = std::make_shared<sched::HeardSound>();
  heard->hash = sched::hash_of(held->features);
  heard->features = std::shared_ptr<const media::SoundFeatures>(held, &held->features);
  return std::shared_ptr<const sched::HeardSound>(std::move(heard));
}

}  // namespace

std::vector<WindowSamples> cut_windows(const media::FrontEnd& front_end, int64_t samples) {
  const int64_t window = front_end.samples_max;
  // Whole timestamps, of two hops, so that all windows count time alike.
  constexpr int64_t kOverlapShare = 6, kHopsPerTimestamp = 2;
  const int64_t unit = kHopsPerTimestamp * front_end.hop;
  const int64_t step = window - window / kOverlapShare / unit * unit;
  std::vector<WindowSamples> windows;
  for (int64_t begin = 0;; begin += step) {
    windows.push_back({begin, std::min(begin + window, samples)});
    if (begin + window >= samples) return windows;
  }
}

Result<Recording> hear_recording(const media::FrontEnd& front_end, std::string_view file,
                                 MemoryBudget& budget, uint64_t caller,
                                 const grammar::Interrupt* interrupt) {
  Result<Decoded> decoded = decode(front_end, file, budget, caller);
  if (!decoded) return of_file(decoded.error());
  const std::span<const float> samples = decoded->sound.samples;
  Recording recording{.seconds = decoded->sound.seconds()};
  const double rate = front_end.rate;
  for (const WindowSamples& cut : cut_windows(front_end, std::ssize(samples))) {
    if (interrupt != nullptr && interrupt->stopped())
      return fail(ErrorCode::kCancelled, "The client has left.");
    const auto window = samples.subspan(static_cast<size_t>(cut.begin),
                                        static_cast<size_t>(cut.end - cut.begin));
    auto heard = hear(front_end, window, budget, caller);
    if (!heard) return of_file(heard.error());
    recording.windows.push_back({.begin = static_cast<double>(cut.begin) / rate,
                                 .end = static_cast<double>(cut.end) / rate,
                                 .heard = *std::move(heard)});
  }
  return recording;
}

}  // namespace weir::api::transcription
