// One sequence whose keys and values are codes, with what they are decoded to in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <ostream>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "kernels/codebook.h"
#include "kernels/coded_layout.h"
#include "kernels/cpu_ops.h"
#include "kernels/rotation.h"

namespace weir::kernels {

inline uint8_t* line_of(std::vector<uint8_t>& bytes) {
  const auto at = reinterpret_cast<uintptr_t>(bytes.data());
  return bytes.data() + (64 - at % 64) % 64;
}

struct CodedShape {
  int32_t kv_heads = 1;
  int32_t group = 1;
  int32_t k_dim = 64;
  int32_t v_dim = 64;
  int32_t k_bits = 4;
  int32_t v_bits = 4;
  int32_t tokens = 100;
  int32_t window = 0;
  bool chunks = false;
  float softcap = 0;
  bool sinks = false;
  int32_t span_begin = 0, span_end = 0;
};

inline std::ostream& operator<<(std::ostream& out, const CodedShape& s) {
  return out << "kv_heads " << s.kv_heads << " group " << s.group << " dims " << s.k_dim << ", "
             << s.v_dim << " bits " << s.k_bits << ", " << s.v_bits << " tokens " << s.tokens
             << (s.chunks ? " chunks " : " window ") << s.window << " softcap " << s.softcap
             << " sinks " << s.sinks << " span " << s.span_begin << " to " << s.span_end;
}

class CodedSequence {
 public:
  // `common`: how large a part of all keys is the same.
  CodedSequence(const Ops& ops, const CodedShape& shape, uint32_t seed, float common = 0)
      : shape_(shape), k_rotation_(shape.k_dim), v_rotation_(shape.v_dim) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 1);
    const int32_t blocks = (shape.tokens + kPageTokens - 1) / kPageTokens;
    pages.resize(static_cast<size_t>(blocks));
    std::iota(pages.begin(), pages.end(), 0);
    std::ranges::shuffle(pages, random);
    hot_pages = pages;
    std::ranges::shuffle(hot_pages, random);
    lay_out(blocks);
    std::vector<float> k(static_cast<size_t>(shape.kv_heads * shape.k_dim));
    std::vector<float> v(static_cast<size_t>(shape.kv_heads * shape.v_dim)), same(k.size());
    for (float& x : same) x = common * normal(random);
    for (int32_t t = 0; t < blocks * kPageTokens; ++t) {
      for (size_t i = 0; i < k.size(); ++i) k[i] = normal(random) + same[i];
      for (float& x : v) x = normal(random);
      const auto block = static_cast<size_t>(t / kPageTokens);
      ops.store_keys(hot, hot_pages[block], t % kPageTokens, 0, shape.kv_heads, k.data());
      ops.store_values(hot, hot_pages[block], t % kPageTokens, 0, shape.kv_heads, v.data());
    }
    for (int32_t block = 0; block < blocks; ++block) encode(ops, block);
    q.resize(static_cast<size_t>(shape.tokens * shape.kv_heads * shape.group * shape.k_dim));
    for (float& x : q) x = normal(random);
    for (int32_t h = 0; h < shape.kv_heads * shape.group; ++h) sinks.push_back(normal(random));
  }

  void encode(const Ops& ops, int32_t block) {
    for (int32_t head = 0; head < shape_.kv_heads; ++head)
      coded_ops_for(ops.isa).encode_page(coded, pages[static_cast<size_t>(block)], hot,
                                         hot_pages[static_cast<size_t>(block)], head, scratch());
  }

  AttendArgs args(int32_t first, int32_t rows, int32_t kv_head, std::vector<float>& out) {
    const int32_t heads = shape_.kv_heads * shape_.group;
    AttendArgs a;
    a.q_stride = int64_t{heads} * shape_.k_dim;
    a.q = q.data() + first * a.q_stride + int64_t{kv_head} * shape_.group * shape_.k_dim;
    a.out_stride = int64_t{shape_.group} * shape_.v_dim;
    out.assign(static_cast<size_t>(rows * a.out_stride), -1.0f);
    a.out = out.data();
    a.rows = rows;
    a.first_position = first;
    a.pages = pages.data();
    a.kv_head = kv_head;
    a.group = shape_.group;
    a.scale = 1 / std::sqrt(static_cast<float>(shape_.k_dim));
    a.softcap = shape_.softcap;
    a.window = shape_.window;
    a.chunks = shape_.chunks;
    a.span_begin = shape_.span_begin;
    a.span_end = shape_.span_end;
    a.sinks = shape_.sinks ? sinks.data() + kv_head * shape_.group : nullptr;
    a.scratch = scratch();
    return a;
  }

  std::vector<float> attend(const Ops& ops, int32_t first, int32_t rows, int32_t kv_head) {
    return attend(coded_ops_for(ops.isa).attend, first, rows, kv_head);
  }
  std::vector<float> attend(decltype(CodedOps::attend) kernel, int32_t first, int32_t rows,
                            int32_t kv_head) {
    std::vector<float> out;
    kernel(coded, hot, hot_pages.data(), args(first, rows, kv_head, out));
    return out;
  }

  const uint8_t* head(int32_t block, int32_t kv_head) const {
    return coded_head(coded, pages[static_cast<size_t>(block)], kv_head);
  }

  std::vector<int32_t> pages, hot_pages;
  CodedPages coded;
  KvPages hot;
  std::vector<float> q, sinks;

 private:
  void lay_out(int32_t blocks) {
    coded = {.kv_heads = shape_.kv_heads,
             .k_dim = shape_.k_dim,
             .v_dim = shape_.v_dim,
             .k_bits = shape_.k_bits,
             .v_bits = shape_.v_bits,
             .k_rotation = k_rotation_.view(),
             .v_rotation = v_rotation_.view()};
    coded.head_bytes = coded_head_bytes(coded);
    coded.page_bytes = coded.head_bytes * shape_.kv_heads;
    code_bytes_.assign(static_cast<size_t>(blocks * coded.page_bytes + 64), 0xff);
    coded.base = line_of(code_bytes_);
    hot.kv_heads = shape_.kv_heads;
    hot.k_dim = shape_.k_dim;
    hot.v_dim = shape_.v_dim;
    hot.head_bytes = int64_t{shape_.k_dim + shape_.v_dim} * kPageTokens * 2;
    hot.page_bytes = hot.head_bytes * shape_.kv_heads;
    hot_bytes_.assign(static_cast<size_t>(blocks * hot.page_bytes + 64), 0xff);
    hot.base = line_of(hot_bytes_);
    scratch_.resize(kScratchBytes + 64);
  }
  void* scratch() { return line_of(scratch_); }

  CodedShape shape_;
  HeadRotation k_rotation_, v_rotation_;
  std::vector<uint8_t> code_bytes_, hot_bytes_, scratch_;
};

