#include "media/features/spectrum.h"

// kissfft.hh uses what it does not include.
#include <cmath>
#include <complex>
#include <cstddef>
#include <kissfft/kissfft.hh>
#include <vector>

#include "base/check.h"

namespace weir::media {

struct Spectrum::State {
  int size = 0;
  kissfft<double> transform;
  std::vector<std::complex<double>> values;

  explicit State(int points)
      : size(points),
        transform(static_cast<size_t>(points) / 2, false),
        values(static_cast<size_t>(points) / 2) {}
};

bool Spectrum::computes(int size) {
  if (size < 2 || size % 2 != 0) return false;
  int rest = size / 2;
  for (const int factor : {2, 3, 5})
    while (rest % factor == 0) rest /= factor;
  return rest == 1;
}

Spectrum::Spectrum(int size) : state_(std::make_unique<State>(size)) { CHECK(computes(size)); }
Spectrum::~Spectrum() = default;

int Spectrum::bins() const { return state_->size / 2 + 1; }

void Spectrum::powers(std::span<const double> frame, std::span<double> powers) {
  CHECK(frame.size() == static_cast<size_t>(state_->size));
  CHECK(powers.size() == static_cast<size_t>(bins()));
  std::vector<std::complex<double>>& values = state_->values;
  state_->transform.transform_real(frame.data(), values.data());
  // The first and the last frequency have no imaginary part; the last one's number lies there.
  powers.front() = values[0].real() * values[0].real();
  powers.back() = values[0].imag() * values[0].imag();
  for (size_t k = 1; k < values.size(); ++k)
    powers[k] = values[k].real() * values[k].real() + values[k].imag() * values[k].imag();
}

}  // namespace weir::media
