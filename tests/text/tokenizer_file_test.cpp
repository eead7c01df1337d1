// Vocabularies that come without a tokenizer.json: each test writes such a file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "base/base64.h"
#include "text/byte_level.h"
#include "tokenizer_fixture.h"

namespace weir::text {
namespace {

std::string base64(std::string_view bytes) {
  std::string text;
  append_base64(text, std::as_bytes(std::span(bytes)));
  return text;
}

std::unique_ptr<Tokenizer> load_file(std::string_view name, std::string_view bytes,
                                     std::string_view config = "") {
  auto tokenizer = Tokenizer::load_file(name, bytes, config);
  EXPECT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  return tokenizer ? std::move(*tokenizer) : nullptr;
}

std::string file_error(std::string_view name, std::string_view bytes,
                       std::string_view config = "") {
  const auto tokenizer = Tokenizer::load_file(name, bytes, config);
  return tokenizer ? "(it loaded)" : tokenizer.error().message;
}

// ---- Bytes by rank ----

// All bytes in their order, then these tokens.
std::vector<std::string> byte_tokens(const std::vector<std::string>& longer) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  tokens.insert(tokens.end(), longer.begin(), longer.end());
  return tokens;
}

std::string tiktoken_file(const std::vector<std::string>& tokens) {
  std::string file;
  for (size_t rank = 0; rank < tokens.size(); ++rank)
    file += base64(tokens[rank]) + " " + std::to_string(rank) + "\n";
  return file;
}

constexpr int kTekkenSpecial = 300;

std::string tekken_file(const std::vector<std::string>& tokens, std::string_view pattern,
                        const std::vector<std::string>& special) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().key("config").begin_object();
  writer.field("pattern", pattern).field("default_num_special_tokens", kTekkenSpecial);
  writer.field("default_vocab_size", static_cast<int64_t>(tokens.size()) + kTekkenSpecial);
  writer.end_object().key("vocab").begin_array();
  for (size_t rank = 0; rank <= tokens.size(); ++rank) {  // One more than the model has.
    writer.begin_object().field("rank", static_cast<int64_t>(rank));
    const std::string bytes = rank < tokens.size() ? tokens[rank] : "beyond the model";
    writer.field("token_bytes", std::string_view(base64(bytes))).end_object();
  }
  writer.end_array().key("special_tokens").begin_array();
  for (size_t rank = 0; rank < special.size(); ++rank) {
    writer.begin_object().field("rank", static_cast<int64_t>(rank));
    writer.field("token_str", std::string_view(special[rank])).end_object();
  }
  writer.end_array().end_object();
  return json;
}

// What a byte-level tokenizer.json says, as these files would.
struct ByteVocabulary {
  std::vector<std::string> tokens;
  std::map<int32_t, std::string> added;
  std::string pattern;
};

ByteVocabulary read_byte_vocabulary(const std::string& json) {
  const JsonDoc doc = parse_json(json);
  ByteVocabulary result;
  for (const auto field : JsonObject(doc.root()["model"]["vocab"])) {
    const auto id = static_cast<size_t>(int64_t(field.value));
    if (id >= result.tokens.size()) result.tokens.resize(id + 1);
    EXPECT_TRUE(append_from_byte_level(result.tokens[id], field.key));
  }
  for (const JsonValue token : JsonArray(doc.root()["added_tokens"]))
    result.added.emplace(static_cast<int32_t>(int64_t(token["id"])),
                         std::string_view(token["content"]));
  const JsonValue split = *JsonArray(doc.root()["pre_tokenizer"]["pretokenizers"]).begin();
  result.pattern = std::string_view(split["pattern"]["Regex"]);
  // Added tokens that the model has too come with the added ones only.
  while (!result.added.empty() &&
         result.tokens.size() > static_cast<size_t>(result.added.begin()->first))
    result.tokens.pop_back();
  return result;
}

std::string config_of(const ByteVocabulary& vocabulary, std::string_view tokenizer_class) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().field("tokenizer_class", tokenizer_class);
  if (tokenizer_class.empty()) writer.field("pat_str", std::string_view(vocabulary.pattern));
  writer.key("added_tokens_decoder").begin_object();
  for (const auto& [id, content] : vocabulary.added) {
    writer.key(std::to_string(id)).begin_object();
    writer.field("content", std::string_view(content)).field("special", true).end_object();
  }
  writer.end_object().end_object();
  return json;
}

// vocab.json and merges.txt in one, of a byte-level tokenizer.json.
std::string merged_file(const std::string& json) {
  const JsonDoc doc = parse_json(json);
  std::string both;
  JsonWriter writer(both);
  writer.begin_object().field("vocab", doc.root()["model"]["vocab"].value());
  writer.field("merges", doc.root()["model"]["merges"].value()).end_object();
  return both;
}

class RecordedVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(RecordedVocabulary, HasTheRecordedIdsAsTiktokenAndAsTekken) {
  const char* fixtures = std::getenv("WEIR_FIXTURES");
  const char* packages = std::getenv("WEIR_TOKENIZERS");
  if (!fixtures || !packages) GTEST_SKIP() << "WEIR_FIXTURES and WEIR_TOKENIZERS are not set";
  const JsonDoc fixture =
      parse_json(file_text(std::string(fixtures) + "/tokenizers/" + GetParam() + ".json"));
  std::string package(std::string_view(fixture.root()["npm"]));
  package.resize(package.rfind('@'));
  std::string json;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           std::string(packages) + "/node_modules/" + package)) {
    if (entry.path().filename() == "tokenizer.json") json = file_text(entry.path().string());
  }
  ASSERT_FALSE(json.empty()) << "no tokenizer.json of " << package;
  const ByteVocabulary vocabulary = read_byte_vocabulary(json);

  // Qwen's class has its pattern, its normaliser and further names of special tokens.
  const bool qwen = std::string_view(GetParam()) == "qwen3";
  const auto tiktoken =
      load_file(qwen ? "qwen.tiktoken" : "tokenizer.model", tiktoken_file(vocabulary.tokens),
                config_of(vocabulary, qwen ? "QWenTokenizer" : ""));
  ASSERT_NE(tiktoken, nullptr);
  std::vector<std::string> special;
  std::map<int32_t, int32_t> special_ids;
  for (const auto& [id, content] : vocabulary.added) {
    special_ids[id] = static_cast<int32_t>(special.size());
    special.push_back(content);
  }
  const auto tekken =
      load_file("tekken.json", tekken_file(vocabulary.tokens, vocabulary.pattern, special));
  ASSERT_NE(tekken, nullptr);

  // In two files as well, of Qwen's.
  const auto merged = qwen ? load_file("vocab.json", merged_file(json),
                                       config_of(vocabulary, "Qwen2Tokenizer"))
                           : nullptr;
  ASSERT_EQ(merged != nullptr, qwen);

  const JsonArray texts = fixture.root()["texts"], ids = fixture.root()["ids"],
                  decoded = fixture.root()["dec"];
  auto text = texts.begin(), list = ids.begin(), dec = decoded.begin();
  int cases = 0;
  for (; text != texts.end(); ++text, ++list, ++dec, ++cases) {
    const std::string_view view = *text;
    const std::vector<int32_t> expected = int_list(*list);
    EXPECT_EQ(tiktoken->encode(view), expected) << "text " << view;
    if (merged) {
      EXPECT_EQ(merged->encode(view), expected) << "text " << view;
    }
    EXPECT_EQ(tiktoken->decode(expected, false), std::string_view(*dec));
    // tekken.json names no normaliser: only texts that are in their normal form.
    if (qwen && std::string_view(*dec) != view) continue;
    std::vector<int32_t> moved;
    for (const int32_t id : expected)
      moved.push_back(special_ids.contains(id) ? special_ids[id] : id + kTekkenSpecial);
    EXPECT_EQ(tekken->encode(view), moved) << "text " << view;
  }
  EXPECT_EQ(cases, 1000);
}

INSTANTIATE_TEST_SUITE_P(TokenizerFile, RecordedVocabulary,
                         testing::Values("llama3", "qwen3", "gptoss"));

TEST(TokenizerFile, ReadsKimisWithHanApartAndItsReservedTokens) {
  const auto tokenizer =
      load_file("tiktoken.model", tiktoken_file(byte_tokens({"he", "ll", "llo", "hello"})),
                R"({"tokenizer_class":"TikTokenTokenizer","bos_token":"[BOS]","add_bos_token":true,
          "added_tokens_decoder":{"260":{"content":"[BOS]","special":true},
                                  "262":{"content":"<|im_end|>","special":true}}})");
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->encode("hello", {.add_special = true}), (std::vector<int32_t>{260, 259}));
  EXPECT_EQ(tokenizer->encode("he<|im_end|>"), (std::vector<int32_t>{256, 262}));
  EXPECT_EQ(tokenizer->id("<|reserved_token_261|>"), 261);
  EXPECT_EQ(tokenizer->vocab_size(), 260 + 256);
  // "hello" is one word, but not with Han before it or in it.
  EXPECT_EQ(tokenizer->encode("漢hello").back(), 259);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a 漢字 b!\n"), false), "a 漢字 b!\n");
}

