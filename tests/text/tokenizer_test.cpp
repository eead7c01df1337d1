#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "base/utf8.h"
#include "text/detokenizer.h"
#include "tokenizer_fixture.h"

namespace weir::text {
namespace {

// ---- Recorded answers of the Hugging Face crate (tests/data/tokenizer/generate.mjs) ----

// The model of entries that bring none: each character has an id, and another at a word's end.
std::string character_model(std::string_view characters) {
  std::string json =
      "{\"type\": \"BPE\", \"unk_token\": \"<unk>\", \"end_of_word_suffix\": \"</w>\", "
      "\"merges\": [], \"vocab\": {\"<unk>\": 0";
  int id = 1;
  for (size_t i = 0; i < characters.size();) {
    const size_t begin = i;
    decode_utf8(characters, i);
    for (const char* suffix : {"", "</w>"}) {
      json += ", ";
      append_json_string(json, std::string(characters.substr(begin, i - begin)) + suffix);
      json += ": " + std::to_string(id++);
    }
  }
  return json + "}}";
}

// The parts of an entry as a whole tokenizer.json.
std::string entry_json(JsonValue parts, const std::string& default_model) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object();
  for (const auto field : JsonObject(parts)) writer.key(field.key).value(field.value);
  if (!json_get(parts, "model")) writer.key("model").raw(default_model);
  writer.end_object();
  return json;
}

void check_case(const Tokenizer& tokenizer, JsonObject one) {
  const std::vector<int32_t> ids = int_list(one["ids"]);
  if (const auto text = json_get(one, "text")) {
    const std::string_view view = *text;
    EXPECT_EQ(tokenizer.encode(view), ids) << "text \"" << view << '"';
    const auto with_special = json_get(one, "with_special");
    const std::vector<int32_t> special = with_special ? int_list(*with_special) : ids;
    EXPECT_EQ(tokenizer.encode(view, {.add_special = true}), special) << "text \"" << view << '"';
    if (const auto skipped = json_get(one, "skipped")) {
      EXPECT_EQ(tokenizer.decode(special, true), std::string_view(*skipped));
    }
  }
  EXPECT_EQ(tokenizer.decode(ids, false), std::string_view(one["decoded"]))
      << "ids " << testing::PrintToString(ids);
}

TEST(Tokenizer, EncodesAndDecodesAsTheCrateWithEveryPart) {
  const std::string text = file_text(data_path("small.json"));
  const JsonDoc doc = parse_json(text);
  const std::string default_model = character_model(doc.root()["characters"]);
  int cases = 0;
  for (const JsonValue entry : JsonArray(doc.root()["tokenizers"])) {
    SCOPED_TRACE(std::string_view(entry["name"]));
    const auto tokenizer = load_tokenizer(entry_json(entry["parts"], default_model));
    ASSERT_NE(tokenizer, nullptr);
    for (const JsonValue one : JsonArray(entry["cases"])) {
      check_case(*tokenizer, one);
      ++cases;
    }
  }
  EXPECT_GT(cases, 2000);
}

void check_model_cases(const Tokenizer& tokenizer, JsonArray cases) {
  int count = 0;
  for (const JsonValue one : cases) {
    EXPECT_EQ(tokenizer.encode(std::string_view(one["prompt_text"])), int_list(one["prompt_ids"]));
    EXPECT_EQ(tokenizer.decode(int_list(one["greedy_ids"]), false),
              std::string_view(one["greedy_text"]));
    ++count;
  }
  EXPECT_GE(count, 6);
}

TEST(Tokenizer, AgreesWithWhatOurOwnModelWasRecordedWith) {
  const auto tokenizer = load_tokenizer(own_tokenizer_json());
  ASSERT_NE(tokenizer, nullptr);
  const JsonDoc doc = parse_json(file_text(data_path("weir-tiny-moe.json")));
  check_model_cases(*tokenizer, doc.root());
  EXPECT_EQ(tokenizer->vocab_size(), 8192);
  EXPECT_EQ(tokenizer->id("<|im_end|>"), 8187);
  EXPECT_TRUE(tokenizer->is_special(8187));
  EXPECT_FALSE(tokenizer->is_special(8188));  // <think>: added, not special.
  EXPECT_FALSE(tokenizer->strips_leading_space());
}

TEST(Tokenizer, AgreesWithWhatSmollm2WasRecordedWith) {
  const std::string folder = shared_model("smollm2-135m-instruct-4bit");
  if (folder.empty()) GTEST_SKIP() << "no smollm2-135m-instruct-4bit in WEIR_MODELS";
  const auto tokenizer = load_tokenizer(file_text(folder + "/tokenizer.json"));
  ASSERT_NE(tokenizer, nullptr);
  const JsonDoc doc = parse_json(file_text(folder + "/expected.json"));
  check_model_cases(*tokenizer, doc.root()["cases"]);
}

// ---- Properties ----

std::string random_text(std::mt19937& random) {
  static constexpr std::string_view kPieces[] = {
      "a",    "the ",  " two", "\n",        "\r\n",     "  ",     "\t",           "12",
      "3.14", "don't", "é",    "e\xcc\x81", "日本",     "🦜",   "<|im_start|>", "</think>",
      "<|im", "…",     "ß",    "\x01",      "\xc2\xa0", "Straße", ";;",           "_x"};
  std::string text;
  const size_t count = random() % 30;
  for (size_t i = 0; i < count; ++i) text += kPieces[random() % std::size(kPieces)];
  return text;
}

TEST(Tokenizer, GivesBackTheBytesOfAnyTextWithAByteLevelModel) {
  const auto tokenizer = load_tokenizer(own_tokenizer_json());
  ASSERT_NE(tokenizer, nullptr);
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random_text(random);
    const std::vector<int32_t> ids = tokenizer->encode(text);
    ASSERT_EQ(tokenizer->decode(ids, false), text);
    std::string pieces;
    for (const int32_t id : ids) pieces += tokenizer->piece(id);
    ASSERT_EQ(pieces, text);
  }
}