// What a code stands for, in units of its vector's scale.
inline double code_value(int32_t bits, int32_t code) {
  if (bits == 8) return (code - 127.5) / kUnit8;
  return twice_value(bits, code) / 2.0 / code_unit(bits);
}

inline double half_of(const uint8_t* at, int32_t index) {
  uint16_t half;
  std::memcpy(&half, at + 2 * index, 2);
  return half_to_float(half);
}

// Number i of token t's key, turned, as a page of one head is read.
inline double key_of(const CodedPages& c, const uint8_t* head, int32_t t, int32_t i) {
  const int32_t dims = 32 / c.k_bits, line = 2 * (i / dims) + t / 16;
  const uint8_t byte = head[line * 64 + t % 16 * 4 + i % 4];
  const int32_t code = c.k_bits == 8 ? byte : i % dims < 4 ? byte & 15 : byte >> 4;
  float mean_scale;
  std::memcpy(&mean_scale, head + mean_scale_at(c), 4);
  const auto mean = static_cast<int8_t>(head[means_at(c) + i]);
  return half_of(head + key_scales_at(c), t) * code_value(c.k_bits, code) + mean_scale * mean;
}

inline double value_of(const CodedPages& c, const uint8_t* head, int32_t t, int32_t i) {
  const uint8_t* const chunk = head + value_codes_at(c) + i / 16 * 64 * c.v_bits;
  const int32_t step = t / 4, at = i % 16 * 4 + t % 4;
  int32_t code;
  if (c.v_bits == 8) {
    code = static_cast<int8_t>(chunk[step * 64 + at]) + 128;
  } else if (c.v_bits == 4) {
    code = chunk[step / 2 * 64 + at] >> (step % 2 * 4) & 15;
  } else {
    code = (chunk[step / 4 * 64 + at] >> (step % 4 * 2) & 3) | (chunk[128 + at] >> step & 1) << 2;
  }
  return half_of(head + value_scales_at(c), t) * code_value(c.v_bits, code);
}

}  // namespace weir::kernels
