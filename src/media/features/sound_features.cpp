#include "media/features/sound_features.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "base/check.h"
#include "media/features/mel_bands.h"
#include "media/features/spectrum.h"

namespace weir::media {
namespace {

// The sound with what is before and after it.
std::vector<float> padded(const FrontEnd& front_end, const SoundPlan& plan,
                          std::span<const float> samples) {
  const bool centred = front_end.framing == Framing::kCentred;
  const int mirror = centred ? front_end.frame / 2 : 0;
  const auto before = static_cast<size_t>(front_end.lead) + static_cast<size_t>(mirror);
  const auto length = static_cast<size_t>(plan.padded);
  std::vector<float> out(before + length + static_cast<size_t>(mirror));
  std::ranges::transform(samples, out.begin() + static_cast<int64_t>(before),
                         [&](float sample) { return sample * front_end.scale; });
  // The first and the last sample are not repeated.
  for (size_t i = 1; i <= static_cast<size_t>(mirror); ++i) {
    out[before - i] = out[before + i];
    out[before + length - 1 + i] = out[before + length - 1 - i];
  }
  return out;
}

// Hann's, periodic.
std::vector<float> window(int frame) {
  std::vector<float> out(static_cast<size_t>(frame));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(
        0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / frame));
  return out;
}

// Samples to a frame of the transform, in float32 as the references have it. `from` has one sample
// more than the frame where there is preemphasis.
void cut_frame(const FrontEnd& front_end, const float* from, const std::vector<float>& window,
               std::span<double> out) {
  const float emphasis = front_end.emphasis;
  const auto sample = [&](size_t i) {
    switch (front_end.preemphasis) {
      case Preemphasis::kNone:
        return from[i];
      case Preemphasis::kWithinFrame:
        return from[i] - emphasis * from[i == 0 ? 0 : i - 1];  // The window is 0 at the first.
      case Preemphasis::kAcrossFrames:
        break;
    }
    return from[i + 1] - emphasis * from[i];
  };
  for (size_t i = 0; i < window.size(); ++i) out[i] = double{sample(i) * window[i]};
}

double loudness(const FrontEnd& front_end, double sum) {
  switch (front_end.loudness) {
    case Loudness::kRange:
      return std::log10(std::max(sum, front_end.floor));
    case Loudness::kAtLeast:
      return std::log(std::max(sum, front_end.floor));
    case Loudness::kAboveZero:
      break;
  }
  return std::log(sum + front_end.floor);
}

double band_sum(const MelBand& band, const std::vector<double>& frequencies) {
  double sum = 0;
  for (size_t i = 0; i < band.weights.size(); ++i)
    sum += band.weights[i] * frequencies[band.first + i];
  return sum;
}

// Whisper's: nothing lies more than 8 (80 dB) below the loudest; then mostly from -1 to 1.
void limit_range(std::vector<float>& numbers) {
  const float least = *std::ranges::max_element(numbers) - 8;
  for (float& number : numbers) number = (std::max(number, least) + 4) / 4;
}

// Each band by its own mean and deviation.
void normalise(const FrontEnd& front_end, std::vector<float>& numbers) {
  const auto mels = static_cast<size_t>(front_end.mels);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!front_end.mean.empty()) numbers[i] -= front_end.mean[i % mels];
    if (!front_end.deviation.empty()) numbers[i] /= front_end.deviation[i % mels];
  }
}

}  // namespace

SoundFeatures sound_features(const FrontEnd& front_end, const SoundPlan& plan,
                             std::span<const float> samples) {
  CHECK(static_cast<int64_t>(samples.size()) == plan.samples && plan.frames > 0);
  const std::vector<float> sound = padded(front_end, plan, samples);
  const std::vector<float> hann = window(front_end.frame);
  const std::vector<MelBand> bands = mel_bands(front_end);
  Spectrum spectrum(front_end.fft);
  std::vector<double> frame(static_cast<size_t>(front_end.fft));
  std::vector<double> frequencies(static_cast<size_t>(spectrum.bins()));
  SoundFeatures out;
  out.frames = plan.frames;
  out.heard = plan.heard;
  out.numbers.reserve(static_cast<size_t>(plan.frames * front_end.mels));
  for (int64_t i = 0; i < plan.frames; ++i) {
    cut_frame(front_end, sound.data() + i * front_end.hop, hann, frame);
    spectrum.powers(frame, frequencies);
    if (front_end.loudness != Loudness::kRange)
      for (double& frequency : frequencies) frequency = std::sqrt(frequency);
    for (const MelBand& band : bands)
      out.numbers.push_back(static_cast<float>(loudness(front_end, band_sum(band, frequencies))));
  }
  if (front_end.loudness == Loudness::kRange) limit_range(out.numbers);
  normalise(front_end, out.numbers);
  if (front_end.unheard_zero)
    std::fill(out.numbers.begin() + plan.heard * front_end.mels, out.numbers.end(), 0.0f);
  return out;
}

}  // namespace weir::media
