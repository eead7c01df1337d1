#include "kernels/rotation.h"

#include <array>
#include <bit>

#include "base/check.h"

namespace weir::kernels {

namespace {

constexpr std::array<int32_t, 6> kPaleyOrders = {12, 20, 28, 36, 44, 60};

// 1 where x is a square modulo the prime q, -1 where it is none, 0 where it is 0.
float quadratic_character(int32_t x, int32_t q) {
  const int32_t wanted = ((x % q) + q) % q;
  if (wanted == 0) return 0;
  for (int32_t i = 1; i < q; ++i)
    if (i * i % q == wanted) return 1;
  return -1;
}

// Order q + 1 for a prime q = 3 mod 4: I + S, S = [0 1; -1 Q].
std::vector<float> paley_one(int32_t q) {
  const int32_t n = q + 1;
  std::vector<float> h(static_cast<size_t>(n * n));
  for (int32_t i = 0; i < n; ++i)
    for (int32_t j = 0; j < n; ++j) {
      const float s = i == j ? 0 : i == 0 ? 1 : j == 0 ? -1 : quadratic_character(i - j, q);
      h[static_cast<size_t>(i * n + j)] = s + (i == j ? 1.0f : 0.0f);
    }
  return h;
}

// Order 2 (q + 1) for a prime q = 1 mod 4: C (x) [1 1; 1 -1] + I (x) [1 -1; -1 -1], C = [0 1; 1 Q].
std::vector<float> paley_two(int32_t q) {
  const int32_t n = 2 * (q + 1);
  std::vector<float> h(static_cast<size_t>(n * n));
  for (int32_t i = 0; i < n; ++i)
    for (int32_t j = 0; j < n; ++j) {
      const int32_t a = i / 2, b = j / 2;
      const bool last = i % 2 == 1 && j % 2 == 1;
      const float c = a == b ? 0 : a == 0 || b == 0 ? 1 : quadratic_character(a - b, q);
      const float diagonal = i % 2 == 0 && j % 2 == 0 ? 1.0f : -1.0f;
      h[static_cast<size_t>(i * n + j)] = a == b ? diagonal : last ? -c : c;
    }
  return h;
}

// The finaliser of splitmix64 (Steele et al. 2014): bits of a number that look unrelated to it.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

std::vector<float> paley_matrix(int32_t order) {
  const bool one = order == 12 || order == 20 || order == 44 || order == 60;
  CHECK(one || order == 28 || order == 36);
  return one ? paley_one(order - 1) : paley_two(order / 2 - 1);
}

HeadRotation::HeadRotation(int32_t dim) : dim_(dim) {
  CHECK(dim >= 1 && dim <= kCodedDimMax);
  width_ = static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(dim)));
  for (const int32_t order : kPaleyOrders) {
    if (width_ == dim || dim % order != 0 ||
        !std::has_single_bit(static_cast<uint32_t>(dim / order)))
      continue;
    order_ = order;
    width_ = dim / order;
    matrix_ = paley_matrix(order);
    break;
  }
  for (int32_t i = 0; i < dim; ++i)
    signs_.push_back((mixed(static_cast<uint64_t>(i)) & 1) != 0 ? -1.0f : 1.0f);
}

}  // namespace weir::kernels
