#include "kernels/repack.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/dtype.h"
#include "kernels/float8_layout.h"
#include "kernels/quant_layout.h"

namespace weir::kernels {
namespace {

// Eight elements of a row in the container's words, 4-bit: the LSB-first stream itself, whose low
// nibbles are elements 0 2 4 6. `eight` holds 8 * bits bits.
template <int kBits>
uint32_t pack4(uint64_t eight) {
  if constexpr (kBits == 4) return static_cast<uint32_t>(eight);
  uint32_t word = 0;
  for (int i = 0; i < 8; ++i) {
    const uint64_t element = eight >> (kBits * i) & ((1u << kBits) - 1);
    word |= static_cast<uint32_t>(element) << (4 * i);
  }
  return word;
}

// 8-bit: first word elements 0 2 4 6, second 1 3 5 7.
template <int kBits>
std::array<uint32_t, 2> pack8(uint64_t eight) {
  std::array<uint32_t, 2> words{};
  for (int i = 0; i < 8; ++i) {
    const uint64_t element = eight >> (kBits * i) & ((1u << kBits) - 1);
    words[static_cast<size_t>(i % 2)] |= static_cast<uint32_t>(element) << (8 * (i / 2));
  }
  return words;
}

template <int kBits>
void pack_words(const StoredQuant& stored, int32_t block, uint8_t* words) {
  constexpr int kContainer = kBits <= 4 ? 4 : 8;
  const int64_t row_bytes = int64_t{stored.k} * kBits / 8;
  const int32_t rows = std::min(kBlockRows, stored.n - block * kBlockRows);
  const uint8_t* source = stored.words + int64_t{block} * kBlockRows * row_bytes;
  uint8_t* out = words + int64_t{block} * kBlockRows * stored.k * kContainer / 8;
  constexpr int kOutBytes = kContainer * kBlockRows;  // Of 8 elements of 16 rows: 1 or 2 lines.
  for (int32_t eighth = 0; eighth < stored.k / 8; ++eighth, out += kOutBytes) {
    if (rows < kBlockRows) std::memset(out, 0, kOutBytes);
    for (int32_t row = 0; row < rows; ++row) {
      uint64_t eight = 0;
      std::memcpy(&eight, source + row * row_bytes + int64_t{eighth} * kBits, kBits);
      if constexpr (kContainer == 4) {
        const uint32_t word = pack4<kBits>(eight);
        std::memcpy(out + 4 * row, &word, 4);
      } else {
        const std::array<uint32_t, 2> pair = pack8<kBits>(eight);
        std::memcpy(out + 4 * row, &pair[0], 4);
        std::memcpy(out + 64 + 4 * row, &pair[1], 4);
      }
    }
  }
}

// [16 rows][groups] to [groups][16], the lines of scales and biases alternating.
template <class Element>
void pack_scales(const StoredQuant& stored, int32_t block, uint8_t* scales) {
  const int32_t groups = stored.k / stored.group;
  const int32_t rows = std::min(kBlockRows, stored.n - block * kBlockRows);
  const int64_t first = int64_t{block} * kBlockRows * groups;
  uint8_t* out = scales + first * 2 * int64_t{sizeof(Element)};
  const std::array<const uint8_t*, 2> sources = {stored.scales, stored.biases};
  for (int32_t g = 0; g < groups; ++g) {
    for (const uint8_t* source : sources) {
      std::array<Element, kBlockRows> line{};
      for (int32_t row = 0; row < rows; ++row) {
        const int64_t at = first + int64_t{row} * groups + g;
        std::memcpy(&line[static_cast<size_t>(row)], source + at * int64_t{sizeof(Element)},
                    sizeof(Element));
      }
      std::memcpy(out, line.data(), sizeof line);
      out += sizeof line;
    }
  }
}

float scale_at(const StoredQuant& stored, const uint8_t* scales, int64_t index) {
  if (stored.scale_type == FloatType::kF32) {
    float value;
    std::memcpy(&value, scales + 4 * index, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, scales + 2 * index, 2);
  return stored.scale_type == FloatType::kF16 ? half_to_float(bits) : bf16_to_float(bits);
}

// 32 codes of a row: 4 bytes in each of the step's lines (quant_layout.h).
template <int kBits>
void pack_step(const uint8_t* codes, uint8_t* out) {
  // Loops over pairs are such as compilers make vectors of.
  if constexpr (kBits == 4) {
    std::array<uint8_t, kPackStep / 2> pairs;
    for (size_t i = 0; i < pairs.size(); ++i) {
      uint16_t two;
      std::memcpy(&two, codes + 2 * i, 2);
      pairs[i] = static_cast<uint8_t>(two | two >> 4);
    }
    for (size_t line = 0; line < kBits; ++line) std::memcpy(out + 64 * line, &pairs[4 * line], 4);
    return;
  }
  std::array<uint8_t, kPackStep / 2> evens, odds;
  for (size_t i = 0; i < evens.size(); ++i) {
    uint16_t two;
    std::memcpy(&two, codes + 2 * i, 2);
    evens[i] = static_cast<uint8_t>(two);
    odds[i] = static_cast<uint8_t>(two >> 8);
  }
  std::array<uint32_t, kBits> lines{};
  for (uint32_t e = 0; e < 4; ++e) {
    uint32_t even, odd;
    std::memcpy(&even, &evens[4 * e], 4);
    std::memcpy(&odd, &odds[4 * e], 4);
    // Bits [shift, shift + 2) of the codes, and bit `shift`.
    [[maybe_unused]] const auto two = [&](uint32_t line, int shift) {
      constexpr uint32_t kMask = 0x03030303;
      lines[line + e / 2] |= (even >> shift & kMask) << (2 * (e % 2)) | (odd >> shift & kMask)
                                                                            << (2 * (e % 2) + 4);
    };
    [[maybe_unused]] const auto one = [&](uint32_t line, int shift) {
      constexpr uint32_t kMask = 0x01010101;
      lines[line] |= (even >> shift & kMask) << e | (odd >> shift & kMask) << (4 + e);
    };
    if constexpr (kBits == 8) {
      lines[2 * e] = even;
      lines[2 * e + 1] = odd;
    } else if constexpr (kBits <= 3) {
      two(0, 0);
      if constexpr (kBits == 3) one(2, 2);
    } else {
      constexpr uint32_t kMask = 0x0f0f0f0f;
      lines[e] = (even & kMask) | (odd & kMask) << 4;
      if constexpr (kBits == 5) one(4, 4);
      if constexpr (kBits == 6) two(4, 4);
    }
  }
  for (size_t line = 0; line < kBits; ++line) std::memcpy(out + 64 * line, &lines[line], 4);
}

template <int kBits>
void pack_codes(const uint8_t* codes, int32_t k, uint8_t* out) {
  for (int32_t i = 0; i < k; i += kPackStep, out += 64 * kBits) pack_step<kBits>(codes + i, out);
}

void pack_codes(int32_t bits, const uint8_t* codes, int32_t k, uint8_t* out) {
  switch (bits) {
    case 2:
      return pack_codes<2>(codes, k, out);
    case 3:
      return pack_codes<3>(codes, k, out);
    case 4:
      return pack_codes<4>(codes, k, out);
    case 5:
      return pack_codes<5>(codes, k, out);
    case 6:
      return pack_codes<6>(codes, k, out);
    case 8:
      return pack_codes<8>(codes, k, out);
    default:
      CHECK(!"a container has 2, 3, 4, 5, 6 or 8 bits");
  }
}

// Numbers of a row, one after another, to places that are `step` bytes apart.
template <class Number>
void spread(const uint8_t* numbers, int32_t count, uint8_t* to, int64_t step) {
  for (int32_t i = 0; i < count; ++i, to += step)
    std::memcpy(to, numbers + i * int64_t{sizeof(Number)}, sizeof(Number));
}

void spread_floats(FloatType type, const uint8_t* numbers, int32_t count, uint8_t* to,
                   int64_t step) {
  if (type == FloatType::kF32)
    spread<float>(numbers, count, to, step);
  else
    spread<uint16_t>(numbers, count, to, step);
}

// Writes lane `lane` of a block's scales.
void pack_two_levels(const QuantMatrix& w, int32_t lane, const RowNumbers& numbers,
                     uint8_t* scales) {
  const int32_t groups = w.k / w.group, of_run = kSuperGroup / w.group;
  const int64_t step = group_scale_bytes(w);
  for (int32_t first = 0; first < groups; first += of_run) {
    uint8_t* const head = scales + run_head_at(w, first);
    const int32_t run = first / of_run, count = std::min(of_run, groups - first);
    put_number(FloatType::kF32, numbers.d[run], head, lane);
    if (w.mins) put_number(FloatType::kF32, numbers.dmin[run], head, kBlockRows + lane);
    uint8_t* const to = scales + group_scales_at(w, first) + lane;
    spread<uint8_t>(numbers.group_scales + first, count, to, step);
    if (w.mins) spread<uint8_t>(numbers.group_mins + first, count, to + kBlockRows, step);
  }
}

void pack_scales(const QuantMatrix& w, int32_t lane, const RowNumbers& numbers, uint8_t* scales) {
  if (w.form == ScaleForm::kTwoLevel) return pack_two_levels(w, lane, numbers, scales);
  const int32_t groups = w.k / w.group, bytes = float_type_bytes(w.scale_type);
  const int64_t step = group_scale_bytes(w);
  uint8_t* const second = scales + kBlockRows * bytes;  // What follows the scales of a group.
  spread_floats(w.scale_type, numbers.scales, groups, scales + lane * bytes, step);
  if (w.form == ScaleForm::kPairs)
    spread_floats(w.scale_type, numbers.biases, groups, second + lane * bytes, step);
  if (w.form == ScaleForm::kZeros) spread<uint8_t>(numbers.zeros, groups, second + lane, step);
}

}  // namespace

QuantMatrix matrix_of(const QuantShape& held) {
  return {.n = held.n,
          .k = held.k,
          .group = held.group,
          .bits = held.bits,
          .scale_type = held.scale_type,
          .grid = held.grid,
          .form = held.scales,
          .byte_scale = held.byte_scale,
          .mins = held.mins,
          .offset = held.offset};
}

int64_t packed_word_bytes(const QuantMatrix& w) {
  return (int64_t{w.n} + kBlockRows - 1) / kBlockRows * block_word_bytes(w);
}
int64_t packed_scale_bytes(const QuantMatrix& w) {
  return (int64_t{w.n} + kBlockRows - 1) / kBlockRows * block_scale_bytes(w);
}

void pack_block(const QuantShape& held, const RowNumbers* rows, int32_t count, uint8_t* words,
                uint8_t* scales) {
  CHECK(count <= kBlockRows && held.k % held.group == 0 && held.k % kPackStep == 0);
  const QuantMatrix w = matrix_of(held);
  if (count < kBlockRows) {
    std::memset(words, 0, static_cast<size_t>(block_word_bytes(w)));
    std::memset(scales, 0, static_cast<size_t>(block_scale_bytes(w)));
  }
  for (int32_t lane = 0; lane < count; ++lane) {
    pack_codes(w.bits, rows[lane].codes, w.k, words + 4 * lane);
    pack_scales(w, lane, rows[lane], scales);
  }
}

int64_t packed_word_bytes(const Float8Matrix& w) {
  return (int64_t{w.n} + kBlockRows - 1) / kBlockRows * block_number_bytes(w);
}
int64_t packed_scale_bytes(const Float8Matrix& w) {
  return (int64_t{w.n} + kBlockRows - 1) / kBlockRows * block_scales(w) * int64_t{sizeof(float)};
}

void pack_float8_block(const Float8Matrix& w, const uint8_t* rows, const float* row_scales,
                       int32_t count, uint8_t* numbers, float* scales) {
  CHECK(count <= kBlockRows && w.k % kPackStep == 0 && w.scale_columns % kPackStep == 0);
  // A stretch of each row at a time: 16 rows of a length of 4,096 fall into one set of the cache.
  constexpr int32_t kStretch = 64;
  if (count < kBlockRows) std::memset(numbers, 0, static_cast<size_t>(block_number_bytes(w)));
  for (int32_t first = 0; first < w.k; first += kStretch) {
    const int32_t end = std::min(first + kStretch, w.k);
    for (int32_t lane = 0; lane < count; ++lane) {
      const uint8_t* row = rows + int64_t{lane} * w.k;
      for (int64_t i = first; i < end; ++i) numbers[i * kBlockRows + lane] = row[i];
    }
  }
  const int32_t of_row = scales_of_row(w), lanes = scale_lanes(w);
  if (count < lanes) std::fill_n(scales, block_scales(w), 0.0f);
  for (int32_t lane = 0; lane < std::min(count, lanes); ++lane)
    for (int32_t i = 0; i < of_row; ++i)
      scales[i * lanes + lane] = row_scales[int64_t{lane} * of_row + i];
}

void dequantise_turned(const StoredQuant& stored, float* out) {
  const int64_t row_bytes = int64_t{stored.k} * stored.bits / 8;
  const int64_t groups = stored.k / stored.group;
  for (int64_t row = 0; row < stored.n; ++row) {
    for (int32_t first = 0; first < stored.k; first += 8) {
      uint64_t eight = 0;
      std::memcpy(&eight, stored.words + row * row_bytes + int64_t{first} / 8 * stored.bits,
                  static_cast<size_t>(stored.bits));
      const int64_t group = row * groups + first / stored.group;
      const float scale = scale_at(stored, stored.scales, group);
      const float bias = scale_at(stored, stored.biases, group);
      for (int32_t i = 0; i < 8; ++i) {
        const uint64_t q = eight >> (stored.bits * i) & ((1u << stored.bits) - 1);
        out[(int64_t{first} + i) * stored.n + row] = std::fma(scale, static_cast<float>(q), bias);
      }
    }
  }
}

int32_t container_bits(int32_t bits) { return bits <= 4 ? 4 : 8; }

int64_t packed_word_bytes(int32_t n, int32_t k, int32_t container) {
  const int64_t blocks = (int64_t{n} + kBlockRows - 1) / kBlockRows;
  return blocks * kBlockRows * k * container / 8;
}

int64_t packed_scale_bytes(int32_t n, int32_t k, int32_t group, FloatType scale_type) {
  const int64_t blocks = (int64_t{n} + kBlockRows - 1) / kBlockRows;
  return blocks * kBlockRows * (k / group) * 2 * float_type_bytes(scale_type);
}

NextWeights next_weights(const QuantMatrix& w, int32_t begin, int32_t end) {
  // Of one column.
  const int64_t words = block_word_bytes(w) / kBlockRows;
  const int64_t scales = block_scale_bytes(w) / kBlockRows;
  return {.words = w.words + begin * words,
          .scales = w.scales + begin * scales,
          .word_bytes = (end - begin) * words,
          .scale_bytes = (end - begin) * scales};
}

NextWeights next_weights(const Float8Matrix& w, int32_t begin, int32_t end) {
  const int64_t first = begin / kBlockRows, blocks = (end + kBlockRows - 1) / kBlockRows - first;
  return {.words = w.numbers + first * block_number_bytes(w),
          .scales = reinterpret_cast<const uint8_t*>(w.scales + first * block_scales(w)),
          .word_bytes = blocks * block_number_bytes(w),
          .scale_bytes = blocks * block_scales(w) * int64_t{sizeof(float)}};
}

void repack_blocks(const StoredQuant& stored, int32_t begin, int32_t end, uint8_t* words,
                   uint8_t* scales) {
  CHECK(stored.k % stored.group == 0);
  for (int32_t block = begin; block < end; ++block) {
    switch (stored.bits) {
      case 2:
        pack_words<2>(stored, block, words);
        break;
      case 3:
        pack_words<3>(stored, block, words);
        break;
      case 4:
        pack_words<4>(stored, block, words);
        break;
      case 5:
        pack_words<5>(stored, block, words);
        break;
      case 6:
        pack_words<6>(stored, block, words);
        break;
      case 8:
        pack_words<8>(stored, block, words);
        break;
      default:
        CHECK(!"bits are 2, 3, 4, 5, 6 or 8");
    }
    if (stored.scale_type == FloatType::kF32)
      pack_scales<uint32_t>(stored, block, scales);
    else
      pack_scales<uint16_t>(stored, block, scales);
  }
}

}  // namespace weir::kernels
