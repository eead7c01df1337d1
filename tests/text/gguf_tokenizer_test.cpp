// Tokenizers as GGUF files carry them: each test writes the metadata.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "text/byte_level.h"
#include "text/tokenizer.h"

namespace weir::text {
namespace {

struct Entry {
  std::string text;
  int type = 1;
  double score = 0;
};

// {"model", "pre", "tokens", ...}, and what `more` adds.
std::string metadata(std::string_view model, std::string_view pre,
                     const std::vector<Entry>& entries, const std::vector<std::string>& merges,
                     std::string_view more = "") {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().field("model", model).field("pre", pre).key("tokens").begin_array();
  for (const Entry& entry : entries) writer.value(std::string_view(entry.text));
  writer.end_array().key("token_type").begin_array();
  for (const Entry& entry : entries) writer.value(entry.type);
  writer.end_array().key("scores").begin_array();
  for (const Entry& entry : entries) writer.value(entry.score);
  writer.end_array().key("merges").begin_array();
  for (const std::string& merge : merges) writer.value(std::string_view(merge));
  writer.end_array().end_object();
  json.pop_back();
  return json + std::string(more) + "}";
}

std::unique_ptr<Tokenizer> load(const std::string& json) {
  auto tokenizer = Tokenizer::load_file(kGgufTokenizer, json, "");
  EXPECT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  return tokenizer ? std::move(*tokenizer) : nullptr;
}

std::string error(const std::string& json) {
  const auto tokenizer = Tokenizer::load_file(kGgufTokenizer, json, "");
  return tokenizer ? "(it loaded)" : tokenizer.error().message;
}

// All bytes by their number, then these.
std::vector<Entry> byte_entries(const std::vector<Entry>& more) {
  std::vector<Entry> entries;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    std::string text;
    append_byte_level(text, std::string_view(&c, 1));
    entries.push_back({text});
  }
  entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}

using Ids = std::vector<int32_t>;

TEST(GgufTokenizer, CutsTextsByThePatternThatPreNames) {
  const std::vector<Entry> entries = byte_entries({{"12"}, {"123"}, {"ab"}});
  const std::vector<std::string> merges = {"1 2", "12 3", "a b"};
  const auto three = load(metadata("gpt2", "llama-bpe", entries, merges));
  const auto one = load(metadata("gpt2", "qwen2", entries, merges));
  ASSERT_TRUE(three && one);
  EXPECT_EQ(three->encode("ab1234"), (Ids{258, 257, '4'}));
  EXPECT_EQ(one->encode("ab1234"), (Ids{258, '1', '2', '3', '4'}));
  EXPECT_EQ(one->decode(Ids{258, '1', 257}, false), "ab1123");
}

TEST(GgufTokenizer, AWholePieceNeedsNoMergesWhereThePatternSaysSo) {
  const std::vector<Entry> entries = byte_entries({{"abc"}});
  EXPECT_EQ(load(metadata("gpt2", "llama-bpe", entries, {}))->encode("abc"), Ids{256});
  EXPECT_EQ(load(metadata("gpt2", "qwen2", entries, {}))->encode("abc"), (Ids{'a', 'b', 'c'}));
}

TEST(GgufTokenizer, BeginsTextsAsTheFileSaysOrAsIsUsual) {
  const std::vector<Entry> entries = byte_entries({{"<s>", 3}, {"</s>", 3}});
  const std::string ids = R"(,"bos_token_id":256,"eos_token_id":257)";
  const auto around = [&](std::string_view pre, const std::string& more) {
    return load(metadata("gpt2", pre, entries, {}, ids + more))->surrounding_ids();
  };
  EXPECT_EQ(around("llama-bpe", ""), Ids{256});
  EXPECT_EQ(around("qwen2", ""), Ids{});
  EXPECT_EQ(around("qwen2", R"(,"add_bos_token":true,"add_eos_token":true)"), (Ids{256, 257}));
  EXPECT_EQ(around("llama-bpe", R"(,"add_bos_token":false)"), Ids{});
}

TEST(GgufTokenizer, FindsControlAndUserTokensInTexts) {
  const auto tokenizer =
      load(metadata("gpt2", "gpt-2", byte_entries({{"<|c|>", 3}, {"<u>", 4}}), {}));
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->encode("a<|c|><u>"), (Ids{'a', 256, 257}));
  const EncodeOptions plain = {.parse_special = false};
  EXPECT_EQ(tokenizer->encode("<u>", plain), Ids{257});
  EXPECT_EQ(tokenizer->encode("<|c|>", plain).size(), 5u);
  EXPECT_TRUE(tokenizer->is_special(256));
  EXPECT_FALSE(tokenizer->is_special(257));
}

