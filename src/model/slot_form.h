// SlotForm: how an expert's matrices lie in a slot, the same for all experts of a layer, and how
// what was read as stored gets there.
//
// A slot holds what kernels read, in the order in which they do: the numbers and scales of gate and
// up (part 0), then of down (part 1), each at a multiple of 64 bytes; float matrices as stored.
//
// Threads: filled by one thread, at load; immutable afterwards. unpack() may be called by several
// threads for different units.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/layers/ffn.h"
#include "model/stored_matrix.h"
#include "ssd/expert_catalogue.h"

namespace weir::model {

class SlotForm {
 public:
  using Parts = std::array<uint64_t, ssd::kParts>;

  // Whether two experts' matrices can lie in slots of one form.
  static bool same(const StoredMatrix& a, const StoredMatrix& b);

  // The next matrix of a part, in the order in which ranges of files are read. `shares`: it lies
  // among the rows of the matrix before, in the same ranges.
  void add(size_t part, const StoredMatrix& matrix, bool shares = false);
  const Parts& part_bytes() const { return bytes_; }
  // What decides where bits lie, as text.
  std::string text() const;

  // Where the matrices are of the expert in this slot, whose parts begin at `offset`.
  void point(const std::byte* slot, const Parts& offset, FfnWeights& expert) const;

  // Units of work in unpacking a part.
  int32_t units(size_t part) const;
  // `ranges`: what was read, which lies one after another in whole blocks from `staged` on; `to`:
  // the part in its slot.
  void unpack(size_t part, int32_t unit, std::span<const ssd::StoredRange> ranges,
              const std::byte* staged, std::byte* to) const;
  // Makes zeros of what lies between the matrices of a part of `bytes`: kernels do not read it, but
  // what is written to a bundle is always the same.
  void clear_gaps(size_t part, std::byte* to, uint64_t bytes) const;

 private:
  // A matrix in a slot.
  struct Matrix {
    Linear linear;  // Without weights.
    int32_t bits = 0;
    std::optional<RowPacker> packer;  // Of rows that a source reads, from `pieces` ranges.
    int32_t pieces = 0;
    bool shares = false;   // The ranges are those of the matrix before.
    uint64_t numbers = 0;  // Offset in its part.
    uint64_t scales = 0;   // Of scales with biases.

    uint64_t number_bytes() const { return static_cast<uint64_t>(linear.number_bytes()); }
    uint64_t scale_bytes() const { return static_cast<uint64_t>(linear.scale_bytes()); }
    int32_t units() const;
  };
  static void unpack(const Matrix& matrix, int32_t unit, const RowSource::Bases& bases,
                     std::byte* to);

  std::array<std::vector<Matrix>, ssd::kParts> parts_;
  Parts bytes_{};
};

}  // namespace weir::model
