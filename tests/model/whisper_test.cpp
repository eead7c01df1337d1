// Whisper's decoder: how config.json describes it, and numbers that none can have.
#include <gtest/gtest.h>

#include <string>

#include "base/concat.h"
#include "model/families.h"
#include "model/layers/make_layer.h"

namespace weir::model {
namespace {

// Of whisper-tiny, but for `more`, which goes first: a key counts where it is first found.
Result<ModelSpec> spec_of(std::string_view more = "") {
  const std::string config = concat(
      {R"({"architectures":["WhisperForConditionalGeneration"],"model_type":"whisper",)", more,
       R"("d_model":384,"encoder_layers":4,"encoder_attention_heads":6,"encoder_ffn_dim":1536,)",
       R"("decoder_layers":4,"decoder_ffn_dim":1536,"num_mel_bins":80,"num_hidden_layers":4,)",
       R"("mask_time_prob":0.05,"classifier_proj_size":256,"vocab_size":51865})"});
  auto doc = JsonDoc::parse(config);
  EXPECT_TRUE(doc) << config;
  return spec_from_config(doc->root());
}

constexpr const char* kUsual = R"("decoder_attention_heads":6,"max_target_positions":448,)";

TEST(Whisper, IsADecoderWhoseTokensAttendToASound) {
  const Result<ModelSpec> spec = spec_of(kUsual);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->sublayers.size(), 12u);
  EXPECT_EQ(layer_count(*spec), 4);
  EXPECT_EQ(spec->context_max, 448);
  EXPECT_EQ(spec->learned_positions, 448);
  EXPECT_TRUE(spec->tied_head);
  const auto* self = std::get_if<Attention>(&spec->sublayers[0].op);
  const auto* cross = std::get_if<CrossAttention>(&spec->sublayers[1].op);
  const auto* network = std::get_if<Dense>(&spec->sublayers[2].op);
  ASSERT_TRUE(self && cross && network);
  EXPECT_TRUE(self->qkv_bias && !self->key_bias && self->out_bias);
  EXPECT_EQ(self->rope.dim, 0);
  EXPECT_EQ(cross->num_heads, 6);
  EXPECT_EQ(cross->head_dim, 64);
  EXPECT_EQ(cross->rows, 1500);
  EXPECT_FLOAT_EQ(cross->scale, 0.125f);
  EXPECT_TRUE(!network->gated && network->bias);
  EXPECT_EQ(spec->sublayers[1].pre->module, "encoder_attn_layer_norm");
  EXPECT_EQ(spec->sublayers[1].pre->kind, Norm::kLayer);
  const std::vector<kv::MemoryNeed> needs = needs_of(spec->sublayers[1]);
  ASSERT_EQ(needs.size(), 1u);
  EXPECT_EQ(needs[0], kv::MemoryNeed(kv::CrossNeed{
                          .heads = 6, .k_dim = 64, .v_dim = 64, .rows = 1500}));
  EXPECT_NE(describe(*spec).find("cross 6x64 to 1500 rows"), std::string::npos) << describe(*spec);
}

TEST(Whisper, RefusesWhatNoModelHas) {
  const auto refused = [](const std::string& more, std::string_view part) {
    const Result<ModelSpec> spec = spec_of(more);
    const std::string error = spec ? "" : spec.error().message;
    EXPECT_NE(error.find(part), std::string::npos) << more << ": " << error;
  };
  const std::string positions = R"("max_target_positions":448,)";
  refused(positions + R"("decoder_attention_heads":7,)", "a divisor of d_model, 384, found 7");
  refused(positions + R"("decoder_attention_heads":0,)", "decoder_attention_heads");
  refused(positions, "decoder_attention_heads");
  refused(R"("decoder_attention_heads":6,)", "max_target_positions");
  refused(R"("decoder_attention_heads":6,"max_target_positions":0,)", "max_target_positions");
  refused(std::string(kUsual) + R"("scale_embedding":true,)", "scale_embedding");
  refused(std::string(kUsual) + R"("max_source_positions":0,)", "max_source_positions");
  refused(std::string(kUsual) + R"("max_source_positions":70000,)", "max_source_positions");
  refused(std::string(kUsual) + R"("activation_function":"softsign",)", "activation_function");
  refused(std::string(kUsual) + R"("decoder_rope":1,)", "decoder_rope");
}

}  // namespace
}  // namespace weir::model
