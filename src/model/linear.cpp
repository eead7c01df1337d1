#include "model/linear.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "kernels/quant_layout.h"
#include "kernels/repack.h"

namespace weir::model {

namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kTail = 64;  // Bytes that kernels may read after the last row (ops.h).

// Numbers between two rows in bf16: 64 bytes, so that the rows of a tile do not all fall into one
// set of the cache where k is a power of two.
constexpr int32_t kBf16Gap = 32;
static_assert(kBf16Gap % kernels::kBf16Step == 0);

int64_t aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

int64_t Linear::number_bytes() const {
  switch (held) {
    case Held::kCodes:
      return kernels::packed_word_bytes(quant);
    case Held::kFloat8:
      return kernels::packed_word_bytes(float8);
    case Held::kFloats:
      break;
  }
  return macs() * kernels::float_type_bytes(floats.type);
}

int64_t Linear::scale_bytes() const {
  switch (held) {
    case Held::kCodes:
      return kernels::packed_scale_bytes(quant);
    case Held::kFloat8:
      return kernels::packed_scale_bytes(float8);
    case Held::kFloats:
      break;
  }
  return 0;
}

int64_t Linear::column_bytes() const {
  switch (held) {
    case Held::kCodes:
      return int64_t{k} * quant.bits / 8;
    case Held::kFloat8:
      return k;
    case Held::kFloats:
      break;
  }
  return int64_t{k} * kernels::float_type_bytes(floats.type);
}

void Linear::point(const void* numbers, const void* scales) {
  switch (held) {
    case Held::kCodes:
      quant.words = static_cast<const uint8_t*>(numbers);
      quant.scales = static_cast<const uint8_t*>(scales);
      break;
    case Held::kFloat8:
      float8.numbers = static_cast<const uint8_t*>(numbers);
      float8.scales = static_cast<const float*>(scales);
      break;
    case Held::kFloats:
      floats.rows = numbers;
      break;
  }
}

uint8_t Linear::forms() const {
  if (order != nullptr) return 0;  // Rows are put in order first, whole.
  const uint8_t generated = int8 ? ActivationForms::int8_bit(quant.group) : uint8_t{0};
  return generated | (bf16_prompts ? ActivationForms::kBf16 : uint8_t{0});
}

kernels::QuantRows ActivationForms::int8(int32_t k, int32_t group, int64_t at) const {
  const Int8& form = int8_[static_cast<size_t>(index_of(group))];
  return {.k = k,
          .group = group,
          .q = form.q + at,
          .scale = form.scale + at / group,
          .sum = form.sum + at / group};
}

kernels::Bf16Rows ActivationForms::bf16(int32_t k) const {
  return {.k = k, .stride = padded(k, kBf16) + kBf16Gap, .x = bf16_};
}

int64_t ActivationForms::bytes(int64_t elements, int64_t rows, uint8_t forms) {
  int64_t total = 0;
  for (const int32_t group : kGroups)
    if (forms & int8_bit(group))
      total += aligned(elements + kTail) + 2 * aligned(elements / group * 4);
  if (forms & kBf16) total += aligned((elements + rows * kBf16Gap) * 2);
  return total;
}

ActivationForms ActivationForms::place(std::byte* memory, int64_t elements, int64_t rows,
                                       uint8_t forms) {
  const auto take = [&]<class T>(T*& piece, int64_t bytes) {
    piece = reinterpret_cast<T*>(memory);
    memory += aligned(bytes);
  };
  ActivationForms space;
  for (size_t i = 0; i < kGroups.size(); ++i) {
    if (!(forms & int8_bit(kGroups[i]))) continue;
    take(space.int8_[i].q, elements + kTail);
    take(space.int8_[i].scale, elements / kGroups[i] * 4);
    take(space.int8_[i].sum, elements / kGroups[i] * 4);
  }
  if (forms & kBf16) take(space.bf16_, (elements + rows * kBf16Gap) * 2);
  return space;
}

void ActivationForms::convert(const kernels::Ops& ops, uint8_t forms, const float* x,
                              int64_t x_stride, const Part& part, int32_t prompt_begin) const {
  const int32_t prompts = forms & kBf16 ? std::clamp(prompt_begin, part.begin, part.end) : part.end;
  for (const int32_t group : kGroups) {
    if (!(forms & int8_bit(group)) || part.begin == prompts) continue;
    const int64_t at = int64_t{part.begin} * part.k + part.column;
    ops.quantise_rows(x, x_stride, prompts - part.begin, part.columns, int8(part.k, group, at));
  }
  if (prompts == part.end) return;
  kernels::Bf16Rows out = bf16(part.k);
  out.x += prompts * out.stride + part.column;
  ops.round_rows(x + (prompts - part.begin) * x_stride, x_stride, part.end - prompts, part.columns,
                 out);
}

namespace {

// How many rows of the range come before the prompts.
int32_t rows_before(const kernels::GemmRange& range, const Activations& in) {
  if (range.index == nullptr) return std::clamp(in.prompt_begin - in.first_row, 0, range.rows);
  const std::span rows(range.index, static_cast<size_t>(range.rows));
  return static_cast<int32_t>(std::ranges::lower_bound(rows, in.prompt_begin) - rows.begin());
}

// Where rows in a weight's order lie in the scratch: floats, then their int8 form.
class OrderedRows {
 public:
  OrderedRows(const Linear& weight, void* scratch)
      : k_(weight.k), group_(weight.int8 ? weight.quant.group : 0), order_(weight.order) {
    memory_ = static_cast<std::byte*>(scratch) + kernels::kScratchBytes;
    const int64_t factors = group_ == 0 ? 0 : 2 * aligned(k_ / group_ * 4) + k_;
    rows_max_ = static_cast<int32_t>((kOrderedBytes - 4 * kAlign - kTail) / (4 * k_ + factors));
  }

