#include "model/linear.h"

#include <cstddef>

#include "kernels/repack.h"

namespace weir::model {

namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kTail = 64;  // Bytes that kernels may read behind the last row (ops.h).

int64_t aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

int64_t float_bytes(kernels::FloatType type) { return type == kernels::FloatType::kF32 ? 4 : 2; }

}  // namespace

int64_t Linear::weight_bytes() const {
  if (!quantised) return macs() * float_bytes(floats.type);
  return kernels::packed_word_bytes(n, k, quant.bits) +
         kernels::packed_scale_bytes(n, k, quant.group, quant.scale_type);
}

uint8_t Linear::group_bit() const {
  return int8 ? static_cast<uint8_t>(1u << QuantSpace::index_of(quant.group)) : uint8_t{0};
}

kernels::QuantRows QuantSpace::view(int32_t k, int32_t group) const {
  const Form& form = forms_[static_cast<size_t>(index_of(group))];
  return {.k = k, .group = group, .q = form.q, .scale = form.scale, .sum = form.sum};
}

int64_t QuantSpace::bytes(int64_t elements, uint8_t groups) {
  int64_t total = 0;
  for (size_t i = 0; i < kGroups.size(); ++i)
    if (groups >> i & 1)
      total += aligned(elements + kTail) + 2 * aligned(elements / kGroups[i] * 4);
  return total;
}

QuantSpace QuantSpace::place(std::byte* memory, int64_t elements, uint8_t groups) {
  QuantSpace space;
  for (size_t i = 0; i < kGroups.size(); ++i) {
    if (!(groups >> i & 1)) continue;
    Form& form = space.forms_[i];
    form.q = reinterpret_cast<int8_t*>(memory);
    memory += aligned(elements + kTail);
    form.scale = reinterpret_cast<float*>(memory);
    memory += aligned(elements / kGroups[i] * 4);
    form.sum = reinterpret_cast<float*>(memory);
    memory += aligned(elements / kGroups[i] * 4);
  }
  return space;
}

void QuantSpace::quantise(const kernels::Ops& ops, uint8_t groups, const float* x, int64_t x_stride,
                          int32_t k, int32_t begin, int32_t end, int32_t column,
                          int32_t columns) const {
  for (size_t i = 0; i < kGroups.size(); ++i) {
    if (!(groups >> i & 1)) continue;
    kernels::QuantRows out = view(k, kGroups[i]);
    out.q += int64_t{begin} * k + column;
    out.scale += (int64_t{begin} * k + column) / out.group;
    out.sum += (int64_t{begin} * k + column) / out.group;
    ops.quantise_rows(x, x_stride, end - begin, columns, out);
  }
}

void multiply(const kernels::Ops& ops, const Linear& weight, const Activations& in,
              const kernels::GemmRange& range, void* scratch) {
  if (!weight.quantised) {
    ops.gemm_float_f32(weight.floats, in.x, weight.k, range, scratch);
  } else if (weight.int8) {
    ops.gemm_quant_int8(weight.quant, in.quant->view(weight.k, weight.quant.group), range, scratch);
  } else {
    ops.gemm_quant_f32(weight.quant, in.x, weight.k, range, scratch);
  }
}

void add_bias(const kernels::Ops& ops, const Linear& weight, const kernels::GemmRange& range) {
  if (weight.bias == nullptr) return;
  for (int32_t m = 0; m < range.rows; ++m)
    ops.add_scaled(weight.bias + range.begin, 1, range.end - range.begin,
                   range.y + m * range.y_stride + range.begin);
}

}  // namespace weir::model