TEST(Tokenizer, ReadsInvalidBytesAsReplacementCharacters) {
  const auto tokenizer = load_tokenizer(own_tokenizer_json());
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->encode("a\xff\xe6\x97z"), tokenizer->encode("a\xef\xbf\xbd\xef\xbf\xbdz"));
  std::mt19937 random(2);
  for (int i = 0; i < 500; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& b : bytes) b = static_cast<char>(random());
    std::string repaired;
    append_valid_utf8(repaired, bytes);
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(bytes), false), repaired);
  }
}

TEST(Tokenizer, LeavesSpecialTokensAsTextWhereTheyAreNotToBeParsed) {
  const auto tokenizer = load_tokenizer(own_tokenizer_json());
  ASSERT_NE(tokenizer, nullptr);
  const std::string text = "<|im_start|>user <think>";
  const std::vector<int32_t> ids = tokenizer->encode(text, {.parse_special = false});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 8186), 0);
  EXPECT_EQ(ids.back(), 8188);  // Added but not special: still one token.
  EXPECT_EQ(tokenizer->decode(ids, true), text);
  EXPECT_EQ(tokenizer->encode(text).front(), 8186);
}

TEST(Tokenizer, GivesTheSameIdsFromManyThreadsAtOnce) {
  const auto tokenizer = load_tokenizer(own_tokenizer_json());
  ASSERT_NE(tokenizer, nullptr);
  std::mt19937 random(3);
  std::vector<std::string> texts;
  std::vector<std::vector<int32_t>> expected;
  for (int i = 0; i < 50; ++i) {
    texts.push_back(random_text(random));
    expected.push_back(tokenizer->encode(texts.back()));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (size_t i = 0; i < texts.size(); ++i) {
        EXPECT_EQ(tokenizer->encode(texts[i]), expected[i]);
        EXPECT_EQ(tokenizer->decode(expected[i], false), texts[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Tokenizer, SkipsUnknownIdsWhenDecoding) {
  const auto tokenizer = load_tokenizer(own_tokenizer_json());
  ASSERT_NE(tokenizer, nullptr);
  std::vector<int32_t> ids = tokenizer->encode("hello");
  ids.insert(ids.begin(), {-1, 8192, INT32_MAX, INT32_MIN});
  EXPECT_EQ(tokenizer->decode(ids, false), "hello");
  EXPECT_EQ(tokenizer->piece(-1), "");
  EXPECT_EQ(tokenizer->piece(8192), "");
}

}  // namespace
}  // namespace weir::text
