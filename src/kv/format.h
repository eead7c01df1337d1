// Format: how keys and values are stored: as numbers, or, once a page of them is complete, as codes
// (docs/compressed-kv.md).
//
// Threads: a value.
#pragma once

#include <cstdint>

#include "kernels/ops.h"

namespace weir::kv {

class Format {
 public:
  enum Kind : uint8_t {
    kF16,
    kF32,
    kInt8,  // Keys and values of 8 bits.
    kTq4,   // Of 4 bits, and of the first and last layers 8.
    kTq3,   // Keys of 4 bits, values of 3; likewise.
    kNone,  // Numbers that are not stored as they are.
  };

  constexpr Format(Kind kind = kF16) : kind_(kind) {}
  // Numbers that stay what they are.
  constexpr Format(kernels::FloatType type)
      : kind_(type == kernels::FloatType::kF32   ? kF32
              : type == kernels::FloatType::kF16 ? kF16
                                                 : kNone) {}

  constexpr Kind kind() const { return kind_; }
  constexpr bool coded() const { return kind_ == kInt8 || kind_ == kTq4 || kind_ == kTq3; }
  // Of what is not codes, or not yet.
  constexpr kernels::FloatType type() const {
    return kind_ == kF32 ? kernels::FloatType::kF32 : kernels::FloatType::kF16;
  }
  // Of codes, but in the first and last layers.
  constexpr int32_t key_bits() const { return kind_ == kInt8 ? 8 : 4; }
  constexpr int32_t value_bits() const { return kind_ == kInt8 ? 8 : kind_ == kTq4 ? 4 : 3; }
  // As options have it.
  constexpr const char* name() const {
    constexpr const char* kNames[] = {"f16", "f32", "int8", "tq4", "tq3", "?"};
    return kNames[kind_];
  }

  friend constexpr bool operator==(Format a, Format b) { return a.kind_ == b.kind_; }

 private:
  Kind kind_;
};

}  // namespace weir::kv
