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
  EXPECT_EQ(format->of("a.b", DType::kF16).bits, 4);
  EXPECT_EQ(format->of("lm_head", DType::kF16).bits, 6);
  EXPECT_EQ(format->of("lm_head", DType::kF16).group, 64);
  const MatrixFormat c = format->of("c", DType::kF16);
  EXPECT_EQ(c.group, 32);
  EXPECT_EQ(c.scale_type, DType::kF16);
  EXPECT_EQ(c.row_words(64), 16);
  EXPECT_EQ(c.row_scales(64), 2);
}

TEST(WeightFormat, RefusesOtherQuantisations) {
  const auto error = [](const std::string& json) {
    const auto doc = JsonDoc::parse(json);
    const auto format = WeightFormat::from_config(doc->root());
    EXPECT_FALSE(format);
    EXPECT_EQ(format.error().code, ErrorCode::kUnsupported);
    return format.error().message;
  };
  EXPECT_NE(error(R"({"quantization_config":{"quant_method":"gptq","bits":4}})").find("\"gptq\""),
            std::string::npos);
  EXPECT_NE(
      error(R"({"quantization":{"group_size":32,"bits":4,"mode":"mxfp4"}})").find("\"mxfp4\""),
      std::string::npos);
  EXPECT_NE(error(R"({"quantization":{"group_size":48,"bits":4}})")
                .find("expected one of 32, 64, 128; found 48"),
            std::string::npos);
  EXPECT_NE(error(R"({"quantization":{"group_size":64,"bits":7}})").find("found 7"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::card
