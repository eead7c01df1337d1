#include "kernels/repack.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/dtype.h"

namespace weir::kernels {
namespace {

int32_t scale_bytes(FloatType type) { return type == FloatType::kF32 ? 4 : 2; }

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

}  // namespace

QuantMatrix matrix_of(const QuantShape& held) {
  return {.n = held.n,
          .k = held.k,
          .group = held.group,
          .bits = held.bits,
          .scale_type = held.scale_type};
}

void pack_block(const QuantShape& held, const RowNumbers* rows, int32_t count, uint8_t* words,
                uint8_t* scales) {
  CHECK(held.scales == ScaleForm::kPairs && held.scale_type == FloatType::kF32);
  CHECK(count <= kBlockRows && held.k % held.group == 0);
  const int32_t out_bytes = held.bits * kBlockRows;  // Of 8 elements of 16 rows: 1 or 2 lines.
  for (int32_t first = 0; first < held.k; first += 8, words += out_bytes) {
    if (count < kBlockRows) std::memset(words, 0, static_cast<size_t>(out_bytes));
    for (int32_t row = 0; row < count; ++row) {
      uint64_t eight = 0;
      std::memcpy(&eight, rows[row].codes + first, 8);
      if (held.bits == 4) {
        const uint32_t word = pack4<8>(eight);
        std::memcpy(words + 4 * row, &word, 4);
      } else {
        const std::array<uint32_t, 2> pair = pack8<8>(eight);
        std::memcpy(words + 4 * row, &pair[0], 4);
        std::memcpy(words + 64 + 4 * row, &pair[1], 4);
      }
    }
  }
  for (int32_t g = 0; g < held.k / held.group; ++g) {
    std::array<float, 2 * kBlockRows> lines{};
    for (int32_t row = 0; row < count; ++row) {
      lines[static_cast<size_t>(row)] = rows[row].scales[g];
      lines[static_cast<size_t>(kBlockRows + row)] = rows[row].biases[g];
    }
    std::memcpy(scales, lines.data(), sizeof lines);
    scales += sizeof lines;
  }
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
  return blocks * kBlockRows * (k / group) * 2 * scale_bytes(scale_type);
}

NextWeights next_weights(const QuantMatrix& w, int32_t begin, int32_t end) {
  // Of one column.
  const int64_t words = int64_t{w.k} * w.bits / 8;
  const int64_t scales = int64_t{2} * (w.k / w.group) * (w.scale_type == FloatType::kF32 ? 4 : 2);
  return {.words = w.words + begin * words,
          .scales = w.scales + begin * scales,
          .word_bytes = (end - begin) * words,
          .scale_bytes = (end - begin) * scales};
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
