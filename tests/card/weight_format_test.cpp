#include "card/weight_format.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::card {
namespace {

TEST(WeightFormat, ReadsQuantisationWithOverrides) {
  const auto doc = JsonDoc::parse(
      R"({"quantization":{"group_size":64,"bits":4,"mode":"affine","lm_head":{"bits":6},"a.b":false,"c":{"group_size":32,"bits":8}}})");
  const auto format = WeightFormat::from_config(doc->root());
  ASSERT_TRUE(format) << format.error().message;
  EXPECT_TRUE(format->quantised());
  EXPECT_EQ(format->of("a.b")->bits, 4);
  EXPECT_EQ(format->of("lm_head")->bits, 6);
  EXPECT_EQ(format->of("lm_head")->group, 64);
  const MatrixFormat c = *format->of("c");
  EXPECT_EQ(c.group, 32);
  EXPECT_EQ(c.row_words(64), 16);
  EXPECT_EQ(c.row_scales(64), 2);
}

TEST(WeightFormat, ReadsModesOfMlx) {
  const auto doc = JsonDoc::parse(
      R"({"quantization":{"group_size":32,"bits":4,"mode":"mxfp4",
          "a":{"group_size":32,"bits":8},"b":{"group_size":16,"bits":4,"mode":"nvfp4"}}})");
  const auto format = WeightFormat::from_config(doc->root());
  ASSERT_TRUE(format) << format.error().message;
  EXPECT_EQ(format->of("c")->layout, MatrixFormat::Layout::kMlxFloats);
  EXPECT_EQ(format->of("a")->layout, MatrixFormat::Layout::kMlx);
  EXPECT_EQ(format->of("a")->bits, 8);
  EXPECT_EQ(format->of("b")->group, 16);
}

TEST(WeightFormat, ReadsGptqAndTheFirstRuleThatMatches) {
  const auto doc = JsonDoc::parse(
      R"({"quantization_config":{"quant_method":"gptq","bits":4,"group_size":-1,"dynamic":{
          "-:a\\..*":{},"+:.*down$":{"bits":8},".*down":{"bits":2,"group_size":64}}}})");
  const auto format = WeightFormat::from_config(doc->root());
  ASSERT_TRUE(format) << format.error().message;
  EXPECT_EQ(format->of("a.down")->bits, 4);
  EXPECT_EQ(format->of("a.down")->zero_less, 1);
  EXPECT_EQ(format->of("b.down")->bits, 8);
  EXPECT_EQ(format->of("b.down")->group, 0);
  EXPECT_EQ(format->of("b.down.x")->bits, 2);
  EXPECT_EQ(format->of("b.down.x")->group, 64);
}

TEST(WeightFormat, FindsTheNarrowestGroupOfCompressedTensors) {
  const auto doc = JsonDoc::parse(
      R"({"quantization_config":{"quant_method":"compressed-tensors","config_groups":{
          "all":{"targets":["Linear"],"weights":{"num_bits":8,"strategy":"channel"}},
          "some":{"targets":["re:.*mlp.*"],
                  "weights":{"num_bits":4,"strategy":"group","group_size":32,"symmetric":false}},
          "one":{"targets":["a.mlp.up"],"weights":{"num_bits":8,"type":"float","strategy":"block",
                 "block_structure":[128,64]}}}}})");
  const auto format = WeightFormat::from_config(doc->root());
  ASSERT_TRUE(format) << format.error().message;
  EXPECT_EQ(format->of("a.attn.q")->group, 0);
  EXPECT_EQ(format->of("a.mlp.down")->bits, 4);
  EXPECT_FALSE(format->of("a.mlp.down")->symmetric);
  EXPECT_EQ(format->of("a.mlp.up")->block_columns, 64);
  const auto none = format->of("embed_tokens");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("'embed_tokens'"), std::string::npos);
}

TEST(WeightFormat, RefusesOtherQuantisations) {
  const auto error = [](const std::string& json) {
    const auto doc = JsonDoc::parse(json);
    const auto format = WeightFormat::from_config(doc->root());
    EXPECT_FALSE(format);
    EXPECT_EQ(format.error().code, ErrorCode::kUnsupported);
    return format.error().message;
  };
  const auto refuses = [&](const std::string& config, const std::string& why) {
    const std::string found = error(R"({"quantization_config":{)" + config + "}}");
    EXPECT_NE(found.find(why), std::string::npos) << found;
  };
  refuses(R"("quant_method":"bitsandbytes")", "quant_method: expected \"gptq\", ");
  refuses(R"("quant_method":"gptq","bits":5,"group_size":32)",
          "bits: expected one of 2, 3, 4, 8, found 5");
  refuses(R"("quant_method":"gptq","bits":4,"checkpoint_format":"gptq_p")",
          "checkpoint_format: expected one of \"gptq\", \"gptq_v2\", found \"gptq_p\"");
  refuses(R"("quant_method":"gptq","bits":4,"group_size":0)", "group_size: expected -1 or a size");
  refuses(R"("quant_method":"gptq","bits":4,"dynamic":{"(?<=a)b":{}})", "'(?<'");
  for (const std::string version : {"gemv", "gemv_fast", "marlin", "exllama"})
    refuses(R"("quant_method":"awq","bits":4,"version":")" + version + "\"",
            "version: expected \"gemm\", found \"" + version);
  refuses(R"("quant_method":"awq","bits":8)", "bits: expected 4, found 8");
  refuses(R"("quant_method":"compressed-tensors","format":"marlin-24")", "found \"marlin-24\"");
  refuses(R"("quant_method":"compressed-tensors","config_groups":{"g":{"targets":["Linear"],)"
          R"("weights":{"num_bits":16,"type":"int"}}})",
          "config_groups.g.weights.num_bits: expected 2 to 8 for integers, found 16");
  refuses(R"("quant_method":"modelopt","quant_algo":"W4A16_AWQ")", "found \"w4a16_awq\"");
  refuses(R"("quant_method":"fp8","fmt":"e5m2")", "found \"e5m2\"");
  refuses(R"("quant_method":"bitnet","quantization_mode":"online")", "found \"online\"");
  EXPECT_NE(error(R"({"quantization":{"group_size":32,"bits":4,"mode":"fp2"}})").find("\"fp2\""),
            std::string::npos);
  EXPECT_NE(error(R"({"quantization":{"group_size":64,"bits":4,"mode":"mxfp4"}})")
                .find("group_size: expected one of 32; found 64"),
            std::string::npos);
  EXPECT_NE(error(R"({"quantization":{"group_size":48,"bits":4}})")
                .find("expected one of 32, 64, 128; found 48"),
            std::string::npos);
  EXPECT_NE(error(R"({"quantization":{"group_size":64,"bits":7}})").find("found 7"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::card
