#include "model/scratch.h"

#include <algorithm>
#include <array>

namespace weir::model {

namespace {

constexpr int64_t kAlign = 64;

int64_t aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// A piece of memory that sublayers use one after another.
class SharedPiece {
 public:
  // The offset of `bytes` for a sublayer, after what it has taken already.
  int64_t take(int32_t sublayer, int64_t bytes) {
    if (sublayer != sublayer_) used_ = 0;
    sublayer_ = sublayer;
    const int64_t at = used_;
    used_ += aligned(bytes);
    bytes_ = std::max(bytes_, used_);
    return at;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int32_t sublayer_ = -1;
  int64_t used_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace

int32_t ScratchPlan::add(const Asked& asked) {
  asked_.push_back(asked);
  return static_cast<int32_t>(asked_.size()) - 1;
}

FormsBuffer ScratchPlan::ask_forms(int64_t k, int64_t rows_per_row, uint8_t forms) {
  const int32_t id = add({.sublayer = sublayer_,
                          .size = {.per_row = ActivationForms::padded(k, forms) * rows_per_row},
                          .forms = forms,
                          .rows_per_row = rows_per_row});
  return forms_.emplace_back(FormsBuffer{id, static_cast<int32_t>(forms_.size())});
}

int64_t ScratchPlan::Asked::bytes(int64_t rows) const {
  if (forms != 0) return ActivationForms::bytes(rows * size.per_row, rows * rows_per_row, forms);
  return (rows * size.per_row + size.fixed) * element_bytes;
}

ScratchPlan::Layout ScratchPlan::lay_out(int64_t rows, int64_t members) const {
  SharedPiece computing, whole;
  std::array<SharedPiece, 2> entered;  // Of even sublayers, and of odd ones.
  const auto piece_of = [&](const Asked& asked) -> SharedPiece& {
    if (asked.use == BufferUse::kWholePass) return whole;
    return asked.use == BufferUse::kComputing ? computing
                                              : entered[static_cast<size_t>(asked.sublayer % 2)];
  };
  Layout layout;
  for (const Asked& asked : asked_) {
    const int64_t bytes = asked.bytes(rows);
    Place& place = layout.buffers.emplace_back();
    place.member_bytes = asked.size.per_member ? aligned(bytes) : 0;
    // To the piece that nothing shares, all sublayers are one.
    const int32_t sublayer = asked.use == BufferUse::kWholePass ? 0 : asked.sublayer;
    place.offset =
        piece_of(asked).take(sublayer, asked.size.per_member ? members * aligned(bytes) : bytes);
  }
  for (size_t i = 0; i < asked_.size(); ++i) {
    int64_t& offset = layout.buffers[i].offset;
    if (asked_[i].use == BufferUse::kComputing) continue;
    offset += computing.bytes();
    if (asked_[i].use == BufferUse::kWholePass)
      offset += entered[0].bytes() + entered[1].bytes();
    else if (asked_[i].sublayer % 2 == 1)
      offset += entered[0].bytes();
  }
  layout.bytes = computing.bytes() + entered[0].bytes() + entered[1].bytes() + whole.bytes();
  return layout;
}

std::vector<ActivationForms> ScratchPlan::place_forms(const Layout& layout, std::byte* memory,
                                                      int64_t rows) const {
  std::vector<ActivationForms> out;
  for (const FormsBuffer& buffer : forms_) {
    const Asked& asked = asked_[static_cast<size_t>(buffer.id)];
    out.push_back(
        ActivationForms::place(memory + layout.buffers[static_cast<size_t>(buffer.id)].offset,
                               rows * asked.size.per_row, rows * asked.rows_per_row, asked.forms));
  }
  return out;
}

}  // namespace weir::model
