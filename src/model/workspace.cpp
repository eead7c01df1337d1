#include "model/workspace.h"

#include <algorithm>
#include <numeric>

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
  const int64_t rows = s.rows, slots = rows * std::max(s.top_k, 1);
  const int64_t inner = std::max({rows * s.q_width, rows * s.ffn_width, slots * s.expert_width});
  const int64_t ffn =
      s.ffn_floats ? std::max(rows * s.ffn_width, slots * s.expert_width) : int64_t{0};
  w.residual = {c.take<float>(rows * s.hidden), s.hidden};
  w.normed = c.take<float>(rows * s.hidden);
  w.delta = c.take<float>(rows * s.hidden);
  w.position = c.take<int32_t>(rows);
  w.slice = c.take<int32_t>(rows);
  w.angles = c.take<Angles>(rows * static_cast<int64_t>(s.rope_dims.size()));
  w.own_angles.clear();
  for (const int32_t dim : s.rope_dims) w.own_angles.push_back(c.take<float>(rows * dim));
  w.normed_forms = c.take_forms(rows * s.hidden, rows, s.forms);
  w.own_normed.clear();
  w.own_forms.clear();
  for (int i = 0; i < s.members; ++i) {
    const int64_t own = std::min<int64_t>(rows, Workspace::kOwnRows);
    w.own_normed.push_back(c.take<float>(own * s.hidden));
    w.own_forms.push_back(c.take_forms(own * s.hidden, own, s.forms));
  }
  w.inner_forms = c.take_forms(inner, slots, s.forms);
  w.shared_forms = c.take_forms(rows * s.shared_width, rows, s.forms);

  w.q = c.take<float>(rows * s.q_width);
  w.k = c.take<float>(rows * s.kv_width);
  w.v = c.take<float>(rows * s.kv_width);
  w.attended = c.take<float>(rows * s.q_width);

  w.gate = c.take<float>(ffn);
  w.up = c.take<float>(ffn);
  if (s.experts > 0) {
    w.shared_gate = c.take<float>(s.ffn_floats ? rows * s.shared_width : 0);
    w.shared_up = c.take<float>(s.ffn_floats ? rows * s.shared_width : 0);
    w.shared_out = c.take<float>(s.shared_width > 0 ? rows * s.hidden : 0);
    w.shared_weight = c.take<float>(rows);
    w.expert_out = c.take<float>(slots * s.hidden);
    w.router = c.take<float>(rows * s.experts);
    w.choice = c.take<int32_t>(slots);
    w.choice_weight = c.take<float>(slots);
    w.seen_choice = c.take<int32_t>(s.streamed ? slots : 0);
    w.seen_weight = c.take<float>(s.streamed ? slots : 0);
    w.slots = c.take<int32_t>(slots);
    w.slot_count = slots;
    w.plans.assign(static_cast<size_t>(s.members), {});
    for (ExpertPlan& plan : w.plans) {
      plan.begin = c.take<int32_t>(s.experts + 1);
      plan.row = c.take<int32_t>(slots);
      plan.slot = c.take<int32_t>(slots);
      plan.prompt_begin = c.take<int32_t>(s.experts);
      plan.active = c.take<int32_t>(s.experts);
    }
  }
  w.logits = c.take<float>(int64_t{s.logit_rows} * s.vocab);
  w.kernel_scratch = c.take<std::byte>(s.members * kernels::kScratchBytes);
  w.block_floats = rows * Workspace::kBlockColumns;
  w.blocks = c.take<float>(2 * s.members * w.block_floats);
}

}  // namespace

Result<std::unique_ptr<Workspace>> Workspace::create(const WorkspaceSizes& sizes) {
  auto workspace = std::make_unique<Workspace>();
  Cutter measure(nullptr);
  cut(sizes, measure, *workspace);
  WEIR_ASSIGN(workspace->memory, HugeBuffer::allocate(static_cast<size_t>(measure.bytes())));
  Cutter cutter(workspace->memory.data());
  cut(sizes, cutter, *workspace);
  workspace->fill_slots();
  return workspace;
}

void Workspace::fill_slots() { std::iota(slots, slots + slot_count, 0); }

void Workspace::give_back() {
  memory.give_back(0, memory.bytes());
  fill_slots();
}

}  // namespace weir::model
