// Where weights go: what each placer returns for the ways in which matrices are stored.
#include "model/placer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "base/huge_pages.h"
#include "kernels/cpu_ops.h"
#include "kernels/repack.h"
#include "model/slot_placer.h"
#include "model/weight_store.h"
#include "model/weight_tally.h"

namespace weir::model {
namespace {

constexpr int32_t kRows = 24, kColumns = 64, kGroup = 32;

// A file with a matrix of floats [24, 64], and one of 4-bit codes.
class PlacerTest : public testing::Test {
 protected:
  static constexpr uint64_t kWordBytes = kRows * kColumns / 2;
  static constexpr uint64_t kScaleBytes = kRows * kColumns / kGroup * 2;

  PlacerTest() : floats_(kRows * kColumns), codes_(kWordBytes + 2 * kScaleBytes) {
    std::iota(floats_.begin(), floats_.end(), 1.0f);
    for (size_t i = 0; i < kWordBytes; ++i) codes_[i] = static_cast<uint8_t>(37 * i);
    // Scales and biases are halves from 1 to 2.
    for (size_t i = kWordBytes; i < codes_.size(); i += 2)
      codes_[i] = static_cast<uint8_t>(i), codes_[i + 1] = 0x3c;
    float_file_ = FileView::borrow("floats", std::as_bytes(std::span(floats_)));
    code_file_ = FileView::borrow("codes", std::as_bytes(std::span(codes_)));
  }

  StoredMatrix floats() const {
    StoredMatrix m;
    m.name = "layer.floats";
    m.linear.n = m.linear.floats.n = kRows;
    m.linear.k = m.linear.floats.k = kColumns;
    m.piece[0] = {&float_file_, 0, 0, sizeof(float) * floats_.size()};
    m.pieces = 1;
    m.row_step = kColumns;
    return m;
  }
  // The same numbers as the columns of a matrix [64, 24].
  StoredMatrix turned_floats() const {
    StoredMatrix m = floats();
    m.name = "layer.turned";
    std::swap(m.linear.n, m.linear.k);
    std::swap(m.linear.floats.n, m.linear.floats.k);
    m.row_step = 1;
    m.column_step = kColumns;
    return m;
  }
  StoredMatrix codes() const {
    StoredMatrix m;
    m.name = "layer.codes";
    m.linear = {.n = kRows,
                .k = kColumns,
                .held = Held::kCodes,
                .quant = {.n = kRows,
                          .k = kColumns,
                          .group = kGroup,
                          .bits = 4,
                          .scale_type = kernels::FloatType::kF16}};
    m.format = card::MatrixFormat{.bits = 4, .group = kGroup};
    m.scale_type = DType::kF16;
    m.piece = {{{&code_file_, 1, 0, kWordBytes},
                {&code_file_, 1, kWordBytes, kScaleBytes},
                {&code_file_, 1, kWordBytes + kScaleBytes, kScaleBytes}}};
    m.pieces = 3;
    m.row_step = kColumns;
    return m;
  }
  kernels::StoredQuant stored_codes() const {
    return {.n = kRows,
            .k = kColumns,
            .group = kGroup,
            .bits = 4,
            .scale_type = kernels::FloatType::kF16,
            .words = codes_.data(),
            .scales = codes_.data() + kWordBytes,
            .biases = codes_.data() + kWordBytes + kScaleBytes};
  }
  // The numbers of a matrix of float32 rows.
  static std::vector<float> rows_of(const Linear& linear) {
    const auto* rows = static_cast<const float*>(linear.floats.rows);
    return {rows, rows + linear.macs()};
  }
  std::vector<float> turned() const {
    std::vector<float> out(floats_.size());
    for (size_t r = 0; r < kRows; ++r)
      for (size_t c = 0; c < kColumns; ++c) out[c * kRows + r] = floats_[r * kColumns + c];
    return out;
  }

