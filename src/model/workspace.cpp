#include "model/workspace.h"

#include <algorithm>

namespace weir::model {

namespace {

constexpr int64_t kAlign = 64;

// Hands out consecutive pieces of one buffer; without a base it only adds up.
class Cutter {
 public:
  explicit Cutter(std::byte* base) : base_(base) {}

  template <class T>
  T* take(int64_t count) {
    return reinterpret_cast<T*>(take_bytes(count * static_cast<int64_t>(sizeof(T))));
  }
  ActivationForms take_forms(int64_t elements, int64_t rows, uint8_t forms) {
    std::byte* memory = take_bytes(ActivationForms::bytes(elements, rows, forms));
    return base_ == nullptr ? ActivationForms{}
                            : ActivationForms::place(memory, elements, rows, forms);
  }
  int64_t bytes() const { return used_; }

 private:
  std::byte* take_bytes(int64_t bytes) {
    std::byte* memory = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (bytes + kAlign - 1) / kAlign * kAlign;
    return memory;
  }

  std::byte* base_;
  int64_t used_ = 0;
};

void cut(const WorkspaceSizes& s, Cutter& c, Workspace& w) {
  const int64_t rows = s.rows;
  const int64_t input = std::max(s.hidden, s.input_width);
  w.residual = {c.take<float>(rows * s.hidden), s.hidden};
  w.normed = c.take<float>(rows * input);
  w.position = c.take<int32_t>(rows);
  w.slice = c.take<int32_t>(rows);
  w.angles = c.take<Angles>(rows * static_cast<int64_t>(s.rope_dims.size()));
  w.own_angles.clear();
  for (const int32_t dim : s.rope_dims) w.own_angles.push_back(c.take<float>(rows * dim));
  w.normed_forms = c.take_forms(rows * input, rows, s.input_forms);
  w.own_normed.clear();
  w.own_forms.clear();
  for (int i = 0; i < s.members; ++i) {
    const int64_t own = std::min<int64_t>(rows, Workspace::kOwnRows);
    w.own_normed.push_back(c.take<float>(own * input));
    w.own_forms.push_back(c.take_forms(own * input, own, s.input_forms));
  }
  w.adapted = {};
  if (s.adapter_rank > 0) {
    w.adapted.rows = c.take<int32_t>(rows);
    w.adapted.place = c.take<int32_t>(rows);
    w.adapted.rank_max = s.adapter_rank;
    w.adapted.sums = c.take<float>(rows * w.adapted.stride());
  }
  w.logits = c.take<float>(int64_t{s.logit_rows} * s.vocab);
  w.kernel_scratch = c.take<std::byte>(s.members * kScratchBytes);
  w.block_floats = rows * Workspace::kBlockColumns;
  w.blocks = c.take<float>(2 * s.members * w.block_floats);
  w.scratch_memory = c.take<std::byte>(w.layout.bytes);
}

}  // namespace

Result<std::unique_ptr<Workspace>> Workspace::create(const WorkspaceSizes& sizes,
                                                     const ScratchPlan& plan) {
  auto workspace = std::make_unique<Workspace>();
  const int32_t rows = sizes.rows + sizes.replay_rows;
  workspace->layout = plan.lay_out(rows, sizes.members);
  workspace->replay_begin = sizes.rows;
  Cutter measure(nullptr);
  cut(sizes, measure, *workspace);
  WEIR_ASSIGN(workspace->memory, HugeBuffer::allocate(static_cast<size_t>(measure.bytes())));
  Cutter cutter(workspace->memory.data());
  cut(sizes, cutter, *workspace);
  workspace->forms = plan.place_forms(workspace->layout, workspace->scratch_memory, rows);
  return workspace;
}

}  // namespace weir::model
