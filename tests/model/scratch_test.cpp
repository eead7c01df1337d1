// Buffers that are in use at the same time never lie in the same memory; others share it.
#include "model/scratch.h"

#include <gtest/gtest.h>

#include <random>

namespace weir::model {
namespace {

struct Asked {
  int sublayer = 0;
  BufferUse use = BufferUse::kComputing;
  int64_t bytes = 0;
  bool per_member = false;
  int32_t id = 0;
};

// A sublayer computes alone. From its enter() on, which is one phase with leave() of the one
// before, its entered buffers are in use as well.
bool used_together(const Asked& a, const Asked& b) {
  if (a.use == BufferUse::kWholePass || b.use == BufferUse::kWholePass) return true;
  const int apart = std::abs(a.sublayer - b.sublayer);
  if (apart > 1) return false;
  return apart == 0 || a.use == BufferUse::kEntered || b.use == BufferUse::kEntered;
}

TEST(Scratch, KeepsApartWhatIsUsedTogether) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 50; ++round) {
    const int64_t rows = 1 + below(100), members = 1 + below(4);
    ScratchPlan plan;
    std::vector<Asked> asked;
    for (int sublayer = 0; sublayer < 6; ++sublayer) {
      plan.next_sublayer();
      for (int i = below(4); i > 0; --i) {
        const BufferSize size = {
            .per_row = below(20), .fixed = below(9), .per_member = below(3) == 0};
        const BufferUse use = below(8) == 0   ? BufferUse::kWholePass
                              : below(2) == 0 ? BufferUse::kComputing
                                              : BufferUse::kEntered;
        asked.push_back({sublayer, use, 4 * (rows * size.per_row + size.fixed), size.per_member,
                         plan.ask<float>(use, size).id});
      }
      const FormsBuffer forms = plan.ask_forms(64, 2, ActivationForms::int8_bit(32));
      asked.push_back({sublayer, BufferUse::kComputing,
                       ActivationForms::bytes(128 * rows, 2 * rows, ActivationForms::int8_bit(32)),
                       false, forms.id});
    }
    const ScratchPlan::Layout layout = plan.lay_out(rows, members);
    const auto begin = [&](const Asked& a) {
      return layout.buffers[static_cast<size_t>(a.id)].offset;
    };
    const auto end = [&](const Asked& a) {
      const int64_t stride = layout.buffers[static_cast<size_t>(a.id)].member_bytes;
      EXPECT_GE(stride, a.per_member ? a.bytes : 0);
      return begin(a) + a.bytes + (a.per_member ? (members - 1) * stride : 0);
    };
    for (const Asked& a : asked) {
      EXPECT_EQ(begin(a) % 64, 0);
      EXPECT_LE(end(a), layout.bytes);
      for (const Asked& b : asked)
        if (&a != &b && a.bytes > 0 && b.bytes > 0 && used_together(a, b)) {
          EXPECT_TRUE(end(a) <= begin(b) || end(b) <= begin(a))
              << "sublayers " << a.sublayer << " and " << b.sublayer;
        }
    }
  }
}

TEST(Scratch, HasRoomForTheLargestOfThoseThatTakeTurns) {
  ScratchPlan plan;
  for (const int width : {10, 400, 70}) {
    plan.next_sublayer();
    plan.ask<float>(BufferUse::kComputing, {.per_row = width});
  }
  EXPECT_EQ(plan.lay_out(16, 1).bytes, 16 * 400 * 4);
}

}  // namespace
}  // namespace weir::model
