#include "model/rows/signed_rows.h"

#include <string>

namespace weir::model {

namespace {

// I8 with 128 added, as a byte.
constexpr uint8_t kSignBit = 0x80;

}  // namespace

SignedRows::SignedRows(const Sizes& sizes, const Layout& layout)
    : GroupedRows(layout.packed ? "packed" : "int8",
                  std::to_string(layout.stream.bits) + (layout.stream.gaps ? " gaps " : " ") +
                      std::to_string(layout.zeros_piece) + (layout.whole ? " whole" : ""),
                  sizes),
      layout_(layout) {}

void SignedRows::codes(const Bases& bases, int64_t first, int32_t count,
                       uint8_t* const* out) const {
  const int32_t k = sizes().k;
  for (int32_t i = 0; i < count; ++i) {
    if (layout_.packed) {
      const std::byte* row = bases[0] + (first + i) * layout_.stream.words(k) * 4;
      for (int32_t c = 0; c < k; ++c) out[i][c] = layout_.stream.at(row, c);
    } else {
      const std::byte* row = bases[0] + (first + i) * k;
      for (int32_t c = 0; c < k; ++c) out[i][c] = load_u8(row, c) ^ kSignBit;
    }
  }
}

float SignedRows::scale(const Bases& bases, int64_t row, int64_t group) const {
  return load_float(sizes().scale_type, bases[1], layout_.whole ? 0 : row * sizes().groups + group);
}

uint8_t SignedRows::zero(const Bases& bases, int64_t row, int64_t group) const {
  const std::byte* zeros = bases[static_cast<size_t>(layout_.zeros_piece)];
  const int64_t groups = sizes().groups;
  if (!layout_.packed) return load_u8(zeros, layout_.whole ? 0 : row * groups + group) ^ kSignBit;
  return layout_.stream.at(zeros + group * 4, row, groups);
}

}  // namespace weir::model
