#include "model/slot_form.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/repack.h"

namespace weir::model {

namespace {

constexpr uint64_t kAlign = 64;
// Blocks of 16 rows that a member unpacks at a time: about 0.1 ms of a 2,048 wide matrix.
constexpr int32_t kUnitBlocks = 16;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

int32_t blocks_of(const Linear& linear) {
  return (linear.n + kernels::kBlockRows - 1) / kernels::kBlockRows;
}

int32_t units_of(const Linear& linear, bool copied) {
  return copied ? 1 : (blocks_of(linear) + kUnitBlocks - 1) / kUnitBlocks;
}

}  // namespace

int32_t SlotForm::Matrix::units() const {
  return units_of(linear, linear.held == Held::kFloats && !packer);
}

bool SlotForm::same(const StoredMatrix& a, const StoredMatrix& b) {
  const Linear &x = a.linear, &y = b.linear;
  if (x.n != y.n || x.k != y.k || (a.source == nullptr) != (b.source == nullptr)) return false;
  if (a.source) return a.pieces == b.pieces && a.packer().same(b.packer());
  if (a.format.has_value() != b.format.has_value()) return false;
  if (!a.format) return a.type == b.type;
  return a.format->bits == b.format->bits && a.format->group == b.format->group &&
         a.scale_type == b.scale_type;
}

void SlotForm::add(size_t part, const StoredMatrix& matrix, bool shares) {
  CHECK(matrix.source ||
        (matrix.in_rows() && !shares && matrix.linear.has_codes() == matrix.format.has_value()));
  Matrix& m = parts_[part].emplace_back();
  m.linear = matrix.linear;
  m.linear.bias = nullptr;
  if (matrix.format) m.bits = matrix.format->bits;
  if (matrix.source) m.packer = matrix.packer();
  m.pieces = matrix.pieces;
  m.shares = shares;
  m.numbers = bytes_[part];
  m.scales = m.numbers + aligned(m.number_bytes());
  bytes_[part] = m.scales + aligned(m.scale_bytes());
}

std::string SlotForm::text() const {
  std::string text;
  for (const std::vector<Matrix>& part : parts_)
    for (const Matrix& m : part) {
      const Linear& l = m.linear;
      for (const int32_t number :
           {l.n, l.k, m.bits, static_cast<int32_t>(l.held), l.has_codes() ? l.quant.group : 0,
            static_cast<int32_t>(l.has_codes() ? l.quant.scale_type : l.floats.type)})
        text.append(std::to_string(number)).append(" ");
      if (m.packer) text.append(m.packer->text()).append(" ");
    }
  return text;
}

void SlotForm::point(const std::byte* slot, const Parts& offset, FfnWeights& expert) const {
  const auto point_at = [&](Linear& to, size_t part, const Matrix& m) {
    const std::byte* base = slot + offset[part];
    to.point(base + m.numbers, base + m.scales);
  };
  if (expert.spec.gated) point_at(expert.gate, 0, parts_[0].front());
  point_at(expert.up, 0, parts_[0].back());
  point_at(expert.down, 1, parts_[1].front());
}

int32_t SlotForm::units(size_t part) const {
  int32_t units = 0;
  for (const Matrix& m : parts_[part]) units += m.units();
  return units;
}

void SlotForm::unpack(size_t part, int32_t unit, std::span<const ssd::StoredRange> ranges,
                      const std::byte* staged, std::byte* to) const {
  size_t next = 0;
  // The next range's first byte.
  const auto take = [&] {
    const ssd::StoredRange& range = ranges[next++];
    const std::byte* bytes = staged + (range.offset - range.first_block());
    staged += range.block_bytes();
    return bytes;
  };
  RowSource::Bases bases{};
  for (const Matrix& m : parts_[part]) {
    for (size_t i = 0; !m.shares && i < static_cast<size_t>(m.pieces); ++i) bases[i] = take();
    if (unit < m.units()) return unpack(m, unit, bases, to);
    unit -= m.units();
  }
}

void SlotForm::unpack(const Matrix& m, int32_t unit, const RowSource::Bases& bases, std::byte* to) {
  const Linear& l = m.linear;
  const int32_t begin = unit * kUnitBlocks;
  const int32_t end = std::min(begin + kUnitBlocks, blocks_of(l));
  const auto bytes = [&](size_t i) { return reinterpret_cast<const uint8_t*>(bases[i]); };
  auto* numbers = reinterpret_cast<uint8_t*>(to + m.numbers);
  auto* scales = reinterpret_cast<uint8_t*>(to + m.scales);
  if (m.packer) {
    // What is no number spoils the logits, which is found there.
    m.packer->pack(bases, begin * kernels::kBlockRows, std::min(end * kernels::kBlockRows, l.n),
                   {numbers, scales});
  } else if (l.held == Held::kFloats) {
    std::memcpy(numbers, bases[0], m.number_bytes());
  } else {
    kernels::repack_blocks({.n = l.n,
                            .k = l.k,
                            .group = l.quant.group,
                            .bits = m.bits,
                            .scale_type = l.quant.scale_type,
                            .words = bytes(0),
                            .scales = bytes(1),
                            .biases = bytes(2)},
                           begin, end, numbers, scales);
  }
}

void SlotForm::clear_gaps(size_t part, std::byte* to, uint64_t bytes) const {
  uint64_t end = 0;  // Of the last piece.
  const auto clear_to = [&](uint64_t next) { std::fill(to + end, to + next, std::byte{}); };
  for (const Matrix& m : parts_[part]) {
    clear_to(m.numbers);
    end = m.numbers + m.number_bytes();
    clear_to(m.scales);
    end = m.scales + m.scale_bytes();
  }
  clear_to(bytes);
}

}  // namespace weir::model
