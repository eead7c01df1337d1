// Linear: one linear layer's weight in the layout that a kernel wants; Activations: the rows it is
// applied to, in the forms that kernels want.
//
// Threads: immutable after load; multiply() writes the range it is given.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/ops.h"

namespace weir::model {

struct Linear {
  int32_t n = 0;
  int32_t k = 0;
  bool quantised = false;
  bool int8 = false;  // On activations quantised to int8 (Compute::kFast).
  kernels::QuantMatrix quant{};
  kernels::FloatMatrix floats{};
  const float* bias = nullptr;  // [n] or null.

  int64_t weight_bytes() const;
  int64_t macs() const { return int64_t{n} * k; }
  // Which forms of its input it needs: a bit per group size, 0 for float rows.
  uint8_t group_bit() const;
};

// Memory for activations quantised to int8, for each group size that some layer asks for.
class QuantSpace {
 public:
  static constexpr std::array<int32_t, 3> kGroups = {32, 64, 128};
  static constexpr int index_of(int32_t group) { return group == 32 ? 0 : group == 64 ? 1 : 2; }

  // The whole space as rows of k elements.
  kernels::QuantRows view(int32_t k, int32_t group) const;
  // Bytes for `elements` activations in the group sizes of `groups`.
  static int64_t bytes(int64_t elements, uint8_t groups);
  static QuantSpace place(std::byte* memory, int64_t elements, uint8_t groups);

  // Quantises columns [column, column + columns) of rows [begin, end) of k elements, in the group
  // sizes of `groups`, of which `column` and `columns` are multiples. `x` is the first of them, and
  // rows of x are x_stride apart.
  void quantise(const kernels::Ops& ops, uint8_t groups, const float* x, int64_t x_stride,
                int32_t k, int32_t begin, int32_t end, int32_t column, int32_t columns) const;

 private:
  struct Form {
    int8_t* q = nullptr;
    float* scale = nullptr;
    float* sum = nullptr;
  };
  std::array<Form, 3> forms_{};
};

struct Activations {
  const float* x = nullptr;  // [rows, k]
  const QuantSpace* quant = nullptr;
};

// Columns [range.begin, range.end) of the layer's output, without bias.
void multiply(const kernels::Ops& ops, const Linear& weight, const Activations& in,
              const kernels::GemmRange& range, void* scratch);

// Adds the columns of the bias that `range` covers, if there is one.
void add_bias(const kernels::Ops& ops, const Linear& weight, const kernels::GemmRange& range);

}  // namespace weir::model
