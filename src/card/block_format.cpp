#include "card/block_format.h"

#include <array>
#include <utility>

namespace weir::card {

namespace {

using Type = BlockFormat::Type;

constexpr std::array kBlockFormats = {
    BlockFormat{Type::kQ4_0, "Q4_0", 32, 18},    BlockFormat{Type::kQ4_1, "Q4_1", 32, 20},
    BlockFormat{Type::kQ5_0, "Q5_0", 32, 22},    BlockFormat{Type::kQ5_1, "Q5_1", 32, 24},
    BlockFormat{Type::kQ8_0, "Q8_0", 32, 34},    BlockFormat{Type::kQ2_K, "Q2_K", 256, 84},
    BlockFormat{Type::kQ3_K, "Q3_K", 256, 110},  BlockFormat{Type::kQ4_K, "Q4_K", 256, 144},
    BlockFormat{Type::kQ5_K, "Q5_K", 256, 176},  BlockFormat{Type::kQ6_K, "Q6_K", 256, 210},
    BlockFormat{Type::kIq4Nl, "IQ4_NL", 32, 18}, BlockFormat{Type::kIq4Xs, "IQ4_XS", 256, 136},
    BlockFormat{Type::kMxfp4, "MXFP4", 32, 17},  BlockFormat{Type::kNvfp4, "NVFP4", 64, 36},
};

constexpr std::array<std::pair<uint32_t, DType>, 3> kFloats = {
    {{0, DType::kF32}, {1, DType::kF16}, {30, DType::kBF16}}};

// Types that files have and Weir does not read.
constexpr std::array<std::pair<uint32_t, std::string_view>, 22> kOthers = {{
    {9, "Q8_1"},      {15, "Q8_K"},     {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
    {19, "IQ1_S"},    {21, "IQ3_S"},    {22, "IQ2_S"},   {24, "I8"},     {25, "I16"},
    {26, "I32"},      {27, "I64"},      {28, "F64"},     {29, "IQ1_M"},  {31, "Q4_0_4_4"},
    {32, "Q4_0_4_8"}, {33, "Q4_0_8_8"}, {34, "TQ1_0"},   {35, "TQ2_0"},  {36, "IQ4_NL_4_4"},
    {41, "Q1_0"},     {42, "Q2_0"},
}};

}  // namespace

std::optional<GgufTensorType> gguf_tensor_type(uint32_t id) {
  for (const auto& [known, type] : kFloats)
    if (known == id) return GgufTensorType{.floats = type};
  for (const BlockFormat& blocks : kBlockFormats)
    if (static_cast<uint32_t>(blocks.type) == id) return GgufTensorType{.blocks = &blocks};
  return std::nullopt;
}

std::string gguf_type_name(uint32_t id) {
  for (const auto& [known, type] : kFloats)
    if (known == id) return dtype_name(type);
  for (const BlockFormat& blocks : kBlockFormats)
    if (static_cast<uint32_t>(blocks.type) == id) return std::string(blocks.name);
  for (const auto& [known, name] : kOthers)
    if (known == id) return std::string(name);
  return "number " + std::to_string(id);
}

}  // namespace weir::card