TEST(TokenizerFile, MergesEqualTextsFromTheLeftWhateverTheirHalves) {
  // "aaa" is a + aa and aa + a, of one rank.
  const auto tokenizer =
      load_file("tiktoken.model", tiktoken_file(byte_tokens({"aa", "aaa"})), R"({"pat_str":".+"})");
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->encode("aaaaa"), (std::vector<int32_t>{256, 257}));
}

TEST(TokenizerFile, RefusesTiktokenFilesThatSayTooLittle) {
  const std::string file = tiktoken_file(byte_tokens({}));
  EXPECT_EQ(file_error("tiktoken.model", file, R"({"tokenizer_class":"Other"})"),
            "tokenizer_config.json: expected pat_str, the pattern that a tiktoken file goes with, "
            "or a tokenizer_class of TikTokenTokenizer, QWenTokenizer; found Other");
  const char* config = R"({"pat_str":"."})";
  EXPECT_EQ(file_error("tiktoken.model", "IQ==\n", config),
            "tiktoken file: line 1: expected a token in base64, a space and its rank");
  EXPECT_EQ(file_error("tiktoken.model", "IQ== 0\nIQ== 1\n", config),
            "tiktoken file: line 2: expected each token once, found ! twice");
  EXPECT_EQ(file_error("tiktoken.model", "IQ== 0\n", config),
            "tiktoken file: expected a token for each byte, found none for 0");
  EXPECT_EQ(file_error("tiktoken.model", base64(std::string(513, 'a')) + " 0\n", config),
            "tiktoken file: line 1: expected a token of 1 to 512 bytes, found 513");
}

// As Qwen's come without a tokenizer.json: in two files.
TEST(TokenizerFile, ReadsQwensVocabularyAndMerges) {
  const std::string json =
      R"({"vocab":{"a":0,"b":1,"c":2,"\u0120":3,"ab":4,"abc":5,"1":6},"merges":["a b","ab c"]})";
  const std::string config =
      R"({"tokenizer_class":"Qwen2Tokenizer","add_bos_token":false,"bos_token":null,)"
      R"("added_tokens_decoder":{"9":{"content":"<img>","special":true}}})";
  const auto tokenizer = load_file("vocab.json", json, config);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->encode("abc ab<img>11"), (std::vector<int32_t>{5, 3, 4, 9, 6, 6}));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{5, 3, 4}, false), "abc ab");
  EXPECT_TRUE(file_error("vocab.json", json, R"({"tokenizer_class":"CTRLTokenizer"})")
                  .ends_with("Qwen2Tokenizer, found CTRLTokenizer: others need tokenizer.json"));
  EXPECT_EQ(file_error("vocab.json", R"({"vocab":{"a":"0"},"merges":[]})", config),
            "vocab.json: expected an id for each token, found \"0\"");
  EXPECT_EQ(file_error("vocab.json", R"({"vocab":[],"merges":[]})", config),
            "vocab.json and merges.txt.vocab: expected an object, found array");
}

TEST(TokenizerFile, NamesTekkensSpecialTokensAndFillsTheirPlaces) {
  const auto tokenizer =
      load_file("tekken.json", tekken_file(byte_tokens({"ab"}), ".+", {"<unk>", "<s>", "[INST]"}));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->encode("ab[INST]", {.add_special = true}),
            (std::vector<int32_t>{1, 256 + kTekkenSpecial, 2}));
  EXPECT_EQ(tokenizer->id("<SPECIAL_17>"), 17);
  EXPECT_EQ(tokenizer->vocab_size(), kTekkenSpecial + 257);
  EXPECT_TRUE(file_error("tekken.json", R"({"config":{"pattern":".","default_vocab_size":2,
      "default_num_special_tokens":3},"vocab":[]})")
                  .starts_with("tekken.json: config: expected "));
  EXPECT_EQ(file_error("tekken.json", "[]"), "tekken.json: expected an object, found array");
}

// ---- SentencePiece ----

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void append_number(std::string& out, uint64_t field, uint64_t value) {
  append_varint(out, field << 3);
  append_varint(out, value);
}
void append_bytes(std::string& out, uint64_t field, std::string_view bytes) {
  append_varint(out, field << 3 | 2);
  append_varint(out, bytes.size());
  out += bytes;
}

struct Piece {
  std::string text;
  float score = 0;
  int type = 1;  // Normal; 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
};

struct PieceModel {
  std::vector<Piece> pieces;
  int type = 2;  // BPE; 1 unigram.
  bool byte_fallback = true;
  bool dummy_prefix = true;
  bool remove_spaces = false;
  std::string charsmap = {};