  int32_t rows_max() const { return rows_max_; }
  const float* x() const { return reinterpret_cast<const float*>(memory_); }
  // Gathers the elements of `rows` rows of a range, from row `first` on.
  void gather(const float* x, int64_t x_stride, const kernels::GemmRange& range, int32_t first,
              int32_t rows) const {
    auto* out = reinterpret_cast<float*>(memory_);
    for (int32_t m = first; m < first + rows; ++m, out += k_) {
      const float* row = x + (range.index != nullptr ? range.index[m] : m) * x_stride;
      for (int64_t i = 0; i < k_; ++i) out[i] = row[order_[i]];
    }
  }
  kernels::QuantRows quantised(const kernels::Ops& ops, int32_t rows) const {
    std::byte* at = memory_ + aligned(rows * k_ * 4);
    kernels::QuantRows out = {.k = static_cast<int32_t>(k_), .group = group_};
    out.q = reinterpret_cast<int8_t*>(at);
    at += aligned(rows * k_ + kTail);
    out.scale = reinterpret_cast<float*>(at);
    out.sum = reinterpret_cast<float*>(at + aligned(rows * (k_ / group_) * 4));
    ops.quantise_rows(x(), k_, rows, out.k, out);
    return out;
  }

 private:
  int64_t k_;
  int32_t group_;
  const int32_t* order_;
  std::byte* memory_;
  int32_t rows_max_;
};

// As many rows at a time as the scratch holds in the weight's order: product(rows, part of the
// range).
template <class F>
void multiply_in_order(const Linear& weight, const float* x, int64_t x_stride,
                       const kernels::GemmRange& range, void* scratch, const F& product) {
  const OrderedRows rows(weight, scratch);
  for (int32_t first = 0; first < range.rows; first += rows.rows_max()) {
    kernels::GemmRange part = range;
    part.index = nullptr;
    part.rows = std::min(rows.rows_max(), range.rows - first);
    part.y += first * range.y_stride;
    if (first > 0) part.next = {};
    rows.gather(x, x_stride, range, first, part.rows);
    product(rows, part);
  }
}

void multiply_plain_floats(const kernels::Ops& ops, const Linear& weight, const float* x,
                           int64_t x_stride, const kernels::GemmRange& range, void* scratch) {
  switch (weight.held) {
    case Held::kCodes:
      return ops.gemm_quant_f32(weight.quant, x, x_stride, range, scratch);
    case Held::kFloat8:
      return ops.gemm_float8_f32(weight.float8, x, x_stride, range, scratch);
    case Held::kFloats:
      return ops.gemm_float_f32(weight.floats, x, x_stride, range, scratch);
  }
}

void multiply_bf16(const kernels::Ops& ops, const Linear& weight, const kernels::Bf16Rows& rows,
                   const kernels::GemmRange& range, void* scratch) {
  switch (weight.held) {
    case Held::kCodes:
      return ops.gemm_quant_bf16(weight.quant, rows, range, scratch);
    case Held::kFloat8:
      return ops.gemm_float8_bf16(weight.float8, rows, range, scratch);
    case Held::kFloats:
      return ops.gemm_float_bf16(weight.floats, rows, range, scratch);
  }
}

// Rows that are no prompt's.
void multiply_generated(const kernels::Ops& ops, const Linear& weight, const Activations& in,
                        const kernels::GemmRange& range, void* scratch) {
  const int64_t at = range.index == nullptr ? int64_t{in.first_row} * weight.k : 0;
  if (weight.int8) {
    ops.gemm_quant_int8(weight.quant, in.forms->int8(weight.k, weight.quant.group, at), range,
                        scratch);
  } else {
    multiply_floats(ops, weight, in.x + at, weight.k, range, scratch);
  }
}

}  // namespace

void multiply_floats(const kernels::Ops& ops, const Linear& weight, const float* x,
                     int64_t x_stride, const kernels::GemmRange& range, void* scratch) {
  if (weight.order == nullptr)
    return multiply_plain_floats(ops, weight, x, x_stride, range, scratch);
  multiply_in_order(weight, x, x_stride, range, scratch,
                    [&](const OrderedRows& rows, const kernels::GemmRange& part) {
                      multiply_plain_floats(ops, weight, rows.x(), weight.k, part, scratch);
                    });
}

void multiply(const kernels::Ops& ops, const Linear& weight, const Activations& in,
              const kernels::GemmRange& range, void* scratch) {
  if (weight.order != nullptr) {
    const float* x = in.x + (range.index == nullptr ? int64_t{in.first_row} * weight.k : 0);
    if (!weight.int8) return multiply_floats(ops, weight, x, weight.k, range, scratch);
    return multiply_in_order(weight, x, weight.k, range, scratch,
                             [&](const OrderedRows& rows, const kernels::GemmRange& part) {
                               ops.gemm_quant_int8(weight.quant, rows.quantised(ops, part.rows),
                                                   part, scratch);
                             });
  }
  const int32_t first = weight.bf16_prompts ? rows_before(range, in) : range.rows;
  if (first > 0) {
    kernels::GemmRange generated = range;
    generated.rows = first;
    multiply_generated(ops, weight, in, generated, scratch);
  }
  if (first == range.rows) return;
  kernels::GemmRange prompts = range;
  prompts.rows -= first;
  prompts.y += first * range.y_stride;
  kernels::Bf16Rows rows = in.forms->bf16(weight.k);
  if (range.index != nullptr)
    prompts.index += first;
  else
    rows.x += (in.first_row + first) * rows.stride;
  multiply_bf16(ops, weight, rows, prompts, scratch);
}

void read_row(const kernels::Ops& ops, const Linear& weight, int32_t row, float* out) {
  switch (weight.held) {
    case Held::kCodes:
      return ops.dequantise_row(weight.quant, row, out);
    case Held::kFloat8:
      return ops.widen_float8_row(weight.float8, row, out);
    case Held::kFloats:
      return ops.widen_row(weight.floats, row, out);
  }
}

kernels::NextWeights next_weights(const Linear& weight, int32_t begin, int32_t end) {
  if (begin == end) return {};
  if (weight.held == Held::kFloat8) return kernels::next_weights(weight.float8, begin, end);
  return weight.int8 ? kernels::next_weights(weight.quant, begin, end) : kernels::NextWeights{};
}

void add_bias(const kernels::Ops& ops, const Linear& weight, const kernels::GemmRange& range) {
  if (weight.bias == nullptr) return;
  for (int32_t m = 0; m < range.rows; ++m)
    ops.add_scaled(weight.bias + range.begin, 1, range.end - range.begin,
                   range.y + m * range.y_stride + range.begin);
}

}  // namespace weir::model
