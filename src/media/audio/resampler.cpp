#include "media/audio/resampler.h"

#include <soxr.h>

#include <array>
#include <utility>

#include "base/check.h"

namespace weir::media {

struct Resampler::State {
  int from = 0;
  int to = 0;
  int64_t taken = 0;
  int64_t given = 0;
  soxr_t soxr = nullptr;  // None where the rates are equal.

  ~State() { soxr_delete(soxr); }

  // What comes of `samples`, or of the end of them where there are none.
  void process(std::span<const float> samples, std::vector<float>& out) {
    std::array<float, 4096> block;
    for (;;) {
      size_t used = 0, made = 0;
      const soxr_error_t error =
          soxr_process(soxr, samples.empty() ? nullptr : samples.data(), samples.size(), &used,
                       block.data(), block.size(), &made);
      CHECK(error == nullptr);
      out.insert(out.end(), block.begin(), block.begin() + static_cast<int64_t>(made));
      given += static_cast<int64_t>(made);
      samples = samples.subspan(used);
      // The end gives blocks until one is not full; samples are done when they are all taken.
      if (used == 0 ? made < block.size() : samples.empty()) return;
    }
  }
};

Resampler::Resampler(std::unique_ptr<State> state) : state_(std::move(state)) {}
Resampler::Resampler(Resampler&&) noexcept = default;
Resampler& Resampler::operator=(Resampler&&) noexcept = default;
Resampler::~Resampler() = default;

Result<Resampler> Resampler::create(int from, int to) {
  CHECK(from > 0 && to > 0);
  auto state = std::make_unique<State>();
  state->from = from;
  state->to = to;
  if (from == to) return Resampler(std::move(state));
  const soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  const soxr_runtime_spec_t one_thread = soxr_runtime_spec(1);
  soxr_error_t error = nullptr;
  state->soxr = soxr_create(from, to, 1, &error, &io, &quality, &one_thread);
  if (state->soxr == nullptr) return fail(ErrorCode::kCapacity, "no memory to resample a sound");
  return Resampler(std::move(state));
}

void Resampler::add(std::span<const float> samples, std::vector<float>& out) {
  if (samples.empty()) return;
  state_->taken += static_cast<int64_t>(samples.size());
  if (state_->soxr != nullptr) return state_->process(samples, out);
  out.insert(out.end(), samples.begin(), samples.end());
}

void Resampler::finish(std::vector<float>& out) {
  if (state_->soxr == nullptr) return;
  state_->process({}, out);
  // libsoxr rounds the length to the nearest.
  const int64_t wanted = resampled_count(state_->taken, state_->from, state_->to);
  out.resize(out.size() + static_cast<size_t>(wanted) - static_cast<size_t>(state_->given));
}

int64_t resampled_count(int64_t count, int from, int to) { return (count * to + from - 1) / from; }

}  // namespace weir::media
