#include "media/features/mel_bands.h"

#include <algorithm>
#include <cmath>

namespace weir::media {
namespace {

// Slaney's scale: 200/3 Hz a mel up to 1 kHz, which is mel 15; from there 27 mels for a factor 6.4.
constexpr double kLinearHertz = 200.0 / 3, kKneeHertz = 1000, kKneeMel = 15;
const double kLogStep = std::log(6.4) / 27;

double mel_of(MelScale scale, double hertz) {
  if (scale == MelScale::kHtk) return 2595 * std::log10(1 + hertz / 700);
  return hertz < kKneeHertz ? hertz / kLinearHertz
                            : kKneeMel + std::log(hertz / kKneeHertz) / kLogStep;
}

double hertz_of(MelScale scale, double mel) {
  if (scale == MelScale::kHtk) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel < kKneeMel ? mel * kLinearHertz : kKneeHertz * std::exp((mel - kKneeMel) * kLogStep);
}

// The triangle that rises from `left` to 1 at `middle` and falls to `right`.
MelBand triangle(double left, double middle, double right, double hertz_a_bin, int bins) {
  MelBand band;
  for (int bin = 0; bin < bins; ++bin) {
    const double hertz = bin * hertz_a_bin;
    const double weight =
        std::min((hertz - left) / (middle - left), (right - hertz) / (right - middle));
    if (weight <= 0) continue;
    if (band.weights.empty()) band.first = static_cast<size_t>(bin);
    band.weights.push_back(weight);
  }
  return band;
}

}  // namespace

std::vector<MelBand> mel_bands(const FrontEnd& front_end) {
  const double low = mel_of(front_end.mel_scale, front_end.hertz_min);
  const double high = mel_of(front_end.mel_scale, front_end.hertz_max);
  // Neighbours share their edges: a band ends where the next but one begins.
  std::vector<double> edges;
  edges.reserve(static_cast<size_t>(front_end.mels) + 2);
  for (int i = 0; i < front_end.mels + 2; ++i)
    edges.push_back(hertz_of(front_end.mel_scale, low + (high - low) * i / (front_end.mels + 1)));
  const double hertz_a_bin = static_cast<double>(front_end.rate) / front_end.fft;
  std::vector<MelBand> bands;
  for (size_t i = 0; i + 2 < edges.size(); ++i) {
    bands.push_back(
        triangle(edges[i], edges[i + 1], edges[i + 2], hertz_a_bin, front_end.fft / 2 + 1));
    if (front_end.mel_scale != MelScale::kSlaney) continue;
    for (double& weight : bands.back().weights) weight *= 2 / (edges[i + 2] - edges[i]);
  }
  return bands;
}

}  // namespace weir::media
