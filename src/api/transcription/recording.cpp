#include "api/transcription/recording.h"

#include <algorithm>
#include <utility>

#include "api/media/media_memory.h"
#include "api/request/media_source.h"
#include "media/audio/decode_sound.h"
#include "media/features/sound_features.h"
#include "media/features/sound_plan.h"

namespace weir::api::transcription {

namespace {

tl::unexpected<Error> of_file(const Error& error) {
  if (error.code == ErrorCode::kOverloaded) return tl::unexpected<Error>(error);
  return media_error(Medium::kSound, "file", error);
}

struct Decoded {
  MemoryLease lease;  // Declared first: given back after the samples are freed.
  media::Sound sound;
};

// Memory is leased as samples come: some files do not say before their end how long they last.
Result<Decoded> decode(const media::FrontEnd& front_end, std::string_view file,
                       MemoryBudget& budget, uint64_t caller) {
  Decoded decoded;
  const media::SoundLimits limits = {
      .seconds_max = kSecondsMax,
      .admit = [&](size_t bytes) { return lease_medium(budget, caller, decoded.lease, bytes); }};
  WEIR_ASSIGN(decoded.sound, media::decode_sound(file, front_end.rate, limits));
  return decoded;
}

// What all windows become.
Result<size_t> features_bytes(const media::FrontEnd& front_end,
                              std::span<const WindowSamples> windows) {
  size_t bytes = 0;
  for (const WindowSamples& cut : windows) {
    WEIR_ASSIGN(const media::SoundPlan plan, media::plan_sound(front_end, cut.end - cut.begin));
    bytes += values_bytes(front_end, plan);
  }
  return bytes;
}

// Takes its part of the lease.
Result<std::shared_ptr<const sched::HeardSound>> hear(const media::FrontEnd& front_end,
                                                      std::span<const float> samples,
                                                      MemoryLease& lease) {
  WEIR_ASSIGN(const media::SoundPlan plan, media::plan_sound(front_end, std::ssize(samples)));
  struct Held {
    MemoryLease lease;  // Declared first: given back after the numbers are freed.
    media::SoundFeatures features;
  };
  const auto held = std::make_shared<Held>();
  held->lease = lease.part(values_bytes(front_end, plan));
  held->features = media::sound_features(front_end, plan, samples);
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
  const std::vector<WindowSamples> windows = cut_windows(front_end, std::ssize(samples));
  // For all windows at once: one that is refused after others were computed had been in vain.
  const Result<size_t> features = features_bytes(front_end, windows);
  if (!features) return of_file(features.error());
  if (auto room = lease_medium(budget, caller, decoded->lease, *features); !room)
    return of_file(room.error());
  for (const WindowSamples& cut : windows) {
    if (interrupt != nullptr && interrupt->stopped())
      return fail(ErrorCode::kCancelled, "The client has left.");
    const auto window = samples.subspan(static_cast<size_t>(cut.begin),
                                        static_cast<size_t>(cut.end - cut.begin));
    auto heard = hear(front_end, window, decoded->lease);
    if (!heard) return of_file(heard.error());
    recording.windows.push_back({.begin = static_cast<double>(cut.begin) / rate,
                                 .end = static_cast<double>(cut.end) / rate,
                                 .heard = *std::move(heard)});
  }
  return recording;
}

}  // namespace weir::api::transcription
