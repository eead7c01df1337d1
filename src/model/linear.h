// Linear: one linear layer's weight in the layout that a kernel wants; Activations: the rows it is
// applied to, in the forms that kernels want.
//
// Threads: immutable after load; multiply() writes the range it is given.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "kernels/ops.h"

namespace weir::model {

// How weights are held: floats as they are stored, codes in groups, or float8 numbers with scales.
enum class Held : uint8_t { kFloats, kCodes, kFloat8 };

struct Linear {
  int32_t n = 0;
  int32_t k = 0;
  Held held = Held::kFloats;
  // Compute::kFast: codes meet int8 activations, and those of prompts meet weights of any kind in
  // bf16 where the processor is made for it.
  bool int8 = false;
  bool bf16_prompts = false;
  // Of these the one that `held` says.
  kernels::FloatMatrix floats{};
  kernels::QuantMatrix quant{};
  kernels::Float8Matrix float8{};
  const float* bias = nullptr;  // [n] or null.
  // [k] or null: column i of the weight is for element order[i] of a row. So the columns of a group
  // lie together where a checkpoint has them apart (activation order).
  const int32_t* order = nullptr;
  // Which of the modules that adapters may change it is (adapter_target.h); -1: none.
  int32_t target = -1;

  bool has_codes() const { return held == Held::kCodes; }
  // Memory of the numbers, and of the scales and biases that lie apart from them.
  int64_t number_bytes() const;
  int64_t scale_bytes() const;
  int64_t weight_bytes() const { return number_bytes() + scale_bytes(); }
  int64_t macs() const { return int64_t{n} * k; }
  // What the numbers of one column of the output take.
  int64_t column_bytes() const;
  // Says where both are. REQUIRES: 64-byte alignment, of floats their own.
  void point(const void* numbers, const void* scales);
  // Some rows meet it as floats, not in a form.
  bool reads_floats() const { return !int8 || order != nullptr; }
  // Which forms of its input it needs, as ActivationForms counts them; 0 for float rows.
  uint8_t forms() const;
};

// Scratch memory of a team member: what kernels ask for, then rows in a weight's order.
inline constexpr int64_t kOrderedBytes = 1 << 20;
inline constexpr int64_t kScratchBytes = kernels::kScratchBytes + kOrderedBytes;

// Where no row is a prompt's, or prompts are treated like other rows.
inline constexpr int32_t kNoPrompts = std::numeric_limits<int32_t>::max();

// Memory for activations in the forms that the layers of a model ask for: int8 for each group size,
// and bf16 for rows of prompts. Rows of prompts come after the others, from `prompt_begin` on.
class ActivationForms {
 public:
  static constexpr std::array<int32_t, 4> kGroups = {16, 32, 64, 128};
  static constexpr int index_of(int32_t group) {
    return group == 16 ? 0 : group == 32 ? 1 : group == 64 ? 2 : 3;
  }
  // Forms as bits: int8 in groups of kGroups[i]; bf16.
  static constexpr uint8_t int8_bit(int32_t group) {
    return static_cast<uint8_t>(1 << index_of(group));
  }
  static constexpr uint8_t kBf16 = 1 << 4;

  // The space as rows of k elements, from element `at` on; the whole of it.
  kernels::QuantRows int8(int32_t k, int32_t group, int64_t at) const;
  kernels::Bf16Rows bf16(int32_t k) const;
  // Elements that a row of k takes: in bf16 whole steps.
  static constexpr int64_t padded(int64_t k, uint8_t forms) {
    constexpr int64_t kStep = kernels::kBf16Step;
    return forms & kBf16 ? (k + kStep - 1) / kStep * kStep : k;
  }
  // Bytes for `elements` activations, those of padded() rows, in at most `rows` rows.
  static int64_t bytes(int64_t elements, int64_t rows, uint8_t forms);
  static ActivationForms place(std::byte* memory, int64_t elements, int64_t rows, uint8_t forms);

  // Some columns of some rows of k elements.
  struct Part {
    int32_t k = 0;
    int32_t begin = 0, end = 0;  // Rows.
    int32_t column = 0, columns = 0;
  };
  // Converts a part: rows before `prompt_begin` to the int8 forms of `forms`, of whose groups
  // `column` and `columns` are multiples, those from it on to bf16. `x` is the part's first
  // element, and rows of x are x_stride apart.
  void convert(const kernels::Ops& ops, uint8_t forms, const float* x, int64_t x_stride,
               const Part& part, int32_t prompt_begin) const;

 private:
  struct Int8 {
    int8_t* q = nullptr;
    float* scale = nullptr;
    float* sum = nullptr;
  };
  std::array<Int8, 4> int8_{};
  uint16_t* bf16_ = nullptr;
};

struct Activations {
  const float* x = nullptr;  // [rows, k]
  const ActivationForms* forms = nullptr;
  int32_t prompt_begin = kNoPrompts;
  // Where the range names no rows: which of the rows its first one is.
  int32_t first_row = 0;
  // For adapters (adapted_product.h). The pass's row of each of the range's rows; null: the rows are
  // the pass's. Which of the phase's weights it is, where prepare_adapters() went before; -1: it did
  // not.
  const int32_t* pass_rows = nullptr;
  int32_t prepared = -1;
};

// Columns [range.begin, range.end) of the layer's output, without bias. `scratch`: kScratchBytes
// where the weight has an order, else what kernels ask for. REQUIRES: rows of an index ascend.
void multiply(const kernels::Ops& ops, const Linear& weight, const Activations& in,
              const kernels::GemmRange& range, void* scratch);

// Multiplies float activations, rows of which are x_stride apart, in the same way.
void multiply_floats(const kernels::Ops& ops, const Linear& weight, const float* x,
                     int64_t x_stride, const kernels::GemmRange& range, void* scratch);

// Row `row` of the weight as floats: the embedding lookup.
void read_row(const kernels::Ops& ops, const Linear& weight, int32_t row, float* out);

// Columns [begin, end) as what a product may fetch for the next one.
kernels::NextWeights next_weights(const Linear& weight, int32_t begin, int32_t end);

// Adds the columns of the bias that `range` covers, if there is one.
void add_bias(const kernels::Ops& ops, const Linear& weight, const kernels::GemmRange& range);

}  // namespace weir::model
