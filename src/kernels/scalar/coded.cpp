// Keys and values as codes, the reference: one vector, one query head after another, in the order
// of coded_ops.h.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/dtype.h"
#include "kernels/codebook.h"
#include "kernels/coded_layout.h"
#include "kernels/coded_ops.h"

namespace weir::kernels::scalar {

namespace {

constexpr int32_t kBlockTokens = 256;
constexpr int32_t kLanes = 16;

float half_at(const uint8_t* halves, int64_t index) {
  uint16_t half;
  std::memcpy(&half, halves + 2 * index, 2);
  return half_to_float(half);
}

void put_half(uint8_t* halves, int64_t index, float value) {
  const uint16_t half = float_to_half(value);
  std::memcpy(halves + 2 * index, &half, 2);
}

// Lane i with i + 8, then i + 4, 2, 1.
float sum_of_lanes(float (&lanes)[kLanes]) {
  for (int32_t width = kLanes / 2; width > 0; width /= 2)
    for (int32_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  return lanes[0];
}

// --- Rotation.

void turn_width(float* x, int32_t width) {
  for (int32_t h = 1; h < width; h *= 2)
    for (int32_t i = 0; i < width; ++i)
      if ((i & h) == 0) {
        const float a = x[i], b = x[i + h];
        x[i] = a + b;
        x[i + h] = a - b;
      }
}

void turn_part(const Rotation& r, bool back, float* x) {
  for (int32_t a = 0; a < r.order; ++a) turn_width(x + a * r.width, r.width);
  const int32_t n = r.order * r.width;
  if (r.order > 1) {
    float from[kCodedDimMax];
    std::copy_n(x, n, from);
    for (int32_t a = 0; a < r.order; ++a)
      for (int32_t b = 0; b < r.width; ++b) {
        float sum = 0;
        for (int32_t c = 0; c < r.order; ++c)
          sum = std::fma(r.matrix[back ? c * r.order + a : a * r.order + c], from[c * r.width + b],
                         sum);
        x[a * r.width + b] = sum;
      }
  }
  const float factor = 1 / std::sqrt(static_cast<float>(n));
  for (int32_t i = 0; i < n; ++i) x[i] *= factor;
}

void rotate(const Rotation& r, bool back, int32_t heads, float* x) {
  for (int32_t h = 0; h < heads; ++h, x += r.dim) {
    if (!back)
      for (int32_t i = 0; i < r.dim; ++i) x[i] *= r.signs[i];
    turn_part(r, back, x);
    if (r.order * r.width < r.dim) {
      turn_part(r, back, x + r.dim - r.width);
      turn_part(r, back, x);
    }
    if (back)
      for (int32_t i = 0; i < r.dim; ++i) x[i] *= r.signs[i];
  }
}

// --- Codes.

// The code of u, of 3 or 4 bits.
int32_t code_of(int32_t bits, float u) {
  const int32_t levels = bits == 4 ? kCodeLevels4 : kCodeLevels3;
  const float* const thresholds = bits == 4 ? kThresholds4 : kThresholds3;
  int32_t magnitude = 0;
  while (magnitude < levels - 1 && std::abs(u) > thresholds[magnitude]) ++magnitude;
  return u < 0 ? levels - 1 - magnitude : levels + magnitude;
}

// Of 8 bits.
int32_t byte_code(float u) {
  const float x = u + kCodeMax8;
  return x > 0 ? static_cast<int32_t>(std::nearbyint(x)) : 0;
}

float value_of(int32_t bits, int32_t code) {
  if (bits == 8) return static_cast<float>(code) - kCodeMax8;
  return static_cast<float>(twice_value(bits, code)) / 2;
}

struct Sums {
  float uc = 0;  // <u, c>
  float cc = 0;  // <c, c>
};

// Codes of r [dim], and the scale that goes with them.
float encode(const std::vector<float>& r, int32_t bits, bool unbiased,
             std::vector<int32_t>& codes) {
  const auto dim = static_cast<float>(r.size());
  float squares = 0, most = 0;
  for (const float x : r) {
    squares = std::fma(x, x, squares);
    most = std::max(most, std::abs(x));
  }
  const auto quantise = [&](float factor) {
    Sums sums;
    for (size_t i = 0; i < r.size(); ++i) {
      float u = r[i] * factor;
      codes[i] = bits == 8 ? byte_code(u) : code_of(bits, u);
      const float c = value_of(bits, codes[i]);
      if (bits == 8) u = r[i];
      sums.uc = std::fma(u, c, sums.uc);
      sums.cc = std::fma(c, c, sums.cc);
    }
    return sums;
  };
  const bool finite = squares <= std::numeric_limits<float>::max();
  if (!finite || most < kTinyGroup) {
    quantise(0);
    return finite ? 0 : std::numeric_limits<float>::quiet_NaN();
  }
  const float unit = code_unit(bits);
  if (bits == 8) {
    const Sums sums = quantise(kCodeMax8 / most);
    return unbiased ? squares * unit / sums.uc : sums.uc * unit / sums.cc;
  }
  const float norm = std::sqrt(squares), root = std::sqrt(dim);
  const float inverse = root / norm;
  // Sums with u / q, as codes are chosen; <u, c> is q times that.
  float best = -1, best_step = 1;
  for (const float step : kSearch) {
    const float to_step = inverse / step;
    const Sums sums = quantise(to_step);
    const float gain = sums.uc * sums.uc * (step * step) / sums.cc;
    if (gain > best) {
      best = gain;
      best_step = step;
    }
  }
  const Sums sums = quantise(inverse / best_step);
  const float uc = sums.uc * best_step;
  return unbiased ? norm * root * unit / uc : norm / root * (uc * unit) / sums.cc;
}

void put_key_code(const CodedPages& c, uint8_t* head, int32_t t, int32_t i, int32_t code) {
  const int32_t dims = key_line_dims(c.k_bits);
  const int32_t line = 2 * (i / dims) + t / kHalfPage;
  uint8_t& byte = head[line * kCodedLine + t % kHalfPage * 4 + i % 4];
  if (c.k_bits == 8) {
    byte = static_cast<uint8_t>(code);
  } else {
    byte = static_cast<uint8_t>(i % dims < 4 ? code : byte | code << 4);
  }
}

int32_t key_code(const CodedPages& c, const uint8_t* head, int32_t t, int32_t i) {
  const int32_t dims = key_line_dims(c.k_bits);
  const int32_t line = 2 * (i / dims) + t / kHalfPage;
  const uint8_t byte = head[line * kCodedLine + t % kHalfPage * 4 + i % 4];
  if (c.k_bits == 8) return byte;
  return i % dims < 4 ? byte & 15 : byte >> 4;
}

// The chunk is zeros at first.
void put_value_code(const CodedPages& c, uint8_t* codes, int32_t t, int32_t i, int32_t code) {
  uint8_t* const chunk = codes + int64_t{i / kChunkDims} * kCodedLine * c.v_bits;
  const int32_t step = t / kStepTokens, at = i % kChunkDims * 4 + t % kStepTokens;
  const auto put = [&](int32_t line, int32_t bits) {
    chunk[line * kCodedLine + at] |= static_cast<uint8_t>(bits);
  };
  if (c.v_bits == 8) return put(step, code ^ 128);
  if (c.v_bits == 4) return put(step / 2, code << (step % 2 * 4));
  put(step / 4, (code & 3) << (step % 4 * 2));
  put(2, (code >> 2) << step);
}

int32_t value_code(const CodedPages& c, const uint8_t* codes, int32_t t, int32_t i) {
  const uint8_t* const chunk = codes + int64_t{i / kChunkDims} * kCodedLine * c.v_bits;
  const int32_t step = t / kStepTokens, at = i % kChunkDims * 4 + t % kStepTokens;
  const auto line = [&](int32_t n) { return int32_t{chunk[n * kCodedLine + at]}; };
  if (c.v_bits == 8) return line(step) ^ 128;
  if (c.v_bits == 4) return line(step / 2) >> (step % 2 * 4) & 15;
  return (line(step / 4) >> (step % 4 * 2) & 3) | (line(2) >> step & 1) << 2;
}

// A number as a signed byte, in units of 1 / inverse.
int8_t to_byte(float x, float inverse) {
  const float scaled = std::nearbyint(x * inverse);
  return static_cast<int8_t>(scaled > -127 ? std::min(scaled, 127.0f) : -127.0f);
}

// The keys of a page of numbers, turned, one after another; and its values.
std::vector<float> turned_keys(const CodedPages& to, const uint8_t* page) {
  std::vector<float> keys;
  for (int32_t t = 0; t < kPageTokens; ++t)
    for (int32_t i = 0; i < to.k_dim; ++i)
      keys.push_back(half_at(page, int64_t{i} * kPageTokens + t));
  rotate(to.k_rotation, /*back=*/false, kPageTokens, keys.data());
  return keys;
}
std::vector<float> turned_values(const CodedPages& to, const uint8_t* page) {
  std::vector<float> values;
  for (int64_t i = 0; i < int64_t{kPageTokens} * to.v_dim; ++i)
    values.push_back(half_at(page, int64_t{to.k_dim} * kPageTokens + i));
  rotate(to.v_rotation, /*back=*/false, kPageTokens, values.data());
  return values;
}

void encode_page(const CodedPages& to, int32_t page, const KvPages& hot, int32_t hot_page,
                 int32_t head, void*) {
  uint8_t* const out = coded_head(to, page, head);
  const uint8_t* const in = hot.base + hot_page * hot.page_bytes + head * hot.head_bytes;
  const std::vector<float> keys = turned_keys(to, in), values = turned_values(to, in);
  std::memset(out, 0, static_cast<size_t>(coded_head_bytes(to)));
  std::vector<float> mean(static_cast<size_t>(to.k_dim), 0.0f);
  float most = 0;
  for (int32_t i = 0; i < to.k_dim; ++i) {
    float lanes[kLanes] = {};
    for (int32_t t = 0; t < kPageTokens; ++t)
      lanes[t % kLanes] += keys[static_cast<size_t>(t * to.k_dim + i)];
    const float m = sum_of_lanes(lanes) * (1.0f / kPageTokens);
    mean[static_cast<size_t>(i)] = m;
    most = std::max(most, std::abs(m));
  }
  const float mean_scale = most < kTinyGroup ? 0 : most / 127;
  const float inverse = most < kTinyGroup ? 0 : 127 / most;
  std::memcpy(out + mean_scale_at(to), &mean_scale, 4);
  for (int32_t i = 0; i < to.k_dim; ++i) {
    const int8_t m = to_byte(mean[static_cast<size_t>(i)], inverse);
    out[means_at(to) + i] = static_cast<uint8_t>(m);
    mean[static_cast<size_t>(i)] = mean_scale * static_cast<float>(m);
  }
  std::vector<float> r(static_cast<size_t>(to.k_dim));
  std::vector<int32_t> codes(r.size());
  std::vector<float> v(static_cast<size_t>(to.v_dim));
  std::vector<int32_t> v_codes(v.size());
  for (int32_t t = 0; t < kPageTokens; ++t) {
    for (int32_t i = 0; i < to.k_dim; ++i)
      r[static_cast<size_t>(i)] =
          keys[static_cast<size_t>(t * to.k_dim + i)] - mean[static_cast<size_t>(i)];
    float key_scale = encode(r, to.k_bits, true, codes);
    for (int32_t i = 0; i < to.k_dim; ++i)
      put_key_code(to, out, t, i, codes[static_cast<size_t>(i)]);
    for (int32_t i = 0; i < to.v_dim; ++i)
      v[static_cast<size_t>(i)] = values[static_cast<size_t>(t * to.v_dim + i)];
    const float value_scale = encode(v, to.v_bits, false, v_codes);
    for (int32_t i = 0; i < to.v_dim; ++i)
      put_value_code(to, out + value_codes_at(to), t, i, v_codes[static_cast<size_t>(i)]);
    // So a value that is not finite spoils all that sees its token.
    if (std::isnan(value_scale)) key_scale = value_scale;
    put_half(out + key_scales_at(to), t, key_scale);
    put_half(out + value_scales_at(to), t, value_scale);
  }
}

// --- Attention.

// A query head, and, turned, as integers.
struct CodedQuery {
  const float* q = nullptr;
  std::vector<float> turned;
  std::vector<int32_t> high, low;  // low: of keys of 8 bits.
  int32_t high_sum = 0, low_sum = 0;
  float step = 0;
};

CodedQuery code_query(const CodedPages& coded, const float* q) {
  CodedQuery query;
  query.q = q;
  query.turned.assign(q, q + coded.k_dim);
  rotate(coded.k_rotation, /*back=*/false, 1, query.turned.data());
  float most = 0, spoilt = 0;
  for (const float x : query.turned) {
    most = std::max(most, std::abs(x));
    spoilt = std::fma(x, 0.0f, spoilt);
  }
  const bool wide = coded.k_bits == 8;
  const float levels = wide ? 127.0f * 128 : 127.0f;
  const float inverse = most < kTinyGroup ? 0 : levels / most;
  query.step = most / levels + spoilt;
  for (const float x : query.turned) {
    const float scaled = spoilt == 0 ? std::nearbyint(x * inverse) : 0;
    const auto b = static_cast<int32_t>(scaled);
    const int32_t high = wide ? (b + 64) >> 7 : b, low = wide ? b - high * 128 : 0;
    query.high.push_back(high);
    query.low.push_back(low);
    query.high_sum += high;
    query.low_sum += low;
  }
  return query;
}

// q . k for key `slot` of a page of codes.
float coded_score(const CodedPages& coded, const uint8_t* head, const CodedQuery& query,
                  int32_t slot) {
  int32_t high = 0, low = 0;
  float lanes[kLanes] = {};
  for (int32_t i = 0; i < coded.k_dim; ++i) {
    const int32_t code = key_code(coded, head, slot, i);
    const int32_t twice = coded.k_bits == 8 ? 2 * code - 255 : twice_value(coded.k_bits, code);
    high += twice * query.high[static_cast<size_t>(i)];
    low += twice * query.low[static_cast<size_t>(i)];
    const auto m = static_cast<float>(static_cast<int8_t>(head[means_at(coded) + i]));
    lanes[i % kLanes] = std::fma(query.turned[static_cast<size_t>(i)], m, lanes[i % kLanes]);
  }
  float mean_scale;
  std::memcpy(&mean_scale, head + mean_scale_at(coded), 4);
  const float common = sum_of_lanes(lanes) * mean_scale;
  const float dot = coded.k_bits == 8
                        ? std::fma(128.0f, static_cast<float>(high), static_cast<float>(low))
                        : static_cast<float>(high);
  const float unit = query.step / (2 * code_unit(coded.k_bits));
  return std::fma(dot * half_at(head + key_scales_at(coded), slot), unit, common);
}

// What a query head remembers from block to block.
struct CodedRunning {
  float max = -std::numeric_limits<float>::infinity();
  float sum[kLanes] = {};
  float shift = 0;             // Added to each number of `coded` at the end.
  std::vector<float> coded;    // The sums so far of values that are codes, turned,
  std::vector<float> numbers;  // and of those that are not.
};

// Tokens [begin, end) of a page of codes, whose weights are `p` [end - begin].
void add_coded_values(const CodedPages& coded, const uint8_t* head, const float* p, int32_t begin,
                      int32_t end, CodedRunning& running) {
  float w[kPageTokens] = {};
  float most = 0;
  for (int32_t t = begin; t < end; ++t) {
    w[t] = p[t - begin] * half_at(head + value_scales_at(coded), t);
    most = std::max(most, w[t]);
  }
  if (most < kTinyGroup) return;
  const float inverse = 255 / most;
  int32_t n[kPageTokens], total = 0;
  for (int32_t t = 0; t < kPageTokens; ++t) {
    n[t] = static_cast<int32_t>(std::nearbyint(w[t] * inverse));
    total += n[t];
  }
  const float f = most / (255 * code_unit(coded.v_bits));
  running.shift = std::fma(0.5f * f, static_cast<float>(total), running.shift);
  for (int32_t i = 0; i < coded.v_dim; ++i) {
    int32_t sum = 0;
    for (int32_t t = 0; t < kPageTokens; ++t) {
      const int32_t code = value_code(coded, head + value_codes_at(coded), t, i);
      const int32_t s = coded.v_bits == 8 ? code - 128 : (twice_value(coded.v_bits, code) - 1) / 2;
      sum += n[t] * s;
    }
    float& so_far = running.coded[static_cast<size_t>(i)];
    so_far = std::fma(static_cast<float>(sum), f, so_far);
  }
}

// One row of a call, and where its own page begins.
struct CodedRow {
  const CodedPages& coded;
  const KvPages& hot;
  const int32_t* hot_pages;
  const AttendArgs& args;
  int32_t own = 0;

  const uint8_t* coded_page(int32_t j) const {
    return coded_head(coded, args.pages[j / kPageTokens], args.kv_head);
  }
  const uint8_t* hot_page(int32_t j) const {
    return hot.base + hot_pages[j / kPageTokens] * hot.page_bytes + args.kv_head * hot.head_bytes;
  }
  // Whether it reads key j as codes: not its own block, nor the first.
  bool as_codes(int32_t j) const { return j >= kPageTokens && j < own; }
  float score(const CodedQuery& query, int32_t j) const {
    if (as_codes(j)) return coded_score(coded, coded_page(j), query, j % kPageTokens);
    float dot = 0;
    for (int32_t i = 0; i < coded.k_dim; ++i)
      dot = std::fma(query.q[i], half_at(hot_page(j), int64_t{i} * kPageTokens + j % kPageTokens),
                     dot);
    return dot;
  }
};

// Tokens [begin, end) of one block.
void attend_block(const CodedRow& row, const CodedQuery& query, int32_t begin, int32_t end,
                  CodedRunning& running) {
  const AttendArgs& args = row.args;
  float p[kBlockTokens];
  float max = running.max;
  for (int32_t j = begin; j < end; ++j) {
    float s = args.scale * row.score(query, j);
    if (args.softcap > 0) s = args.softcap * std::tanh(s / args.softcap);
    p[j - begin] = s;
    max = std::max(max, s);
  }
  const float factor = std::exp(running.max - max);
  running.max = max;
  for (float& lane : running.sum) lane *= factor;
  for (float& x : running.coded) x *= factor;
  for (float& x : running.numbers) x *= factor;
  running.shift *= factor;
  for (int32_t j = begin; j < end; ++j) {
    p[j - begin] = std::exp(p[j - begin] - max);
    running.sum[j % kLanes] += p[j - begin];
  }
  for (int32_t j = begin; j < end;) {
    const int32_t next = std::min(end, (j / kPageTokens + 1) * kPageTokens);
    if (row.as_codes(j)) {
      add_coded_values(row.coded, row.coded_page(j), p + (j - begin), j % kPageTokens,
                       next - j / kPageTokens * kPageTokens, running);
      j = next;
      continue;
    }
    for (; j < next; ++j) {
      const uint8_t* const values = row.hot_page(j) + int64_t{row.coded.k_dim} * kPageTokens * 2;
      for (int32_t i = 0; i < row.coded.v_dim; ++i)
        running.numbers[static_cast<size_t>(i)] =
            std::fma(p[j - begin], half_at(values, int64_t{j % kPageTokens} * row.coded.v_dim + i),
                     running.numbers[static_cast<size_t>(i)]);
    }
  }
}

void attend(const CodedPages& coded, const KvPages& hot, const int32_t* hot_pages,
            const AttendArgs& args) {
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
    const CodedRow row = {coded, hot, hot_pages, args, position / kPageTokens * kPageTokens};
    for (int32_t h = 0; h < args.group; ++h) {
      const CodedQuery query =
          code_query(coded, args.q + r * args.q_stride + int64_t{h} * coded.k_dim);
      CodedRunning running;
      running.coded.assign(static_cast<size_t>(coded.v_dim), 0.0f);
      running.numbers = running.coded;
      for (int32_t j = begin; j < end;) {
        const int32_t block_end = std::min(end, (j / kBlockTokens + 1) * kBlockTokens);
        attend_block(row, query, j, block_end, running);
        j = block_end;
      }
      float sum = sum_of_lanes(running.sum);
      if (args.sinks) sum += std::exp(args.sinks[h] - running.max);
      for (float& x : running.coded) x += running.shift;
      rotate(coded.v_rotation, /*back=*/true, 1, running.coded.data());
      float* const out = args.out + r * args.out_stride + int64_t{h} * coded.v_dim;
      for (size_t i = 0; i < running.coded.size(); ++i)
        out[i] = (running.numbers[i] + running.coded[i]) / sum;
    }
  }
}

}  // namespace

void fill_coded(CodedOps& ops) {
  ops.rotate = rotate;
  ops.encode_page = encode_page;
  ops.attend = attend;
}

}  // namespace weir::kernels::scalar
