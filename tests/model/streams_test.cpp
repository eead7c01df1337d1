// What Gemma 3n asks for beside attention, on models described by hand: each beside another model
// that computes the same in a simpler way.
#include <gtest/gtest.h>

#include "model/hand_made_model.h"

namespace weir::model {
namespace {

const Norm kAfter = {.module = "after"};

Weights drawn_with_norm(const Attention& op) {
  Weights w = drawn(op);
  std::ranges::fill(w.draw("model.layers.0.after.weight", kHidden), 0.5f);
  return w;
}

void fill_identity(std::vector<float>& matrix) {
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = i % (kHidden + 1) == 0 ? 1.0f : 0.0f;
}

// Two streams that begin alike and are corrected alike are one.
TEST(Streams, ThatAreAlikeAreOne) {
  const Attention op = plain(16);
  const Weights plain_weights = drawn_with_norm(op);
  Weights w = plain_weights;
  for (const char* name : {"model.altup_projections.0", "model.altup_unembed_projections.0"})
    fill_identity(w.draw(std::string(name) + ".weight", kHidden, kHidden));
  const std::string altup = "model.layers.0.altup.";
  std::ranges::fill(w.draw(altup + "router_norm.weight", kHidden), 1.0f);
  w.draw(altup + "modality_router.weight", 2, kHidden);
  std::vector<float>& predicts = w.draw(altup + "prediction_coefs.weight", 4, 2);
  std::vector<float>& corrects = w.draw(altup + "correction_coefs.weight", 2, 2);
  std::ranges::fill(predicts, 0.0f);
  std::ranges::fill(corrects, 0.0f);
  ModelSpec two = spec_of({{.op = op, .post = kAfter, .predicts = true, .corrects = true}});
  two.streams = {.count = 2, .active = 0, .scaled = false};
  const std::vector<float> one = logits_of(spec_of({{.op = op, .post = kAfter}}), plain_weights);
  EXPECT_LT(largest_difference(logits_of(two, w), one), 1e-4);
  std::ranges::fill(w.at(altup + "correction_coefs.weight"), 30.0f);
  EXPECT_GT(largest_difference(logits_of(two, w), one), 1e-3);
  two.streams->count = 9;
  const auto checked = check_spec(two);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("altup_num_inputs"), std::string::npos);
}

// There is one way to and from the residual stream.
TEST(Streams, DoNotComeWithHyperConnections) {
  ModelSpec spec = spec_of({{.op = plain(16), .hyper = "attn_hc"}});
  spec.hyper = HyperConnections{};
  EXPECT_TRUE(check_spec(spec));
  spec.streams = {.count = 2, .active = 0};
  const auto checked = check_spec(spec);
  ASSERT_FALSE(checked);
  for (const char* key : {"altup_num_inputs", "hc_mult"})
    EXPECT_NE(checked.error().message.find(key), std::string::npos) << checked.error().message;
}

// What adds its own input doubles the stream, which half of it undoes.
TEST(Streams, ASublayerMayAddItsInput) {
  const Attention op = plain(16);
  Weights w = drawn_with_norm(op);
  const std::vector<float> alone = logits_of(spec_of({{.op = op, .post = kAfter}}), w);
  w.draw("model.layers.0.low_rank.up_proj.weight", 8, kHidden);
  std::vector<float>& down = w.draw("model.layers.0.low_rank.down_proj.weight", kHidden, 8);
  const std::vector<float> drawn_down = down;
  std::ranges::fill(down, 0.0f);
  const Sublayer low_rank = {.op = Dense{.width = 8, .gated = false, .linear = true},
                             .post = kAfter,
                             .plus_input = true,
                             .stream_factor = 0.5f};
  const ModelSpec both = spec_of({{.op = op, .post = kAfter}, low_rank});
  EXPECT_LT(largest_difference(logits_of(both, w), alone), 1e-4);
  down = drawn_down;
  EXPECT_GT(largest_difference(logits_of(both, w), alone), 1e-3);
}

// Gates of which none is far enough above the mean let nothing pass.
TEST(Streams, GatesMayBeCut) {
  const Attention op = plain(16);
  Weights w = drawn_with_norm(op);
  const std::vector<float> alone = logits_of(spec_of({{.op = op}}), [&] {
    Weights without = w;
    without.erase("model.layers.0.after.weight");
    return without;
  }());
  w.erase("model.layers.0.after.weight");
  for (const char* part : {"gate_proj", "up_proj"})
    w.draw(std::string("model.layers.0.mlp.") + part + ".weight", 24, kHidden);
  w.draw("model.layers.0.mlp.down_proj.weight", kHidden, 24);
  const auto difference = [&](float deviations) {
    const Dense cut = {.width = 24, .gate_cut = deviations};
    return largest_difference(logits_of(spec_of({{.op = op}, {.op = cut}}), w), alone);
  };
  EXPECT_EQ(difference(5), 0);  // No more than sqrt(23) of 24 numbers.
  EXPECT_GT(difference(1), 1e-3);
}

}  // namespace
}  // namespace weir::model
