// Experts that a file has in one tensor for all of them: which numbers are whose, in every order in
// which families store them, and which of those can be read from disk as they lie.
#include "model/weight_map.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "model/slot_placer.h"

namespace weir::model {
namespace {

constexpr int32_t kExperts = 3, kWidth = 4, kHidden = 6;

class ExpertTensorsTest : public testing::Test {
 protected:
  ExpertTensorsTest() : numbers_(kExperts * 2 * kWidth * kHidden) {
    std::iota(numbers_.begin(), numbers_.end(), 0.0f);
  }

  // A file with gate_up as stored, and `with_down` down [experts, hidden, width] beside it.
  void store(bool transposed, bool interleaved, bool with_down = false) {
    spec_.family = "Test";
    spec_.expert_tensors = ExpertTensors{.gate_up = "mlp.gate_up",
                                         .down = "mlp.down",
                                         .transposed = transposed,
                                         .interleaved = interleaved};
    const auto* data = reinterpret_cast<const std::byte*>(numbers_.data());
    card::StoredTensor tensor;
    tensor.name = "model.layers.0.mlp.gate_up";
    tensor.tensor = {.type = DType::kF32, .rank = 3, .data = data};
    tensor.tensor.shape = transposed ? decltype(tensor.tensor.shape){kExperts, kHidden, 2 * kWidth}
                                     : decltype(tensor.tensor.shape){kExperts, 2 * kWidth, kHidden};
    std::vector<card::StoredTensor> tensors = {tensor};
    tensor.name = "model.layers.0.mlp.down";
    tensor.tensor.shape = {kExperts, kHidden, kWidth};
    if (with_down) tensors.push_back(tensor);
    ASSERT_TRUE(
        checkpoint_.add(FileView::borrow("file", std::as_bytes(std::span(numbers_))), tensors));
  }
  // Where a number of expert e's gate or up matrix is stored.
  size_t place(int32_t e, bool up, int32_t row, int32_t column) const {
    const ExpertTensors& t = *spec_.expert_tensors;
    const int32_t stored = t.interleaved ? 2 * row + (up ? 1 : 0) : row + (up ? kWidth : 0);
    return static_cast<size_t>(t.transposed ? (e * kHidden + column) * 2 * kWidth + stored
                                            : (e * 2 * kWidth + stored) * kHidden + column);
  }
  void expect_bound(bool up, Placer& placer, WeightStore& store) {
    WeightBinder binder(checkpoint_, spec_, format_, {}, store);
    const std::vector<Linear> bound = binder.experts(0, up ? "up_proj" : "gate_proj", kExperts,
                                                     kWidth, kHidden, /*bias=*/false, placer);
    const Result<void> finished = binder.finish();
    ASSERT_TRUE(finished) << finished.error().message;
    EXPECT_EQ(binder.tally().numbers(), kExperts * kWidth * kHidden);
    EXPECT_EQ(binder.tally().formats(), "F32");
    store.pack(team_, {});
    ASSERT_EQ(bound.size(), static_cast<size_t>(kExperts));
    for (int32_t e = 0; e < kExperts; ++e) {
      const auto* rows = static_cast<const float*>(bound[static_cast<size_t>(e)].floats.rows);
      if (&placer != &store) {
        EXPECT_EQ(rows, nullptr);
        continue;
      }
      for (int32_t i = 0; i < kWidth * kHidden; ++i)
        ASSERT_EQ(rows[i], numbers_[place(e, up, i / kHidden, i % kHidden)]) << e << " " << i;
    }
  }

  std::vector<float> numbers_;
  card::Checkpoint checkpoint_{"file"};
  ModelSpec spec_;
  const card::WeightFormat format_;
  ThreadTeam team_{1};
};

TEST_F(ExpertTensorsTest, RowByRowAreUsedInPlaceOrFromASlot) {
  store(/*transposed=*/false, /*interleaved=*/false);
  for (const bool up : {false, true}) {
    WeightStore memory;
    expect_bound(up, memory, memory);
    EXPECT_EQ(memory.packed_bytes(), 0);
    SlotPlacer slots;
    WeightStore none;
    expect_bound(up, slots, none);
    EXPECT_EQ(none.mapped_bytes(), 0);
    const std::vector<StoredMatrix> taken = slots.take();
    ASSERT_EQ(taken.size(), static_cast<size_t>(kExperts));
    for (int32_t e = 0; e < kExperts; ++e) {
      const StoredMatrix::Piece& piece = taken[static_cast<size_t>(e)].piece[0];
      EXPECT_EQ(piece.offset, 4 * place(e, up, 0, 0));
      EXPECT_EQ(piece.bytes, 4u * kWidth * kHidden);
    }
  }
}

TEST_F(ExpertTensorsTest, TheirShapeCountsMoreThanWhatTheFamilySays) {
  store(/*transposed=*/false, /*interleaved=*/false, /*with_down=*/true);
  spec_.expert_tensors->transposed = true;
  WeightStore memory;
  WeightBinder binder(checkpoint_, spec_, format_, {}, memory);
  const auto bind = [&](const char* part, int32_t n, int32_t k) {
    return binder.experts(0, part, kExperts, n, k, /*bias=*/false, memory);
  };
  const std::vector<Linear> up = bind("up_proj", kWidth, kHidden);
  bind("gate_proj", kWidth, kHidden);
  const std::vector<Linear> down = bind("down_proj", kHidden, kWidth);
  ASSERT_TRUE(binder.finish()) << binder.finish().error().message;
  memory.pack(team_, {});
  spec_.expert_tensors->transposed = false;  // As place() is to have it.
  for (int32_t e = 0; e < kExperts; ++e)
    for (int32_t i = 0; i < kWidth * kHidden; ++i) {
      const auto at = static_cast<size_t>(e);
      ASSERT_EQ(static_cast<const float*>(up[at].floats.rows)[i],
                numbers_[place(e, true, i / kHidden, i % kHidden)]);
      ASSERT_EQ(static_cast<const float*>(down[at].floats.rows)[i],
                numbers_[static_cast<size_t>(e * kWidth * kHidden + i)]);
    }
}

class RearrangedExpertsTest : public ExpertTensorsTest,
                              public testing::WithParamInterface<std::pair<bool, bool>> {};

TEST_P(RearrangedExpertsTest, AreGatheredIntoMemoryOnly) {
  const auto [transposed, interleaved] = GetParam();
  store(transposed, interleaved);
  for (const bool up : {false, true}) {
    WeightStore memory;
    expect_bound(up, memory, memory);
    EXPECT_EQ(memory.mapped_bytes(), 0);
    SlotPlacer slots;
    WeightBinder binder(checkpoint_, spec_, format_, {}, memory);
    binder.experts(0, "up_proj", kExperts, kWidth, kHidden, /*bias=*/false, slots);
    ASSERT_TRUE(binder.failed());
    EXPECT_NE(binder.finish().error().message.find("tensor 'model.layers.0.mlp.gate_up': expected"),
              std::string::npos)
        << binder.finish().error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, RearrangedExpertsTest,
                         testing::Values(std::pair{true, false}, std::pair{false, true},
                                         std::pair{true, true}));

}  // namespace
}  // namespace weir::model