  std::string file() const {
    std::string out;
    for (const Piece& piece : pieces) {
      std::string one;
      append_bytes(one, 1, piece.text);
      append_varint(one, 2 << 3 | 5);
      one.append(reinterpret_cast<const char*>(&piece.score), sizeof piece.score);
      if (piece.type != 1) append_number(one, 3, static_cast<uint64_t>(piece.type));
      append_bytes(out, 1, one);
    }
    std::string trainer, normaliser;
    append_number(trainer, 3, static_cast<uint64_t>(type));
    append_number(trainer, 35, byte_fallback);
    append_bytes(out, 2, trainer);
    if (!charsmap.empty()) append_bytes(normaliser, 2, charsmap);
    append_number(normaliser, 3, dummy_prefix);
    append_number(normaliser, 4, remove_spaces);
    append_bytes(out, 3, normaliser);
    return out;
  }
};

// A file of an archive, by the tar that tools/test unpacks archives with.
std::string archived(const std::string& archive, const std::string& file) {
  std::string text;
  FILE* pipe = popen(("tar --zstd -xOf '" + archive + "' " + file).c_str(), "r");
  if (!pipe) return text;
  char buffer[1 << 16];
  for (size_t count; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    text.append(buffer, count);
  EXPECT_EQ(pclose(pipe), 0);
  return text;
}

// Just enough of GGUF's metadata to find a vocabulary.
class GgufVocabulary {
 public:
  explicit GgufVocabulary(std::string_view bytes) : rest_(bytes) {
    take<uint64_t>();  // Magic and version.
    take<uint64_t>();  // Tensors.
    for (auto count = take<uint64_t>(); count > 0; --count) {
      const std::string key = text();
      value(key, take<uint32_t>());
    }
  }
  std::vector<Piece> pieces;

 private:
  template <class T>
  T take() {
    T result{};
    std::memcpy(&result, rest_.data(), sizeof result);
    rest_.remove_prefix(sizeof result);
    return result;
  }
  std::string text() {
    const auto size = take<uint64_t>();
    std::string result(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return result;
  }
  void value(const std::string& key, uint32_t type) {
    constexpr size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == 8) {
      text();
    } else if (type == 9) {
      const auto item = take<uint32_t>();
      const auto count = take<uint64_t>();
      if (key.starts_with("tokenizer.ggml.") && pieces.size() < count) pieces.resize(count);
      for (size_t i = 0; i < count; ++i) {
        if (key == "tokenizer.ggml.tokens") {
          pieces[i].text = text();
        } else if (key == "tokenizer.ggml.scores") {
          pieces[i].score = take<float>();
        } else if (key == "tokenizer.ggml.token_type") {
          pieces[i].type = take<int32_t>();
        } else {
          value("", item);
        }
      }
    } else {
      rest_.remove_prefix(kSizes[type]);
    }
  }
  std::string_view rest_;
};

TEST(TokenizerFile, HasTheIdsThatSentencepieceRecorded) {
  const char* fixtures = std::getenv("WEIR_FIXTURES");
  if (!fixtures) GTEST_SKIP() << "WEIR_FIXTURES is not set";
  const std::string archive = std::string(fixtures) + "/formats/given.tar.zst";
  const std::string gguf = archived(archive, "given/gguf_tok_spm/model.gguf");
  ASSERT_TRUE(gguf.starts_with("GGUF"));
  const PieceModel model{.pieces = GgufVocabulary(gguf).pieces};
  const auto tokenizer = load_file("tokenizer.model", model.file());
  ASSERT_NE(tokenizer, nullptr);
  const JsonDoc expected = parse_json(archived(archive, "given/gguf_tok_spm/expected.json"));
  const JsonArray texts = expected.root()["texts"], ids = expected.root()["ids"],
                  decoded = expected.root()["dec"];
  auto text = texts.begin(), list = ids.begin(), dec = decoded.begin();
  int cases = 0;
  for (; text != texts.end(); ++text, ++list, ++dec, ++cases) {
    const std::string_view view = *text;
    EXPECT_EQ(tokenizer->encode(view), int_list(*list)) << "text \"" << view << '"';
    EXPECT_EQ(tokenizer->decode(int_list(*list), false), std::string_view(*dec));
  }
  for (const JsonValue one : JsonArray(expected.root()["special"])) {
    EXPECT_EQ(tokenizer->encode(std::string_view(one["text"])), int_list(one["ids"]))
        << std::string_view(one["text"]);
    ++cases;
  }
  EXPECT_EQ(cases, 160);
}

PieceModel small_model(int type) {
  return {.pieces = {{"<unk>", 0, 2},
                     {"<s>", 0, 3},
                     {"</s>", 0, 3},
                     {"<user>", 0, 4},
                     {"\xe2\x96\x81", -5},
                     {"a", -4},
                     {"b", -4},
                     {"ab", -1},
                     {"\xe2\x96\x81"
                      "ab",
                      -2}},
          .type = type,
          .byte_fallback = false};
}

TEST(TokenizerFile, ReadsUnigramAndBpeModels) {
  for (const int type : {1, 2}) {
    const auto tokenizer = load_file("tokenizer.model", small_model(type).file());
    ASSERT_NE(tokenizer, nullptr);
    EXPECT_EQ(tokenizer->encode("ab", {.add_special = true}), (std::vector<int32_t>{1, 8}));
    EXPECT_EQ(tokenizer->encode("ab  ba"), (std::vector<int32_t>{8, 4, 4, 6, 5}));
    // Unknown characters side by side are one.
    EXPECT_EQ(tokenizer->encode("abxyb"), (std::vector<int32_t>{8, 0, 6}));
    EXPECT_EQ(tokenizer->encode("<user>ab"), (std::vector<int32_t>{3, 8}));
    EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{8, 8}, false), "ab ab");
    EXPECT_TRUE(tokenizer->is_special(2));
    EXPECT_FALSE(tokenizer->is_special(3));
  }
}

