// The layouts of blocks are those of reference ggml (ggml-common.h); values are d, m: float16.
#include "model/rows/gguf_rows.h"

#include <cstring>

#include "base/dtype.h"

namespace weir::model {

namespace {

using kernels::ByteScale;
using kernels::Grid;
using kernels::QuantShape;
using kernels::RowNumbers;
using kernels::ScaleForm;
using Type = card::BlockFormat::Type;

const uint8_t* bytes_at(const std::byte* p) { return reinterpret_cast<const uint8_t*>(p); }

float half_at(const uint8_t* p) {
  uint16_t bits = 0;
  std::memcpy(&bits, p, sizeof bits);
  return half_to_float(bits);
}

void copy_half(const uint8_t* p, uint8_t* halves, int32_t i) { std::memcpy(halves + 2 * i, p, 2); }

uint32_t word_at(const uint8_t* p) {
  uint32_t word = 0;
  std::memcpy(&word, p, sizeof word);
  return word;
}

// Low nibbles, then high ones.
void nibbles(const uint8_t* __restrict p, int32_t bytes, uint8_t* __restrict codes) {
  for (int32_t j = 0; j < bytes; ++j) {
    codes[j] = p[j] & 15;
    codes[bytes + j] = p[j] >> 4;
  }
}

// Of each of 32 bytes the bits of `mask` from bit `shift` on, into codes from bit `to` on.
void add_bits(const uint8_t* __restrict p, int32_t shift, int32_t mask, int32_t to,
              uint8_t* __restrict codes) {
  for (int32_t j = 0; j < 32; ++j) codes[j] |= static_cast<uint8_t>((p[j] >> shift & mask) << to);
}

// A further bit of 32 codes, of weight 16: bit i is of number i.
void fifth_bits(uint32_t bits, uint8_t* codes) {
  for (int32_t eighth = 0; eighth < 4; ++eighth, bits >>= 8, codes += 8) {
    // Byte i of eight has bit i or none; then 1 or 0.
    const uint64_t apart = (bits & 0xff) * 0x0101010101010101 & 0x8040201008040201;
    const uint64_t ones = (apart + 0x7f7f7f7f7f7f7f7f) >> 7 & 0x0101010101010101;
    uint64_t eight;
    std::memcpy(&eight, codes, 8);
    eight |= ones << 4;
    std::memcpy(codes, &eight, 8);
  }
}

// Signed bytes; with 128 added they count from 0.
void signed_bytes(const uint8_t* __restrict p, int32_t count, uint8_t* __restrict codes) {
  for (int32_t j = 0; j < count; ++j) codes[j] = p[j] ^ 0x80;
}

// ---- Blocks of 32: a float scale each, and a bias where it is not a fixed multiple of that ----

// Block `i` of a row; `p` is its first byte.
using Block = void (*)(const uint8_t* p, int32_t i, const RowNumbers& out);

void q4_0(const uint8_t* p, int32_t i, const RowNumbers& out) {
  copy_half(p, out.scales, i);
  nibbles(p + 2, 16, out.codes + 32 * i);
}

void q4_1(const uint8_t* p, int32_t i, const RowNumbers& out) {
  copy_half(p, out.scales, i);
  copy_half(p + 2, out.biases, i);
  nibbles(p + 4, 16, out.codes + 32 * i);
}

void q5_0(const uint8_t* p, int32_t i, const RowNumbers& out) {
  copy_half(p, out.scales, i);
  nibbles(p + 6, 16, out.codes + 32 * i);
  fifth_bits(word_at(p + 2), out.codes + 32 * i);
}

void q5_1(const uint8_t* p, int32_t i, const RowNumbers& out) {
  copy_half(p, out.scales, i);
  copy_half(p + 2, out.biases, i);
  nibbles(p + 8, 16, out.codes + 32 * i);
  fifth_bits(word_at(p + 4), out.codes + 32 * i);
}

void q8_0(const uint8_t* p, int32_t i, const RowNumbers& out) {
  copy_half(p, out.scales, i);
  signed_bytes(p + 2, 32, out.codes + 32 * i);
}

void iq4_nl(const uint8_t* p, int32_t i, const RowNumbers& out) {
  copy_half(p, out.scales, i);
  nibbles(p + 2, 16, out.codes + 32 * i);
}

// ---- Blocks of 256: a byte a group, and floats of the block ----

// 16 runs of 16 numbers of two bits: of each 32 bytes, shifts of 0, 2, 4 and 6 give 32 numbers.
void pairs_of_bits(const uint8_t* p, uint8_t* codes) {
  std::memset(codes, 0, 256);
  for (int32_t run = 0; run < 8; ++run)
    add_bits(p + 32 * (run / 4), 2 * (run % 4), 3, 0, codes + 32 * run);
}

void q2_k(const uint8_t* p, int32_t i, const RowNumbers& out) {
  for (int32_t j = 0; j < 16; ++j) {
    out.group_scales[16 * i + j] = p[j] & 15;
    out.group_mins[16 * i + j] = p[j] >> 4;
  }
  pairs_of_bits(p + 16, out.codes + 256 * i);
  out.d[i] = half_at(p + 80);
  out.dmin[i] = half_at(p + 82);
}

void q3_k(const uint8_t* p, int32_t i, const RowNumbers& out) {
  uint8_t* const codes = out.codes + 256 * i;
  pairs_of_bits(p + 32, codes);
  // Of 32 numbers each; all take a bit of the same bytes.
  for (int32_t run = 0; run < 8; ++run) add_bits(p, run, 1, 2, codes + 32 * run);
  const uint8_t* const scales = p + 96;
  for (int32_t j = 0; j < 16; ++j) {
    const int32_t low = j < 8 ? scales[j] & 15 : scales[j - 8] >> 4;
    const int32_t high = scales[8 + j % 4] >> (2 * (j / 4)) & 3;
    out.group_scales[16 * i + j] = static_cast<uint8_t>((low | high << 4) - 32);
  }
  out.d[i] = half_at(p + 108);
}

// Scales and mins of six bits, eight of each in twelve bytes.
void six_bits(const uint8_t* p, uint8_t* scales, uint8_t* mins) {
  for (int32_t j = 0; j < 4; ++j) {
    scales[j] = p[j] & 63;
    mins[j] = p[j + 4] & 63;
    scales[j + 4] = static_cast<uint8_t>((p[j + 8] & 15) | (p[j] >> 6) << 4);
    mins[j + 4] = static_cast<uint8_t>(p[j + 8] >> 4 | (p[j + 4] >> 6) << 4);
  }
}

void q4_k(const uint8_t* p, int32_t i, const RowNumbers& out) {
  out.d[i] = half_at(p);
  out.dmin[i] = half_at(p + 2);
  six_bits(p + 4, out.group_scales + 8 * i, out.group_mins + 8 * i);
  for (int32_t run = 0; run < 4; ++run)
    nibbles(p + 16 + 32 * run, 32, out.codes + 256 * i + 64 * run);
}

void q5_k(const uint8_t* p, int32_t i, const RowNumbers& out) {
  out.d[i] = half_at(p);
  out.dmin[i] = half_at(p + 2);
  six_bits(p + 4, out.group_scales + 8 * i, out.group_mins + 8 * i);
  uint8_t* const codes = out.codes + 256 * i;
  for (int32_t run = 0; run < 4; ++run) nibbles(p + 48 + 32 * run, 32, codes + 64 * run);
  for (int32_t run = 0; run < 8; ++run) add_bits(p + 16, run, 1, 4, codes + 32 * run);
}

void q6_k(const uint8_t* p, int32_t i, const RowNumbers& out) {
  uint8_t* const codes = out.codes + 256 * i;
  for (int32_t half = 0; half < 2; ++half) {
    nibbles(p + 64 * half, 64, codes + 128 * half);
    for (int32_t run = 0; run < 4; ++run)
      add_bits(p + 128 + 32 * half, 2 * run, 3, 4, codes + 128 * half + 32 * run);
  }
  std::memcpy(out.group_scales + 16 * i, p + 192, 16);
  out.d[i] = half_at(p + 208);
}

void iq4_xs(const uint8_t* p, int32_t i, const RowNumbers& out) {
  out.d[i] = half_at(p);
  const int32_t high = p[2] | p[3] << 8;
  for (int32_t j = 0; j < 8; ++j) {
    const int32_t low = p[4 + j / 2] >> (4 * (j % 2)) & 15;
    out.group_scales[8 * i + j] = static_cast<uint8_t>((low | (high >> (2 * j) & 3) << 4) - 32);
    nibbles(p + 8 + 16 * j, 16, out.codes + 256 * i + 32 * j);
  }
}

// ---- FP4: a byte a group; e2m1 is half of what a code stands for ----

void mxfp4(const uint8_t* p, int32_t i, const RowNumbers& out) {
  out.group_scales[i] = p[0];
  nibbles(p + 1, 16, out.codes + 32 * i);
}

void nvfp4(const uint8_t* p, int32_t i, const RowNumbers& out) {
  for (int32_t j = 0; j < 4; ++j) {
    out.group_scales[4 * i + j] = p[j];
    nibbles(p + 4 + 8 * j, 8, out.codes + 64 * i + 16 * j);
  }
}

Block block_of(Type type) {
  switch (type) {
    case Type::kQ4_0:
      return q4_0;
    case Type::kQ4_1:
      return q4_1;
    case Type::kQ5_0:
      return q5_0;
    case Type::kQ5_1:
      return q5_1;
    case Type::kQ8_0:
      return q8_0;
    case Type::kQ2_K:
      return q2_k;
    case Type::kQ3_K:
      return q3_k;
    case Type::kQ4_K:
      return q4_k;
    case Type::kQ5_K:
      return q5_k;
    case Type::kQ6_K:
      return q6_k;
    case Type::kIq4Nl:
      return iq4_nl;
    case Type::kIq4Xs:
      return iq4_xs;
    case Type::kMxfp4:
      return mxfp4;
    case Type::kNvfp4:
      return nvfp4;
  }
  return nullptr;
}

constexpr bool is_fp4(Type type) { return type == Type::kMxfp4 || type == Type::kNvfp4; }

QuantShape shape_of(Type type, int32_t n, int32_t k) {
  QuantShape s = {.n = n, .k = k, .group = 32, .bits = 4};
  s.scale_type = kernels::FloatType::kF16;
  const auto two_levels = [&](ByteScale scale, bool mins, int32_t offset) {
    s.scales = ScaleForm::kTwoLevel;
    s.byte_scale = scale;
    s.mins = mins;
    s.offset = offset;
  };
  const auto only_scales = [&](int32_t bits, int32_t offset) {
    s.bits = bits;
    s.scales = ScaleForm::kScales;
    s.offset = offset;
  };
  switch (type) {
    case Type::kQ4_0:
      only_scales(4, 8);
      break;
    case Type::kQ4_1:
      break;
    case Type::kQ5_0:
      only_scales(5, 16);
      break;
    case Type::kQ5_1:
      s.bits = 5;
      break;
    case Type::kQ8_0:
      only_scales(8, 128);
      break;
    case Type::kQ2_K:
      s.bits = 2, s.group = 16;
      two_levels(ByteScale::kUnsigned, true, 0);
      break;
    case Type::kQ3_K:
      s.bits = 3, s.group = 16;
      two_levels(ByteScale::kSigned, false, 4);
      break;
    case Type::kQ4_K:
      two_levels(ByteScale::kUnsigned, true, 0);
      break;
    case Type::kQ5_K:
      s.bits = 5;
      two_levels(ByteScale::kUnsigned, true, 0);
      break;
    case Type::kQ6_K:
      s.bits = 6, s.group = 16;
      two_levels(ByteScale::kSigned, false, 32);
      break;
    case Type::kIq4Nl:
      s.grid = Grid::kIq4;
      only_scales(4, 0);
      break;
    case Type::kIq4Xs:
      s.grid = Grid::kIq4;
      two_levels(ByteScale::kSigned, false, 0);
      break;
    case Type::kMxfp4:
      s.grid = Grid::kE2m1;
      two_levels(ByteScale::kE8m0, false, 0);
      break;
    case Type::kNvfp4:
      s.grid = Grid::kE2m1, s.group = 16;
      two_levels(ByteScale::kE4m3, false, 0);
      break;
  }
  return s;
}

}  // namespace

GgufRows::GgufRows(const card::BlockFormat& format, int32_t n, int32_t k, bool scaled)
    : RowSource(std::string(format.name),
                std::to_string(n) + "x" + std::to_string(k) + (scaled ? " scaled" : ""),
                shape_of(format.type, n, k)),
      format_(format),
      k_(k),
      scaled_(scaled) {}

void GgufRows::rows(const Bases& bases, int64_t first, int32_t count, RowNumbers* out) const {
  const Block block = block_of(format_.type);
  const int32_t blocks = k_ / format_.numbers;
  const int64_t row_bytes = int64_t{blocks} * format_.bytes;
  float factor = 1;
  if (scaled_) std::memcpy(&factor, bases[kScale], sizeof factor);
  for (int32_t row = 0; row < count; ++row) {
    const uint8_t* const p = bytes_at(bases[kRows]) + (first + row) * row_bytes;
    for (int32_t i = 0; i < blocks; ++i) block(p + int64_t{i} * format_.bytes, i, out[row]);
    if (!is_fp4(format_.type)) continue;
    const int32_t floats = (k_ + kernels::kSuperGroup - 1) / kernels::kSuperGroup;
    for (int32_t i = 0; i < floats; ++i) out[row].d[i] = 0.5f * factor;
  }
}

}  // namespace weir::model
