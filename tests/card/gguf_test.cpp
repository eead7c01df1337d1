#include "card/gguf.h"

#include <gtest/gtest.h>

#include <string>

#include "gguf_file.h"

namespace weir::card {
namespace {

Result<GgufHeader> parse(const std::string& bytes) {
  return parse_gguf("f.gguf", std::as_bytes(std::span(bytes)));
}

std::string error(const std::string& bytes) {
  const auto parsed = parse(bytes);
  return parsed ? "(it parsed)" : parsed.error().message;
}

TEST(Gguf, ValuesOfEachKindAreRead) {
  GgufFile file;
  file.key("u8", 0, GgufFile::raw<uint8_t>(200)).key("i8", 1, GgufFile::raw<int8_t>(-3));
  file.key("u16", 2, GgufFile::raw<uint16_t>(60000)).key("i16", 3, GgufFile::raw<int16_t>(-300));
  file.integer("u32", 4'000'000'000).key("i32", 5, GgufFile::raw<int32_t>(-70000));
  file.number("f32", 0.5f).flag("bool", true).string("text", "abc");
  file.key("u64", 10, GgufFile::raw<uint64_t>(1)).key("i64", 11, GgufFile::raw<int64_t>(-1));
  file.key("f64", 12, GgufFile::raw(2.5)).key("huge", 10, GgufFile::raw(UINT64_MAX));
  file.strings("texts", {"a", "", "bc"}).list("none", 5, 0, "");
  file.list("ints", 5, 2, GgufFile::raw<int32_t>(7) + GgufFile::raw<int32_t>(-8));
  file.list("lists", 9, 1, GgufFile::raw<uint32_t>(0) + GgufFile::raw<uint64_t>(3) + "xyz");
  const std::string bytes = file.bytes();
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed) << parsed.error().message;
  const auto at = [&](const char* key) { return *parsed->metadata.find(key); };
  EXPECT_EQ(at("u8").integer(), 200);
  EXPECT_EQ(at("i8").integer(), -3);
  EXPECT_EQ(at("u16").integer(), 60000);
  EXPECT_EQ(at("i16").integer(), -300);
  EXPECT_EQ(at("u32").integer(), 4'000'000'000);
  EXPECT_EQ(at("i32").number(), -70000);
  EXPECT_EQ(at("f32").number(), 0.5);
  EXPECT_EQ(at("f32").integer(), std::nullopt);
  EXPECT_EQ(at("bool").flag(), true);
  EXPECT_EQ(at("bool").integer(), std::nullopt);
  EXPECT_EQ(at("text").text(), "abc");
  EXPECT_EQ(at("u64").integer(), 1);
  EXPECT_EQ(at("i64").integer(), -1);
  EXPECT_EQ(at("f64").number(), 2.5);
  EXPECT_EQ(at("huge").integer(), std::nullopt);
  EXPECT_EQ(at("texts").texts(), (std::vector<std::string_view>{"a", "", "bc"}));
  EXPECT_EQ(at("texts").text(), std::nullopt);
  EXPECT_EQ(at("none").integers(), std::vector<int64_t>{});
  EXPECT_EQ(at("ints").integers(), (std::vector<int64_t>{7, -8}));
  EXPECT_EQ(at("ints").kind_text(), "a list of 2 integers");
  EXPECT_EQ(at("lists").integers(), std::nullopt);
}

TEST(Gguf, TensorsHaveTheirRowsLastAndLieInTheFile) {
  const std::string bytes = GgufFile()
                                .tensor("a", {64, 3}, 8, std::string(3 * 2 * 34, 'q'))
                                .tensor("b", {4}, 0, std::string(16, 'f'))
                                .bytes();
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->tensors.size(), 2u);
  const GgufTensor& a = parsed->tensors[0];
  EXPECT_EQ(a.shape, (std::vector<int64_t>{3, 64}));
  EXPECT_EQ(a.type.blocks->name, "Q8_0");
  EXPECT_EQ(bytes.substr(a.offset, a.bytes()), std::string(3 * 2 * 34, 'q'));
  const GgufTensor& b = parsed->tensors[1];
  EXPECT_EQ(b.type.floats, DType::kF32);
  EXPECT_EQ(bytes.substr(b.offset, b.bytes()), "ffffffffffffffff");
}

TEST(Gguf, WhatIsNotReadIsNamed) {
  EXPECT_NE(error("not a file").find("expected a GGUF file"), std::string::npos);
  EXPECT_NE(error(GgufFile().bytes(1)).find("version 1"), std::string::npos);
  EXPECT_NE(error(GgufFile().bytes(0x03000000)).find("version 2 or 3"), std::string::npos);
  const auto parsed =
      parse(GgufFile().tensor("blk.0.ffn_up.weight", {256}, 16, std::string(66, 'x')).bytes());
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(parsed.error().message.find("tensor \"blk.0.ffn_up.weight\""), std::string::npos);
  EXPECT_NE(parsed.error().message.find("found IQ2_XXS: take a file"), std::string::npos)
      << parsed.error().message;
}

TEST(Gguf, DamagedHeadersAreRefusedByWhatIsWrong) {
  const std::string tensor(16, 'f');
  const std::string whole = GgufFile().string("k", "v").tensor("t", {4}, 0, tensor).bytes();
  EXPECT_EQ(error(whole), "(it parsed)");
  for (size_t bytes = 0; bytes < whole.size() - 16; ++bytes)
    EXPECT_NE(error(whole.substr(0, bytes)), "(it parsed)") << bytes;
  EXPECT_NE(error(GgufFile().string("k", "v").string("k", "w").bytes()).find("expected it once"),
            std::string::npos);
  EXPECT_NE(error(GgufFile().key("k", 13, "").bytes()).find("a type from 0 to 12, found 13"),
            std::string::npos);
  EXPECT_NE(error(GgufFile().list("k", 8, UINT64_MAX, "").bytes()).find("key \"k\""),
            std::string::npos);
  EXPECT_NE(error(GgufFile().list("k", 10, UINT64_MAX / 4, "").bytes()).find("before the file's"),
            std::string::npos);
  std::string deep;
  for (int i = 0; i < 6; ++i) deep += GgufFile::raw<uint32_t>(9) + GgufFile::raw<uint64_t>(1);
  EXPECT_NE(error(GgufFile().list("k", 9, 1, deep).bytes()).find("deep"), std::string::npos);
  EXPECT_NE(error(GgufFile().tensor("t", {33}, 8, std::string(34, 'x')).bytes())
                .find("a multiple of 32 numbers, found 33"),
            std::string::npos);
  EXPECT_NE(error(GgufFile().tensor("t", {uint64_t{1} << 40, 1 << 20}, 0, tensor).bytes())
                .find("dimensions"),
            std::string::npos);
  EXPECT_NE(error(GgufFile().tensor("t", {}, 0, tensor).bytes()).find("1 to 4 dimensions"),
            std::string::npos);
  EXPECT_NE(error(GgufFile().tensor("t", {400}, 0, tensor).bytes()).find("the file is cut short"),
            std::string::npos);
  // The second tensor's data would begin within the first's.
  const std::string overlap = GgufFile()
                                  .tensor("a", {16}, 0, std::string(32, 'x'))
                                  .tensor("b", {16}, 0, std::string(64, 'y'))
                                  .bytes();
  EXPECT_NE(error(overlap).find("tensor \"b\": expected its data at"), std::string::npos)
      << error(overlap);
  EXPECT_NE(error(GgufFile().integer("general.alignment", 0).bytes()).find("general.alignment"),
            std::string::npos);
}

TEST(Gguf, HeadersSayWhereTheyEnd) {
  const std::string whole = small_gguf("llama").strings("tokens", {"a", "bc"}).bytes();
  const auto length_of = [](std::string_view bytes) {
    return gguf_head_bytes("f.gguf", std::as_bytes(std::span(bytes)));
  };
  const auto length = length_of(whole);
  ASSERT_TRUE(length && *length);
  EXPECT_LT(**length, whole.size());
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const auto found = length_of(std::string_view(whole).substr(0, bytes));
    if (bytes < 4) {
      EXPECT_FALSE(found) << "not even the mark";
      continue;
    }
    ASSERT_TRUE(found) << bytes;
    EXPECT_EQ(*found, bytes < **length ? std::nullopt : *length) << bytes;
  }
  const std::string damaged = GgufFile().key("k", 13, "").bytes();
  EXPECT_FALSE(length_of(damaged)) << "more bytes would not help";
}

}  // namespace
}  // namespace weir::card