TEST(TokenizerFile, FollowsTheNormalisersRules) {
  PieceModel model = small_model(1);
  model.remove_spaces = true;
  auto tokenizer = load_file("tokenizer.model", model.file());
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->encode("  ab   ab "), (std::vector<int32_t>{8, 8}));
  EXPECT_TRUE(tokenizer->encode("   ").empty());
  model.dummy_prefix = false;
  tokenizer = load_file("tokenizer.model", model.file());
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->encode("ab ab"), (std::vector<int32_t>{7, 8}));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{8}, false), " ab");
  model.charsmap = "not a map";
  EXPECT_TRUE(file_error("tokenizer.model", model.file())
                  .starts_with("tokenizer.model, read as precompiled_charsmap: expected "));
}

TEST(TokenizerFile, PutsTheSpaceBeforeTheFirstTextOnlyWhereTheConfigIsNotOfTheOldKind) {
  const std::string file = small_model(2).file();
  EXPECT_EQ(load_file("tokenizer.model", file)->encode("ab<user>ab"),
            (std::vector<int32_t>{8, 3, 8}));
  EXPECT_EQ(load_file("tokenizer.model", file, R"({"legacy":false})")->encode("ab<user>ab"),
            (std::vector<int32_t>{8, 3, 7}));
}

TEST(TokenizerFile, TakesWhatTheConfigAdds) {
  const auto tokenizer =
      load_file("tokenizer.model", small_model(2).file(),
                R"({"add_bos_token":false,"add_eos_token":true,"eos_token":{"content":"<|end|>"},
          "added_tokens_decoder":{"9":{"content":"<|end|>","special":true}}})");
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->encode("ab<|end|>", {.add_special = true}), (std::vector<int32_t>{8, 9, 9}));
  EXPECT_EQ(file_error("tokenizer.model", small_model(2).file(),
                       R"({"added_tokens_decoder":{"x":{"content":"y"}}})"),
            "tokenizer_config.json: added_tokens_decoder: expected an id from 0 to 16777215, "
            "found x");
}

TEST(TokenizerFile, RefusesModelsThatItDoesNotUnderstand) {
  const std::string file = small_model(2).file();
  for (size_t size = 1; size < file.size(); ++size)
    Tokenizer::load_file("tokenizer.model", std::string_view(file).substr(0, size), "");
  EXPECT_EQ(file_error("tokenizer.model", std::string_view(file).substr(0, 20)),
            "tokenizer.model: the file: expected a length within the file, found 2 bytes that are "
            "none");
  PieceModel model = small_model(3);
  EXPECT_EQ(file_error("tokenizer.model", model.file()),
            "tokenizer.model: trainer_spec.model_type: expected 1 (unigram) or 2 (BPE), found 3");
  model = small_model(2);
  model.pieces[0].type = 1;
  EXPECT_EQ(file_error("tokenizer.model", model.file()),
            "tokenizer.model: expected an unknown piece among 9 pieces, found none");
  model.pieces[0].type = 9;
  EXPECT_EQ(file_error("tokenizer.model", model.file()),
            "tokenizer.model: piece 0: expected a type from 1 to 6, found 9");
}

}  // namespace
}  // namespace weir::text
