// Random quantised and float weights for the kernels' tests: stored as MLX does, packed by
// repack_blocks, and readable one element at a time by a formula of its own.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "kernels/ops.h"
#include "kernels/repack.h"

namespace weir::kernels {

// Zeroed, 64-byte aligned.
template <class T>
class Aligned {
 public:
  explicit Aligned(size_t count) : count_(count), data_(new (std::align_val_t{64}) T[count]()) {}
  T* data() const { return data_.get(); }
  size_t size() const { return count_; }
  T& operator[](size_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  size_t count_;
  std::unique_ptr<T[], Free> data_;
};

inline int float_bytes(FloatType type) { return type == FloatType::kF32 ? 4 : 2; }

// Appends `value` rounded to `type`.
inline void append_float(std::vector<uint8_t>& out, FloatType type, float value) {
  const auto put = [&out](const void* p, size_t n) {
    const auto* bytes = static_cast<const uint8_t*>(p);
    out.insert(out.end(), bytes, bytes + n);
  };
  if (type == FloatType::kF32) {
    put(&value, 4);
  } else {
    const uint16_t bits = type == FloatType::kF16 ? float_to_half(value) : float_to_bf16(value);
    put(&bits, 2);
  }
}

inline float read_float(const uint8_t* array, FloatType type, int64_t i) {
  if (type == FloatType::kF32) {
    float value;
    std::memcpy(&value, array + 4 * i, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, array + 2 * i, 2);
  return type == FloatType::kF16 ? half_to_float(bits) : bf16_to_float(bits);
}

struct AffineShape {
  int32_t n;
  int32_t k;
  int32_t group;
  int32_t bits;
  FloatType scale_type;
};

class QuantWeights {
 public:
  // Scales of both signs, some groups zero.
  QuantWeights(const AffineShape& shape, uint32_t seed)
      : shape_(shape),
        words_(
            static_cast<size_t>(packed_word_bytes(shape.n, shape.k, container_bits(shape.bits)))),
        scales_(static_cast<size_t>(
            packed_scale_bytes(shape.n, shape.k, shape.group, shape.scale_type))) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 0.02f);
    stored_.resize(static_cast<size_t>(int64_t{shape.n} * shape.k * shape.bits / 8));
    for (uint8_t& byte : stored_) byte = static_cast<uint8_t>(random());
    for (int64_t i = 0; i < int64_t{shape.n} * (shape.k / shape.group); ++i) {
      const bool zero = random() % 16 == 0;
      append_float(stored_scales_, shape.scale_type, zero ? 0 : normal(random));
      append_float(stored_biases_, shape.scale_type, zero ? 0 : normal(random));
    }
    repack_blocks(stored(), 0, (shape.n + kBlockRows - 1) / kBlockRows, words_.data(),
                  scales_.data());
  }

  StoredQuant stored() const {
    StoredQuant s;
    s.n = shape_.n;
    s.k = shape_.k;
    s.group = shape_.group;
    s.bits = shape_.bits;
    s.scale_type = shape_.scale_type;
    s.words = stored_.data();
    s.scales = stored_scales_.data();
    s.biases = stored_biases_.data();
    return s;
  }
  QuantMatrix packed() const {
    QuantMatrix m;
    m.n = shape_.n;
    m.k = shape_.k;
    m.group = shape_.group;
    m.bits = container_bits(shape_.bits);
    m.scale_type = shape_.scale_type;
    m.words = words_.data();
    m.scales = scales_.data();
    return m;
  }

  // From the stored stream, bit by bit.
  uint32_t quantum(int32_t row, int32_t column) const {
    const int64_t first = (int64_t{row} * shape_.k + column) * shape_.bits;
    uint32_t value = 0;
    for (int32_t i = 0; i < shape_.bits; ++i) {
      const int64_t at = first + i;
      value |= uint32_t{static_cast<uint8_t>(stored_[static_cast<size_t>(at / 8)] >> (at % 8) & 1)}
               << i;
    }
    return value;
  }
  float scale(int32_t row, int32_t group) const {
    return read_float(stored_scales_.data(), shape_.scale_type,
                      int64_t{row} * (shape_.k / shape_.group) + group);
  }
  float bias(int32_t row, int32_t group) const {
    return read_float(stored_biases_.data(), shape_.scale_type,
                      int64_t{row} * (shape_.k / shape_.group) + group);
  }
  double value(int32_t row, int32_t column) const {
    const int32_t g = column / shape_.group;
    return double{scale(row, g)} * quantum(row, column) + double{bias(row, g)};
  }

 private:
  AffineShape shape_;
  std::vector<uint8_t> stored_;
  std::vector<uint8_t> stored_scales_;
  std::vector<uint8_t> stored_biases_;
  Aligned<uint8_t> words_;
  Aligned<uint8_t> scales_;
};

// Activation rows with the memory behind QuantRows.
class QuantBuffer {
 public:
  QuantBuffer(int32_t rows, int32_t k, int32_t group)
      : q_(static_cast<size_t>(int64_t{rows} * k + 64)),
        scale_(static_cast<size_t>(int64_t{rows} * (k / group))),
        sum_(static_cast<size_t>(int64_t{rows} * (k / group))) {
    rows_.k = k;
    rows_.group = group;
    rows_.q = q_.data();
    rows_.scale = scale_.data();
    rows_.sum = sum_.data();
  }
  const QuantRows& rows() const { return rows_; }
  const Aligned<int8_t>& q() const { return q_; }
  const Aligned<float>& scale() const { return scale_; }
  const Aligned<float>& sum() const { return sum_; }

 private:
  Aligned<int8_t> q_;
  Aligned<float> scale_;
  Aligned<float> sum_;
  QuantRows rows_;
};

// Activation rows rounded to bf16, with a stride that is not k.
class Bf16Buffer {
 public:
  Bf16Buffer(int32_t rows, int32_t k)
      : x_(static_cast<size_t>(rows * stride(k))),
        rows_{.k = k, .stride = stride(k), .x = x_.data()} {}
  const Bf16Rows& rows() const { return rows_; }
  const Aligned<uint16_t>& x() const { return x_; }

 private:
  static constexpr int64_t stride(int32_t k) {
    return (int64_t{k} + kBf16Step - 1) / kBf16Step * kBf16Step + kBf16Step;
  }
  Aligned<uint16_t> x_;
  Bf16Rows rows_;
};

inline std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace weir::kernels
