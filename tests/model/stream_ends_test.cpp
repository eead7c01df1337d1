// What families may ask of a model beside its operations, on models described by hand: how the
// residual stream begins, when sublayers are added to it, and how the head reads it.
#include <gtest/gtest.h>

#include "model/hand_made_model.h"

namespace weir::model {
namespace {

constexpr size_t kWidth = kHidden;

// Both read the stream as it begins.
TEST(StreamEnds, ALateSublayerIsAddedAfterTheNextHasRead) {
  const Attention a = plain(16);
  Weights w = drawn(a);
  draw_attention(w, 1, a);
  const std::vector<float> late =
      logits_of(spec_of({{.op = a, .late = true}, {.op = a, .stored_layer = 1}}), w);
  const std::vector<float> beside = logits_of(
      spec_of({{.op = a}, {.op = a, .input = Sublayer::kSameAsBefore, .stored_layer = 1}}), w);
  EXPECT_LT(largest_difference(late, beside), 1e-5);
  EXPECT_GT(
      largest_difference(late, logits_of(spec_of({{.op = a}, {.op = a, .stored_layer = 1}}), w)),
      1e-2);
}

TEST(StreamEnds, EachPositionAddsItsVector) {
  const Attention a = plain(16);
  Weights w = drawn(a), with = drawn(a);
  ModelSpec spec = spec_of({{.op = a}});
  const std::vector<float>& embedding = w.at("model.embed_tokens.weight");
  const std::vector<float> table = with.draw("embed_positions.weight", 64, kHidden);
  std::vector<float> vectors;
  const std::vector<int32_t> tokens = prompt_tokens();
  for (size_t i = 0; i < tokens.size(); ++i)
    for (size_t c = 0; c < kWidth; ++c)
      vectors.push_back(embedding[static_cast<size_t>(tokens[i]) * kWidth + c] +
                        table[i * kWidth + c]);
  const std::vector<float> expected = logits_of(spec, w, vectors);
  spec.learned_positions = 64;
  EXPECT_LT(largest_difference(logits_of(spec, with), expected), 1e-5);
}

TEST(StreamEnds, RowsOfAUnitHeadCountByTheirDirection) {
  const Attention a = plain(16);
  Weights unit = drawn(a);
  std::vector<float>& head = unit.draw("lm_head.weight", kVocab, kHidden);
  for (size_t r = 0; r < kVocab; ++r) {
    const auto row = std::span(head).subspan(r * kWidth, kWidth);
    float squares = 0;
    for (const float x : row) squares += x * x;
    for (float& x : row) x /= std::sqrt(squares);
  }
  Weights stretched = drawn(a);
  std::vector<float>& longer = stretched.draw("lm_head.weight", kVocab, kHidden);
  for (size_t i = 0; i < longer.size(); ++i)
    longer[i] = head[i] * (0.5f + static_cast<float>(i / kWidth));
  ModelSpec plain_head = spec_of({{.op = a}});
  plain_head.tied_head = false;
  ModelSpec unit_head = plain_head;
  unit_head.unit_head = true;
  const std::vector<float> expected = logits_of(plain_head, unit);
  EXPECT_LT(largest_difference(logits_of(unit_head, stretched), expected), 1e-5);
  EXPECT_GT(largest_difference(logits_of(plain_head, stretched), expected), 1e-2);
  EXPECT_EQ(logits_of(unit_head, unit), expected);  // Nothing is divided twice.
}

}  // namespace
}  // namespace weir::model
