// Safetensors files: what is accepted, and what each kind of damage is called.
#include "card/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace weir::card {
namespace {

// A file: length, header, data.
std::string file_of(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  out += header;
  for (size_t i = 0; i < data_bytes; ++i) out.push_back(static_cast<char>(i));
  return out;
}

std::string error_of(const std::string& file) {
  const auto parsed = parse_safetensors("m.safetensors", std::as_bytes(std::span(file)));
  return parsed ? "" : parsed.error().message;
}

void expect_error(const std::string& header, size_t data_bytes, const std::string& part) {
  const std::string message = error_of(file_of(header, data_bytes));
  EXPECT_TRUE(message.starts_with("m.safetensors: ")) << message;
  EXPECT_NE(message.find(part), message.npos) << "message: " << message << "\nexpected: " << part;
}

TEST(Safetensors, ReadsTypesShapesAndBytes) {
  const std::string file = file_of(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"empty":{"dtype":"U8","shape":[0,7],"data_offsets":[16,16]}})",
      16);
  const auto parsed = parse_safetensors("m", std::as_bytes(std::span(file)));
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->size(), 3u);
  const StoredTensor& b = (*parsed)[0];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(to_string(b.tensor), "BF16 [2, 3]");
  EXPECT_EQ(b.tensor.data, std::as_bytes(std::span(file)).data() + b.offset);
  EXPECT_EQ(static_cast<int>(*b.tensor.data), 4);
  EXPECT_EQ((*parsed)[1].tensor.elements(), 1);
  EXPECT_EQ((*parsed)[2].tensor.bytes(), 0);
}

TEST(Safetensors, NamesTheDamage) {
  EXPECT_NE(error_of("abc").find("found 3 bytes"), std::string::npos);
  EXPECT_NE(
      error_of(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10)).find("found a length of"),
      std::string::npos);
  expect_error("[]", 0, "expected an object, found array");
  expect_error("{\"a\":", 0, "header: expected valid JSON");
  expect_error(R"({"a":1})", 0, "tensor \"a\": expected an object, found integer");
  expect_error(R"({"a":{"dtype":"F12","shape":[1],"data_offsets":[0,1]}})", 1, "found \"F12\"");
  expect_error(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1,
               "expected a string 'dtype', found none");
  expect_error(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1,
               "expected an array 'shape', found none");
  expect_error(R"({"a":{"dtype":"U8","shape":[1]}})", 1,
               "expected an array 'data_offsets', found none");
  expect_error(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1, "found -1");
  expect_error(R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1,
               "expected at most 6 dimensions, found 7");
  expect_error(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296,4],"data_offsets":[0,1]}})", 1,
               "expected a shape within the file's 1 bytes");
  expect_error(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 1,
               "the file is cut short");
  expect_error(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,0]}})", 1,
               "expected data_offsets [begin, end]");
  expect_error(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,2]}})", 2,
               "expected 4 bytes for F16 [2], found 2");
}

TEST(Safetensors, RefusesShapesWhoseProductIsNoNumber) {
  // 2^63 elements of a byte, before the zero.
  expect_error(R"({"a":{"dtype":"U8","shape":[1099511627776,8388608,0],"data_offsets":[0,0]}})", 0,
               "expected a shape within the file's 0 bytes");
}

TEST(Safetensors, ShortensWhatItShows) {
  std::string many = "[1";
  for (int i = 0; i < 5000; ++i) many += ",1";
  many += "]";
  const std::string longer = "[" + many + "]";
  for (const std::string& entry :
       {R"("shape":)" + longer + R"(,"data_offsets":[0,1])",
        R"("shape":[1],"data_offsets":)" + many, R"("shape":[1],"data_offsets":)" + longer}) {
    const std::string message = error_of(file_of(R"({"a":{"dtype":"U8",)" + entry + "}}", 1));
    EXPECT_NE(message, "");
    EXPECT_LT(message.size(), 300u) << message;
  }
}

TEST(Safetensors, RefusesOverlapsHolesLeftOversAndDuplicates) {
  expect_error(
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
      3,
      "tensor \"b\": expected its data at 2, where the tensor before it ends; found 1 (they "
      "overlap)");
  expect_error(
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
      3, "(a hole)");
  expect_error(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 2,
               "expected 1 bytes of data, found 2");
  expect_error(
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
      1, "found twice");
}

class ShardTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("weir_shards_" + std::to_string(::getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    write("config.json", "{}");
    write("one.safetensors",
          file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
    write("two.safetensors",
          file_of(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string open_error() {
    const auto files = ModelFiles::open(folder_.string());
    const auto checkpoint = open_safetensors(*files);
    return checkpoint ? "" : checkpoint.error().message;
  }
  std::filesystem::path folder_;
};

TEST_F(ShardTest, OpensWhatTheIndexNames) {
  write("model.safetensors.index.json",
        R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  const auto files = ModelFiles::open(folder_.string());
  const auto checkpoint = open_safetensors(*files);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  ASSERT_NE(checkpoint->find("b"), nullptr);
  EXPECT_TRUE(checkpoint->file(*checkpoint->find("b")).name().ends_with("two.safetensors"));
  EXPECT_EQ(checkpoint->find("c"), nullptr);
}

TEST_F(ShardTest, RefusesIndexesThatLieOrLeaveTheFolder) {
  EXPECT_NE(open_error().find("found neither"), std::string::npos);
  write("model.safetensors.index.json", R"({"weight_map":{"a":"../one.safetensors"}})");
  EXPECT_NE(open_error().find("found \"../one.safetensors\""), std::string::npos) << open_error();
  write("model.safetensors.index.json", R"({"weight_map":{"a":"two.safetensors"}})");
  EXPECT_NE(open_error().find("tensor \"a\": expected in two.safetensors, found in no shard"),
            std::string::npos)
      << open_error();
  write("model.safetensors.index.json", R"({"weight_map":{"a":"three.safetensors"}})");
  EXPECT_NE(open_error().find("three.safetensors"), std::string::npos);
  write("model.safetensors.index.json", R"({"weights":{}})");
  EXPECT_NE(open_error().find("expected an object 'weight_map', found none"), std::string::npos);
}

TEST_F(ShardTest, RefusesATensorInTwoShards) {
  write("two.safetensors", file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
  write("model.safetensors.index.json",
        R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  EXPECT_NE(open_error().find("expected in one file, found in"), std::string::npos) << open_error();
}

}  // namespace
}  // namespace weir::card
