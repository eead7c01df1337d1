// LengthClass: the original contexts of a model's layers, and on which side of them a prompt is.
#include "sched/length_class.h"

#include <algorithm>

namespace weir::sched {

namespace {
// Above every prompt length: keeps the classes of both kinds apart.
constexpr uint64_t kSwitchClass = uint64_t{1} << 32;
}  // namespace

LengthClass::LengthClass(const model::ModelSpec& spec) {
  for (const model::Sublayer& sublayer : spec.sublayers) {
    const model::Rope* rope = model::rope_of(sublayer.op);
    if (rope == nullptr || !rope->length_dependent()) continue;
    const auto original = static_cast<int32_t>(rope->original_context);
    if (rope->scaling == model::Rope::kDynamic) {
      dynamic_from_ = std::min(dynamic_from_, original);
    } else if (std::ranges::find(switch_lengths_, original) == switch_lengths_.end()) {
      switch_lengths_.push_back(original);
    }
  }
}

uint64_t LengthClass::of(int32_t prompt_length) const {
  if (prompt_length > dynamic_from_) return static_cast<uint64_t>(prompt_length);
  // Of nested conditions only their number counts.
  return kSwitchClass * static_cast<uint64_t>(std::ranges::count_if(
                            switch_lengths_, [=](int32_t n) { return prompt_length > n; }));
}

}  // namespace weir::sched
