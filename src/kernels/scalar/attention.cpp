// Attention over KV pages, the reference: one query head after another, in the order of ops.h.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/dtype.h"
#include "kernels/isa.h"
#include "kernels/ops.h"

namespace weir::kernels::scalar {

namespace {

constexpr int32_t kBlockTokens = 256;
constexpr int32_t kLanes = 16;

uint8_t* head_of(const KvPages& kv, int32_t page, int32_t head) {
  return kv.base + page * kv.page_bytes + head * kv.head_bytes;
}

void put(const KvPages& kv, uint8_t* begin, int64_t index, float value) {
  if (kv.type == FloatType::kF32) {
    std::memcpy(begin + index * 4, &value, 4);
  } else {
    const uint16_t half = float_to_half(value);
    std::memcpy(begin + index * 2, &half, 2);
  }
}

float get(const KvPages& kv, const uint8_t* begin, int64_t index) {
  if (kv.type == FloatType::kF32) {
    float value;
    std::memcpy(&value, begin + index * 4, 4);
    return value;
  }
  uint16_t half;
  std::memcpy(&half, begin + index * 2, 2);
  return half_to_float(half);
}

// Where number d of the key in a page's slot lies, in elements from the head's first.
int64_t key_index(const KvPages& kv, int32_t slot, int32_t d) {
  return kv.values_in_keys ? int64_t{slot} * kv.k_dim + d : int64_t{d} * kPageTokens + slot;
}

void store_keys(const KvPages& kv, int32_t page, int32_t slot, int32_t first, int32_t heads,
                const float* k) {
  for (int32_t h = first; h < first + heads; ++h, k += kv.k_dim)
    for (int32_t d = 0; d < kv.k_dim; ++d)
      put(kv, head_of(kv, page, h), key_index(kv, slot, d), k[d]);
}

void store_values(const KvPages& kv, int32_t page, int32_t slot, int32_t first, int32_t heads,
                  const float* v) {
  const int64_t at = int64_t{kv.k_dim} * kPageTokens + int64_t{slot} * kv.v_dim;
  for (int32_t h = first; h < first + heads; ++h, v += kv.v_dim)
    for (int32_t d = 0; d < kv.v_dim; ++d) put(kv, head_of(kv, page, h), at + d, v[d]);
}

// Number d of key j, and of its value.
float key_number(const KvPages& kv, const AttendArgs& args, int32_t j, int32_t d) {
  if (args.keys != nullptr) return get(kv, static_cast<const uint8_t*>(args.keys[j]), d);
  const uint8_t* head = head_of(kv, args.pages[j / kPageTokens], args.kv_head);
  return get(kv, head, key_index(kv, j % kPageTokens, d));
}
float value_number(const KvPages& kv, const AttendArgs& args, int32_t j, int32_t d) {
  if (kv.values_in_keys) return key_number(kv, args, j, d);
  const uint8_t* head = head_of(kv, args.pages[j / kPageTokens], args.kv_head);
  return get(kv, head, int64_t{kv.k_dim} * kPageTokens + int64_t{j % kPageTokens} * kv.v_dim + d);
}

// What a query head remembers from block to block; its output so far lies in `out`, not divided.
struct Running {
  float max = -std::numeric_limits<float>::infinity();
  float sum[kLanes] = {};
};

// Tokens [begin, end) of one block.
void attend_block(const KvPages& kv, const AttendArgs& args, const float* q, int32_t begin,
                  int32_t end, Running& running, float* out) {
  float score[kBlockTokens];
  float max = running.max;
  for (int32_t j = begin; j < end; ++j) {
    float dot = 0;
    for (int32_t d = 0; d < kv.k_dim; ++d) dot += q[d] * key_number(kv, args, j, d);
    float s = args.scale * dot;
    if (args.softcap > 0) s = args.softcap * std::tanh(s / args.softcap);
    score[j - begin] = s;
    max = std::max(max, s);
  }
  const float factor = std::exp(running.max - max);
  running.max = max;
  for (float& lane : running.sum) lane *= factor;
  for (int32_t d = 0; d < kv.v_dim; ++d) out[d] *= factor;
  for (int32_t j = begin; j < end; ++j) {
    const float p = std::exp(score[j - begin] - max);
    running.sum[j % kLanes] += p;
    for (int32_t d = 0; d < kv.v_dim; ++d) out[d] += p * value_number(kv, args, j, d);
  }
}

void attend(const KvPages& kv, const AttendArgs& args) {
  for (int32_t r = 0; r < args.rows; ++r) {
    const int32_t position = args.first_position + r;
    int32_t end = position + 1;
    const int32_t window = args.chunks ? position % args.window + 1 : args.window;
    int32_t begin = window > 0 ? std::max(0, end - window) : 0;
    if (position >= args.span_begin && position < args.span_end) {
      begin = std::min(begin, args.span_begin);
      end = args.span_end;
    }
    begin = std::max(begin, args.first_key);
    for (int32_t h = 0; h < args.group; ++h) {
      const float* q = args.q + r * args.q_stride + int64_t{h} * kv.k_dim;
      float* out = args.out + r * args.out_stride + int64_t{h} * kv.v_dim;
      std::fill(out, out + kv.v_dim, 0.0f);
      Running running;
      for (int32_t j = begin; j < end;) {
        const int32_t block_end = std::min(end, (j / kBlockTokens + 1) * kBlockTokens);
        attend_block(kv, args, q, j, block_end, running, out);
        j = block_end;
      }
      for (int32_t width = kLanes / 2; width > 0; width /= 2)
        for (int32_t i = 0; i < width; ++i) running.sum[i] += running.sum[i + width];
      float sum = running.sum[0];
      if (args.sinks) sum += std::exp(args.sinks[h] - running.max);
      for (int32_t d = 0; d < kv.v_dim; ++d) out[d] /= sum;
    }
  }
}

void index_scores(const IndexScores& index) {
  for (int32_t j = index.begin; j < index.end; ++j) {
    const KvPages kv = {.type = index.type};
    const uint8_t* keys = index.keys + index.pages[j / index.slots] * index.page_bytes;
    float score = 0;
    for (int32_t h = 0; h < index.heads; ++h) {
      float dot = 0;
      for (int32_t d = 0; d < index.dim; ++d)
        dot +=
            index.q[h * index.dim + d] * get(kv, keys, int64_t{d} * index.slots + j % index.slots);
      score += index.weights[h] * std::max(dot, 0.0f);
    }
    index.scores[j - index.begin] = score;
  }
}

}  // namespace

void fill_attention(Ops& ops) {
  ops.store_keys = store_keys;
  ops.store_values = store_values;
  ops.attend = attend;
  ops.index_scores = index_scores;
}

}  // namespace weir::kernels::scalar
