// What families may ask of attention beyond plain heads, on models described by hand: each beside
// another model that computes the same in a simpler way.
#include <gtest/gtest.h>

#include "model/hand_made_model.h"

namespace weir::model {
namespace {

// A gate that does not depend on the row scales columns of o_proj.
TEST(AttentionShape, AGateMultipliesWhatAHeadHasAttended) {
  Attention gated = plain(16), simple = plain(16);
  gated.out_gate = Attention::kAfterQuery;
  gated.qkv_bias = true;
  Weights a = drawn(gated), b = drawn(simple);
  const std::vector<float> gates = a.draw("gates", 4 * 16);
  a.erase("gates");
  std::vector<float>& bias = a.draw("model.layers.0.self_attn.q_proj.bias", 4 * 32);
  for (const char* part :
       {"model.layers.0.self_attn.k_proj.bias", "model.layers.0.self_attn.v_proj.bias"})
    std::ranges::fill(a.draw(part, 2 * 16), 0.0f);
  std::vector<float>&q = a.at(in_layer(0, "q_proj")), &o = b.at(in_layer(0, "o_proj"));
  const std::vector<float>& simple_q = b.at(in_layer(0, "q_proj"));
  for (size_t h = 0; h < 4; ++h)
    for (size_t d = 0; d < 16; ++d) {
      bias[h * 32 + d] = 0;
      bias[h * 32 + 16 + d] = 4 * gates[h * 16 + d];
      for (size_t i = 0; i < kHidden; ++i) {
        q[(h * 32 + d) * kHidden + i] = simple_q[(h * 16 + d) * kHidden + i];
        q[(h * 32 + 16 + d) * kHidden + i] = 0;
        o[i * 64 + h * 16 + d] /= 1 + std::exp(-4 * gates[h * 16 + d]);
      }
    }
  EXPECT_LT(largest_difference(logits_of(spec_of({{.op = gated}}), a),
                               logits_of(spec_of({{.op = simple}}), b)),
            1e-4);
}

// Gates of a module of their own are those whose rows follow the queries'.
TEST(AttentionShape, GatesMayHaveAModuleOfTheirOwn) {
  Attention own = plain(16), after = plain(16);
  own.out_gate = Attention::kOwnModule;
  after.out_gate = Attention::kAfterQuery;
  Weights a = drawn(own), b = drawn(after);
  const std::vector<float>&q = a.at(in_layer(0, "q_proj")),
        &gate = a.draw(in_layer(0, "gate_proj"), 4 * 16, kHidden);
  std::vector<float>& both = b.at(in_layer(0, "q_proj"));
  for (size_t h = 0; h < 4; ++h)
    for (size_t i = 0; i < 16 * kHidden; ++i) {
      both[h * 32 * kHidden + i] = q[h * 16 * kHidden + i];
      both[(h * 32 + 16) * kHidden + i] = gate[h * 16 * kHidden + i];
    }
  EXPECT_EQ(largest_difference(logits_of(spec_of({{.op = own}}), a),
                               logits_of(spec_of({{.op = after}}), b)),
            0);
}

// In chunks of at least all tokens each sees those before it; in smaller ones, fewer.
TEST(AttentionShape, TokensMaySeeTheirChunkAlone) {
  Attention all = plain(16), chunked = all;
  chunked.chunks = true;
  const Weights w = drawn(all);
  const auto differs = [&](int chunk) {
    chunked.window = chunk;
    return largest_difference(logits_of(spec_of({{.op = chunked}}), w),
                              logits_of(spec_of({{.op = all}}), w));
  };
  EXPECT_EQ(differs(kTokens), 0);
  EXPECT_GT(differs(kTokens - 1), 1e-3);  // The last token sees itself.
}

// One step of positions for all tokens scales all queries alike.
TEST(AttentionShape, QueriesMayGrowWithTheirPosition) {
  Attention grown = plain(16), scaled = plain(16);
  grown.position_beta = 0.5f;
  grown.position_step = grown.position_shift = 2 * kTokens;
  scaled.scale *= 1 + 0.5f * std::log(2.0f);
  const Weights w = drawn(grown);
  const auto difference = [&] {
    return largest_difference(logits_of(spec_of({{.op = grown}}), w),
                              logits_of(spec_of({{.op = scaled}}), w));
  };
  EXPECT_LT(difference(), 1e-4);
  grown.position_step = 8;
  EXPECT_GT(difference(), 1e-3);
}

// Values of 8 numbers are values of 16 of which o_proj ignores eight.
TEST(AttentionShape, ValuesMayBeNarrowerThanKeys) {
  Attention narrow = plain(16), wide = plain(16);
  narrow.v_head_dim = 8;
  Weights a = drawn(narrow), b = drawn(wide);
  const std::vector<float>&v = a.at(in_layer(0, "v_proj")), &o = a.at(in_layer(0, "o_proj"));
  std::vector<float>&wide_v = b.at(in_layer(0, "v_proj")), &wide_o = b.at(in_layer(0, "o_proj"));
  std::ranges::fill(wide_o, 0.0f);
  for (size_t d = 0; d < 8; ++d)
    for (size_t i = 0; i < kHidden; ++i) {
      for (size_t h = 0; h < 2; ++h)
        wide_v[(h * 16 + d) * kHidden + i] = v[(h * 8 + d) * kHidden + i];
      for (size_t h = 0; h < 4; ++h) wide_o[i * 64 + h * 16 + d] = o[i * 32 + h * 8 + d];
    }
  EXPECT_LT(largest_difference(logits_of(spec_of({{.op = narrow}}), a),
                               logits_of(spec_of({{.op = wide}}), b)),
            1e-4);
}

// With weights that are the same for both numbers of a pair, a norm and a rotation commute.
TEST(AttentionShape, ANormMayFollowTheRope) {
  Attention before = plain(16);
  before.qk_norm = Attention::kPerHead;
  Attention after = before;
  after.qk_norm_after_rope = true;
  Weights w = drawn(before);
  for (const char* part : {"q_norm", "k_norm"}) {
    std::vector<float>& norm = w.draw(in_layer(0, part), 16);
    std::copy_n(norm.begin(), 8, norm.begin() + 8);
  }
  const auto difference = [&] {
    return largest_difference(logits_of(spec_of({{.op = before}}), w),
                              logits_of(spec_of({{.op = after}}), w));
  };
  EXPECT_LT(difference(), 1e-4);
  w.draw(in_layer(0, "q_norm"), 16);
  w.draw(in_layer(0, "k_norm"), 16);
  EXPECT_GT(difference(), 1e-3);
}

// A norm with the same weights for each head is one with weights of each head's own, all alike.
TEST(AttentionShape, HeadsMayHaveNormsOfTheirOwn) {
  Attention same = plain(16), own = plain(16);
  same.qk_norm = Attention::kPerHead;
  own.qk_norm = Attention::kEachHead;
  Weights a = drawn(same), b = drawn(own);
  for (const char* part : {"q_norm", "k_norm"}) {
    const int32_t heads = part == std::string_view("q_norm") ? 4 : 2;
    const std::vector<float>& norm = a.draw(in_layer(0, part), 16);
    std::vector<float>& norms = b.draw(in_layer(0, part), heads, 16);
    for (size_t i = 0; i < norms.size(); ++i) norms[i] = norm[i % 16];
  }
  const auto difference = [&] {
    return largest_difference(logits_of(spec_of({{.op = same}}), a),
                              logits_of(spec_of({{.op = own}}), b));
  };
  EXPECT_EQ(difference(), 0);
  std::ranges::fill(std::span(b.at(in_layer(0, "q_norm"))).subspan(48), 1.0f);  // The last head's.
  EXPECT_GT(difference(), 1e-3);
}

// Heads whose mean is 0 are centred already; no weights are weights of 1.
TEST(AttentionShape, ANormOfHeadsMayBeCentredAndHaveNoWeights) {
  Attention rms = plain(16), layer = plain(16);
  rms.qk_norm = layer.qk_norm = Attention::kPerHead;
  layer.qk_norm_kind = Norm::kLayer;
  layer.qk_norm_weight = false;
  Weights a = drawn(rms), b = drawn(layer);
  for (const char* part : {"q_norm", "k_norm"})
    std::ranges::fill(a.draw(in_layer(0, part), 16), 1.0f);
  const auto difference = [&] {
    return largest_difference(logits_of(spec_of({{.op = rms}}), a),
                              logits_of(spec_of({{.op = layer}}), b));
  };
  EXPECT_GT(difference(), 1e-3);
  for (const char* part : {"q_proj", "k_proj"}) {
    std::vector<float>& w = a.at(in_layer(0, part));
    for (size_t head = 0; head < w.size(); head += 16 * kHidden)
      for (size_t i = head; i < head + kHidden; ++i) {
        float mean = 0;
        for (size_t d = 0; d < 16; ++d) mean += w[i + d * kHidden] / 16;
        for (size_t d = 0; d < 16; ++d) w[i + d * kHidden] -= mean;
      }
    b.at(in_layer(0, part)) = w;
  }
  EXPECT_LT(difference(), 1e-4);
}

// How far it is cut is compared with recorded answers: family olmo.
TEST(AttentionShape, ALimitCutsOnlyWhatExceedsIt) {
  Attention free = plain(16), limited = plain(16);
  limited.qkv_limit = 100;
  const Weights w = drawn(free);
  const auto difference = [&] {
    return largest_difference(logits_of(spec_of({{.op = free}}), w),
                              logits_of(spec_of({{.op = limited}}), w));
  };
  EXPECT_EQ(difference(), 0);
  limited.qkv_limit = 0.1f;
  EXPECT_GT(difference(), 1e-3);
}

// Two sublayers beside each other, of which the second has the first one's keys and values.
TEST(AttentionShape, ASublayerMayReadTheKeysOfOneBeforeIt) {
  const Attention op = plain(16);
  Weights w = drawn(op);
  draw_attention(w, 1, op);
  for (const char* part : {"k_proj", "v_proj"}) w.copy(in_layer(0, part), in_layer(1, part));
  Sublayer second = {.op = op, .input = Sublayer::kSameAsBefore, .stored_layer = 1};
  const std::vector<float> own = logits_of(spec_of({{.op = op}, second}), w);
  for (const char* part : {"k_proj", "v_proj"}) w.erase(in_layer(1, part));
  second.memory_of = 0;
  const ModelSpec shared = spec_of({{.op = op}, second});
  EXPECT_EQ(logits_of(shared, w), own);
  EXPECT_NE(describe(shared).find("keys of layer 0"), std::string::npos);
}

// Values that are keys are those of a module with the same weights.
TEST(AttentionShape, ValuesMayBeKeysBeforeTheirRope) {
  Attention same = plain(16), own = plain(16);
  same.values_are_keys = true;
  Weights a = drawn(same), b = drawn(own);
  a.erase(in_layer(0, "v_proj"));
  b.copy(in_layer(0, "k_proj"), in_layer(0, "v_proj"));
  EXPECT_EQ(logits_of(spec_of({{.op = same}}), a), logits_of(spec_of({{.op = own}}), b));
}

// A norm of values of length 1 each leaves them, scaled to a root mean square of 1.
TEST(AttentionShape, ANormOfValuesDoesNotSeeTheirLength) {
  Attention op = plain(16);
  const auto change = [&] {
    const Weights a = drawn(op);
    Weights b = a;
    for (float& x : b.at(in_layer(0, "v_proj"))) x *= 3;
    return largest_difference(logits_of(spec_of({{.op = op}}), a),
                              logits_of(spec_of({{.op = op}}), b));
  };
  EXPECT_GT(change(), 1e-3);
  op.v_norm = true;
  EXPECT_LT(change(), 1e-4);
}

// What is held joins the next sublayer's before the norm of both: with that norm alone it is the
// sum that a parallel block adds.
TEST(AttentionShape, WhatIsHeldJoinsWhatTheNextSublayerGives) {
  const Attention op = plain(16);
  Weights w = drawn(op);
  draw_attention(w, 1, op);
  for (const char* norm : {"model.layers.0.after.weight", "model.layers.1.after.weight"})
    std::ranges::fill(w.draw(norm, kHidden), 0.5f);
  std::ranges::fill(w.draw("model.layers.1.both.weight", kHidden), 0.0f);
  const Norm after = {.module = "after"};
  std::vector<Sublayer> held = {{.op = op, .post = after, .held = true},
                                {.op = op, .post = after, .joint = Norm{.module = "both"}}};
  held[1].stored_layer = 1;
  // A norm of weight 0 gives nothing: the stream is the embedding's.
  Weights none = w;
  for (const int layer : {0, 1}) std::ranges::fill(none.at(in_layer(layer, "o_proj")), 0.0f);
  const std::vector<float> alone = logits_of(spec_of(held), w);
  EXPECT_EQ(alone, logits_of(spec_of(held), none));
  // The final norm does not see by what the stream is scaled.
  std::ranges::fill(w.at("model.layers.1.both.weight"), 0.5f);
  const std::vector<float> both = logits_of(spec_of(held), w);
  EXPECT_GT(largest_difference(both, alone), 1e-3);
  held[1].stream_scale = "factor";
  w.draw("model.layers.1.factor", 1)[0] = 2;
  EXPECT_LT(largest_difference(logits_of(spec_of(held), w), both), 1e-4);
  // Either part counts.
  for (const int layer : {0, 1}) {
    Weights one = w;
    std::ranges::fill(one.at(in_layer(layer, "o_proj")), 0.0f);
    EXPECT_GT(largest_difference(logits_of(spec_of(held), one), both), 1e-3) << layer;
  }
}

TEST(AttentionShape, OfKeysThatDoNotFitIsAnError) {
  Attention other = plain(16);
  other.num_kv_heads = 4;
  const auto error_of = [](std::vector<Sublayer> sublayers) {
    const auto checked = check_spec(spec_of(std::move(sublayers)));
    return checked ? "" : checked.error().message;
  };
  EXPECT_NE(error_of({{.op = other}, {.op = plain(16), .memory_of = 0}})
                .find("expected a sublayer before it with keys and values like its own"),
            std::string::npos);
  EXPECT_NE(error_of({{.op = plain(16), .memory_of = 0}}).find("found sublayer 0"),
            std::string::npos);
  EXPECT_NE(error_of({{.op = plain(16), .input = Sublayer::kSameAsBefore}})
                .find("expected a sublayer before it whose input it reads"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::model