// Pieces of SentencePiece with a space mark; the best score merges first.
std::vector<Entry> scored() {
  std::vector<Entry> entries = {{"<unk>", 2}, {"<s>", 3}, {"</s>", 3}};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    entries.push_back({name, 6});
  }
  for (const Entry& entry : std::vector<Entry>{{"\xe2\x96\x81", 1, -1},
                                               {"a", 1, -2},
                                               {"b", 1, -3},
                                               {"c", 1, -4},
                                               {"ab", 1, -20},
                                               {"bc", 1, -10},
                                               {"\xe2\x96\x81"
                                                "a",
                                                1, -30}})
    entries.push_back(entry);
  return entries;
}

TEST(GgufTokenizer, MergesByScores) {
  constexpr int32_t kSpace = 259, kA = 260, kBc = 264, kSpaceA = 265;
  const auto tokenizer =
      load(metadata("llama", "default", scored(), {}, R"(,"bos_token_id":1,"unknown_token_id":0)"));
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->encode("abc"), (Ids{kSpaceA, kBc}));
  EXPECT_EQ(tokenizer->encode("z"), (Ids{kSpace, 3 + 'z'}));
  EXPECT_EQ(tokenizer->encode("a</s>a"), (Ids{kSpaceA, 2, kSpaceA})) << "a prefix after it too";
  EXPECT_EQ(tokenizer->surrounding_ids(), Ids{1});
  EXPECT_EQ(tokenizer->decode(Ids{kSpaceA, kBc}, false), "abc");
  const auto bare = load(metadata("llama", "default", scored(), {},
                                  R"(,"add_space_prefix":false,"add_bos_token":false)"));
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->encode("abc"), (Ids{kA, kBc}));
  EXPECT_EQ(bare->surrounding_ids(), Ids{});
}

TEST(GgufTokenizer, MergesTextsWithMarksForSpaces) {
  // Files of Gemma's kind whose tokenizer is another's have the name of byte-level ones.
  for (const char* model : {"gemma4", "gpt2"}) {
    const auto tokenizer = load(metadata(model, "gemma4", scored(), {"\xe2\x96\x81 a", "b c"},
                                         R"(,"unknown_token_id":0,"bos_token_id":1)"));
    ASSERT_TRUE(tokenizer);
    EXPECT_EQ(tokenizer->encode("bc a"), (Ids{264, 265}));
    EXPECT_EQ(tokenizer->encode("\n"), Ids{3 + '\n'});
    EXPECT_EQ(tokenizer->decode(Ids{264, 265}, false), "bc a");
    EXPECT_EQ(tokenizer->surrounding_ids(), std::string_view(model) == "gpt2" ? Ids{} : Ids{1})
        << "where the file does not say";
  }
}

TEST(GgufTokenizer, SaysWhatItDoesNotKnow) {
  EXPECT_NE(error(metadata("t5", "", {{"a"}}, {})).find("model: expected gpt2, llama or gemma4"),
            std::string::npos);
  EXPECT_NE(error(metadata("gpt2", "new-pre", byte_entries({}), {}))
                .find("pre: expected one of a.x-4.0, "),
            std::string::npos);
  EXPECT_NE(error(R"({"model":"gpt2","pre":"qwen2"})").find("tokens: expected an array"),
            std::string::npos);
  EXPECT_NE(error(R"({"model":"llama","tokens":["a"]})").find("scores: expected one for each"),
            std::string::npos);
  EXPECT_NE(
      error(R"({"model":"gpt2","pre":"qwen2","tokens":["a","b"],"token_type":[1],"merges":[]})")
          .find("token_type: expected one for each of 2 tokens, found 1"),
      std::string::npos);
  EXPECT_NE(error(R"({"model":"gpt2","pre":"qwen2","tokens":["a"],"token_type":[9],"merges":[]})")
                .find("token_type: token 0: found 9"),
            std::string::npos);
  EXPECT_NE(error(R"({"model":"gpt2","pre":"qwen2","tokens":["a","b"],"merges":["a c"]})")
                .find("expected tokens of the vocabulary, found c"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::text