  std::vector<float> floats_;
  std::vector<uint8_t> codes_;
  FileView float_file_, code_file_;
  ThreadTeam team_{2};
};

TEST_F(PlacerTest, TheStoreLeavesFloatsInTheirFile) {
  WeightStore store;
  const Result<Linear> placed = store.place(floats());
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_EQ(placed->floats.rows, floats_.data());
  EXPECT_EQ(store.mapped_bytes(), static_cast<int64_t>(sizeof(float) * floats_.size()));
  EXPECT_EQ(store.packed_bytes(), 0);
}

TEST_F(PlacerTest, TheStoreCopiesFloatsWhereItIsToldTo) {
  WeightStore store;
  store.copy_floats();
  const Result<Linear> placed = store.place(floats());
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_NE(placed->floats.rows, floats_.data());
  EXPECT_EQ(rows_of(*placed), std::vector<float>(floats_.size())) << "nothing is read before";
  store.pack(team_, {});
  EXPECT_EQ(rows_of(*placed), floats_);
  EXPECT_EQ(store.mapped_bytes(), 0);
}

TEST_F(PlacerTest, TheStorePacksCodes) {
  WeightStore store;
  const Result<Linear> placed = store.place(codes());
  ASSERT_TRUE(placed) << placed.error().message;
  ASSERT_TRUE(placed->has_codes());
  store.pack(team_, {});
  const auto words = static_cast<size_t>(kernels::packed_word_bytes(kRows, kColumns, 4));
  const auto scales = static_cast<size_t>(
      kernels::packed_scale_bytes(kRows, kColumns, kGroup, kernels::FloatType::kF16));
  auto expected = HugeBuffer::allocate(words + scales + 64);
  ASSERT_TRUE(expected);
  auto* memory = reinterpret_cast<uint8_t*>(expected->data());
  uint8_t* expected_scales = memory + (words + 63) / 64 * 64;
  kernels::repack_blocks(stored_codes(), 0, (kRows + 15) / 16, memory, expected_scales);
  EXPECT_EQ(std::memcmp(placed->quant.words, memory, words), 0);
  EXPECT_EQ(std::memcmp(placed->quant.scales, expected_scales, scales), 0);
}

TEST_F(PlacerTest, TheStoreGathersWhatIsNotStoredRowByRow) {
  WeightStore store;
  const Result<Linear> placed = store.place(turned_floats());
  ASSERT_TRUE(placed) << placed.error().message;
  store.pack(team_, {});
  EXPECT_EQ(rows_of(*placed), turned());
}

// Two rows of every six, from the third one on.
TEST_F(PlacerTest, TheStoreBringsRunsOfRowsTogether) {
  const RowRuns runs = {.length = 2, .step = 6};
  StoredMatrix some = floats();
  some.linear.n = some.linear.floats.n = 8;
  some.piece[0].offset = 2 * kColumns * sizeof(float);
  some.runs = runs;
  WeightStore store;
  const Result<Linear> placed = store.place(some);
  ASSERT_TRUE(placed) << placed.error().message;
  const Result<const float*> widened =
      store.add_widened(DType::kF32, std::as_bytes(std::span(floats_)).data(), 8, 0.5f, runs);
  ASSERT_TRUE(widened);
  store.pack(team_, {});
  const std::vector<float> found = rows_of(*placed);
  for (size_t row = 0; row < 8; ++row) {
    const size_t stored = row / 2 * 6 + row % 2;
    for (size_t c = 0; c < kColumns; ++c)
      EXPECT_EQ(found[row * kColumns + c], floats_[(stored + 2) * kColumns + c]);
    EXPECT_EQ((*widened)[row], floats_[stored] + 0.5f);
  }
}

// Four rows of every eight: a block of sixteen has rows of several runs.
TEST_F(PlacerTest, TheStorePacksRunsOfCodes) {
  StoredMatrix some = codes();
  some.linear.n = some.linear.quant.n = kRows / 2;
  some.runs = {.length = 4, .step = 8};
  WeightStore store;
  const Result<Linear> placed = store.place(some), all = store.place(codes());
  ASSERT_TRUE(placed && all);
  store.pack(team_, {});
  std::vector<float> found(kColumns), expected(kColumns);
  const kernels::Ops ops = kernels::ops_for(kernels::Isa::kScalar);
  for (int32_t row = 0; row < kRows / 2; ++row) {
    ops.dequantise_row(placed->quant, row, found.data());
    ops.dequantise_row(all->quant, row / 4 * 8 + row % 4, expected.data());
    EXPECT_EQ(found, expected) << row;
  }
}

TEST_F(PlacerTest, TheStoreMakesFloatsOfCodesThatAreWantedAsColumns) {
  StoredMatrix matrix = codes();
  matrix.linear = turned_floats().linear;
  matrix.row_step = 1;
  matrix.column_step = kColumns;
  WeightStore store;
  const Result<Linear> placed = store.place(matrix);
  ASSERT_TRUE(placed) << placed.error().message;
  store.pack(team_, {});
  std::vector<float> expected(floats_.size());
  kernels::dequantise_turned(stored_codes(), expected.data());
  EXPECT_EQ(rows_of(*placed), expected);
}

TEST_F(PlacerTest, TheStoreNamesTheTensorForWhichThereIsNoMemory) {
  StoredMatrix matrix = codes();
  matrix.linear.n = matrix.linear.k = matrix.linear.quant.n = matrix.linear.quant.k = 1 << 30;
  matrix.row_step = matrix.linear.k;
  WeightStore store;
  const Result<Linear> placed = store.place(matrix);
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().code, ErrorCode::kCapacity);
  EXPECT_EQ(placed.error().message.find("tensor 'layer.codes': no memory for"), 0u)
      << placed.error().message;
}

TEST_F(PlacerTest, ASlotHasShapeAndFormAndNoWeightsYet) {
  SlotPlacer slots;
  const Result<Linear> quantised = slots.place(codes()), plain = slots.place(floats());
  ASSERT_TRUE(quantised && plain);
  EXPECT_TRUE(quantised->has_codes());
  EXPECT_EQ(quantised->quant.words, nullptr);
  EXPECT_EQ(quantised->quant.scales, nullptr);
  EXPECT_EQ(quantised->weight_bytes(), WeightStore().place(codes())->weight_bytes());
  EXPECT_EQ(plain->held, Held::kFloats);
  EXPECT_EQ(plain->floats.rows, nullptr);
  EXPECT_EQ(plain->weight_bytes(), WeightStore().place(floats())->weight_bytes());
  const std::vector<StoredMatrix> taken = slots.take();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].name, "layer.codes");
  EXPECT_EQ(taken[0].piece[1].offset, kWordBytes);
  EXPECT_EQ(taken[1].name, "layer.floats");
  EXPECT_TRUE(slots.take().empty());
}

TEST_F(PlacerTest, ASlotTakesOnlyWhatIsStoredRowByRow) {
  SlotPlacer slots;
  const Result<Linear> placed = slots.place(turned_floats());
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().message,
            "--stream-experts: tensor 'layer.turned': expected experts whose rows lie one after "
            "another in the file, found some that have to be rearranged");
  EXPECT_TRUE(slots.take().empty());
}

TEST_F(PlacerTest, WhatIsPlacedCountsByFormat) {
  WeightTally tally;
  EXPECT_EQ(tally.formats(), "");
  for (int i = 0; i < 3; ++i) tally.add(codes());
  EXPECT_EQ(tally.formats(), "4-bit g32");
  tally.add(floats());
  tally.add_vector(10);
  EXPECT_EQ(tally.numbers(), 4 * kRows * kColumns + 10);
  EXPECT_EQ(tally.formats(), "4-bit g32 75 %, F32 25 %");
}

}  // namespace
}  // namespace weir::model
