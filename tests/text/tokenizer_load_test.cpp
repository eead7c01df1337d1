// Tokenizer::load with files that are wrong, hostile or extreme: an error that names the thing, or
// bounded work.
#include <gtest/gtest.h>

#include <ctime>
#include <functional>

#include "base/concat.h"
#include "text/tokenizer.h"
#include "tokenizer_fixture.h"

namespace weir::text {
namespace {

std::string bpe_json(std::string_view vocab, std::string_view merges = "[]",
                     std::string_view more = "") {
  return concat({R"({"type": "BPE", "vocab": )", vocab, R"(, "merges": )", merges, more, "}"});
}

constexpr std::string_view kLetters = R"({"a": 0, "b": 1, "ab": 2, " ": 3})";

// An otherwise good file with one part.
std::string with_part(std::string_view part) {
  return tokenizer_json(bpe_json(kLetters, R"(["a b"])"), part);
}

void expect_error(std::string_view json, std::string_view what) {
  const std::string error = load_error(json);
  EXPECT_NE(error.find(what), std::string::npos)
      << "expected \"" << what << "\" in \"" << error << "\" for " << json.substr(0, 200);
}

TEST(TokenizerLoad, RefusesWhatIsNoTokenizer) {
  expect_error("", "tokenizer.json");
  expect_error("{", "tokenizer.json");
  expect_error("[]", "expected an object");
  expect_error("{}", "expected a model");
  expect_error(R"({"model": 3})", "expected an object, found integer");
  expect_error(R"({"model": {"type": "WordLevel", "vocab": {}}})", "found WordLevel");
  expect_error(R"({"model": {"vocab": {}}})", "expected type BPE or Unigram");
  expect_error(std::string(10000, '['), "tokenizer.json");
}

TEST(TokenizerLoad, NamesWhatIsWrongInABpeModel) {
  expect_error(R"({"model": {"type": "BPE", "merges": []}})", "model.vocab: expected an object");
  expect_error(R"({"model": {"type": "BPE", "vocab": {}}})", "model.merges: expected an array");
  const auto error_of = [](std::string_view vocab, std::string_view merges = "[]") {
    return load_error(tokenizer_json(bpe_json(vocab, merges)));
  };
  EXPECT_NE(error_of(R"({"x": -1})").find("token x: expected an id from 0"), std::string::npos);
  EXPECT_NE(error_of(R"({"x": 2147483648})").find("2147483648"), std::string::npos);
  EXPECT_NE(error_of(R"({"x": 16777216})").find("16777216"), std::string::npos);
  EXPECT_NE(error_of(R"({"x": 16777215})").find("16777215"), std::string::npos);  // Holes.
  EXPECT_NE(error_of(R"({"x": 1.5})").find("token x: expected an integer"), std::string::npos);
  EXPECT_NE(error_of(R"({"x": 1, "y": 1})").find("also that of x"), std::string::npos);
  EXPECT_NE(error_of(kLetters, R"(["a c"])").find("merges[0]"), std::string::npos);
  EXPECT_NE(error_of(kLetters, R"(["b a"])").find("found ba"), std::string::npos);
  for (const char* merge : {"\"a\"", "\"a b c\"", "[\"a\"]", "[\"a\", 1]", "3", "[]", "\" \""})
    EXPECT_NE(error_of(kLetters, concat({"[\"a b\", ", merge, "]"})).find("merges[1]"),
              std::string::npos)
        << merge;
  expect_error(tokenizer_json(bpe_json(kLetters, "[]", R"(, "dropout": 0.1)")), "dropout");
}

TEST(TokenizerLoad, NamesWhatIsWrongInAUnigramModel) {
  const auto unigram = [](std::string_view vocab, std::string_view unknown) {
    return tokenizer_json(
        concat({R"({"type": "Unigram", "vocab": )", vocab, ", \"unk_id\": ", unknown, "}"}));
  };
  expect_error(unigram("[]", "0"), "unk_id: expected an id below 0");
  expect_error(unigram(R"([["<unk>", 0]])", "1"), "unk_id: expected an id below 1, found 1");
  expect_error(unigram(R"([["<unk>", 0]])", "null"), "unk_id: expected an integer");
  expect_error(unigram(R"([["<unk>", 0], ["a"]])", "0"), "vocab[1]");
  expect_error(unigram(R"([["<unk>", 0], ["a", "b"]])", "0"), "vocab[1]");
  expect_error(unigram(concat({"[[\"", std::string(2000, 'a'), "\", 0]]"}), "0"), "vocab[0]");
}

TEST(TokenizerLoad, NamesPartsThatItDoesNotKnow) {
  expect_error(with_part(R"("normalizer": {"type": "Soundex"})"), "normalizer Soundex");
  expect_error(with_part(R"("pre_tokenizer": {"type": "UnicodeScripts"})"), "UnicodeScripts");
  expect_error(with_part(R"("post_processor": {"type": "Magic"})"), "post_processor Magic");
  expect_error(with_part(R"("decoder": {"type": "CTC"})"), "decoder CTC");
  for (const char* part : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
    const std::string name = concat({"\"", part, "\": "});
    expect_error(with_part(name + "7"), std::string(part) + ": expected an object, found integer");
    expect_error(with_part(name + "{}"), std::string(part) + ".type: expected a string");
    expect_error(with_part(name + "{\"type\": \"Sequence\"}"), "expected an array, found nothing");
  }
}

TEST(TokenizerLoad, NamesWhatIsWrongInAPart) {
  const auto split = [](std::string_view pattern, std::string_view behaviour = "Isolated") {
    return with_part(concat({R"("pre_tokenizer": {"type": "Split", "invert": false, "behavior": ")",
                             behaviour, "\", \"pattern\": ", pattern, "}"}));
  };
  expect_error(split("null"), "pattern: expected an object with String or Regex");
  expect_error(split("\" \""), "pattern: expected an object with String or Regex");
  expect_error(split(R"({"Regex": "("})"), "regular expression");
  expect_error(split(R"({"Regex": "[a"})"), "[ without ]");
  expect_error(split(R"({"Regex": "\\p{Klingon}"})"), "regular expression");
  expect_error(split(R"({"Regex": "\\p{a;b}"})"), "property a;b");
  expect_error(split(R"({"Regex": "(?x) a"})"), "option (?x");
  expect_error(split(R"({"Regex": "(((a{1,1000}){1,1000}){1,1000}){1,1000}"})"), "regular");
  expect_error(split(concat({"{\"Regex\": \"", std::string(100'000, 'a'), "\"}"})),
               "at most 32768 bytes");
  expect_error(split(concat({"{\"Regex\": \"", std::string(5000, '['), "\"}"})), "too deep");
  expect_error(split(concat({"{\"Regex\": \"", std::string(5000, '('), "\"}"})),
               "regular expression");
  expect_error(split(R"({"String": "a"})", "Sometimes"), "behavior Sometimes");
  expect_error(with_part(R"("pre_tokenizer": {"type": "Metaspace", "replacement": "ab"})"),
               "one character");
  expect_error(with_part(R"("pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "last"})"),
               "found last");
  expect_error(with_part(R"("pre_tokenizer": {"type": "FixedLength", "length": 0})"), "at least 1");
  expect_error(with_part(R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": "?"})"),
               "base64");
  expect_error(
      with_part(R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////w=="})"),
      "expected a trie");
  expect_error(with_part(R"("decoder": {"type": "Strip", "content": "x", "start": -1, "stop": 0})"),
               "Strip");
}

TEST(TokenizerLoad, NamesWhatIsWrongInATemplate) {
  const auto post = [](std::string_view single, std::string_view tokens) {
    return with_part(concat({R"("post_processor": {"type": "TemplateProcessing", "single": )",
                             single, ", \"special_tokens\": ", tokens, "}"}));
  };
  constexpr std::string_view kA = R"({"Sequence": {"id": "A", "type_id": 0}})";
  constexpr std::string_view kStart = R"({"SpecialToken": {"id": "<s>"}})";
  expect_error(post("[]", "{}"), "expected sequence A once");
  expect_error(post(concat({"[", kA, ",", kA, "]"}), "{}"), "expected sequence A once");
  expect_error(post(R"([{"Sequence": {"id": "B"}}])", "{}"), "expected sequence A once");
  expect_error(post(concat({"[", kStart, ",", kA, "]"}), "{}"), "expected <s>");
  expect_error(post(concat({"[", kStart, ",", kA, "]"}), R"({"<s>": {"ids": [99999999999]}})"),
               "expected the id of a token");
}

TEST(TokenizerLoad, NamesWhatIsWrongInAnAddedToken) {
  const auto added = [](std::string_view token) {
    return with_part(concat({"\"added_tokens\": [", token, "]"}));
  };
  expect_error(with_part(R"("added_tokens": {})"), "expected an array");
  expect_error(added(R"({"content": "x"})"), "id: expected an integer");
  expect_error(added(R"({"id": 9})"), "content: expected a string");
  expect_error(added(R"({"id": -1, "content": "x"})"), "added token x: expected an id below");
  expect_error(added(R"({"id": 2147483648, "content": "x"})"), "found 2147483648");
  expect_error(added(R"({"id": 9, "content": "a"})"), "expected id 0 as in the vocabulary");
  expect_error(added(R"({"id": 1, "content": "x"})"), "which is that of b");
  expect_error(added(R"({"id": 9, "content": "x"}, {"id": 9, "content": "y"})"),
               "which is that of x");
  expect_error(added(R"({"id": 9, "content": "x"}, {"id": 8, "content": "x"})"), "found 9 and 8");
  expect_error(added(concat({"{\"id\": 9, \"content\": \"", std::string(2000, 'x'), "\"}"})),
               "at most 1024");
}

// `count` times `item`, with commas.
std::string repeated(std::string_view item, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += concat({i > 0 ? ", " : "", item});
  return list;
}

TEST(TokenizerLoad, BoundsSequences) {
  std::string nested = R"({"type": "NFC"})";
  for (int i = 0; i < 20; ++i)
    nested = concat({R"({"type": "Sequence", "normalizers": [)", nested, "]}"});
  expect_error(with_part(concat({"\"normalizer\": ", nested})), "8 levels");
  expect_error(with_part(concat({R"("normalizer": {"type": "Sequence", "normalizers": [)",
                                 repeated(R"({"type": "NFC"})", 100), "]}"})),
               "64 steps");
  expect_error(
      with_part(concat({R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [)",
                        repeated(R"({"type": "ByteLevel", "use_regex": false})", 10), "]}"})),
      "at most 3 of ByteLevel");
}

// ---- Bounded work ----

// What the work takes of a processor: what runs beside the test does not count.
double cpu_seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double start = now();
  work();
  return now() - start;
}

// Generous: what is quadratic takes hours.
constexpr double kCpuSecondsMax = 60;

TEST(TokenizerLoad, LeavesOutStepsThatBlowUpTheText) {
  const std::string step =
      concat({R"({"type": "Replace", "pattern": {"String": "a"}, "content": ")",
              std::string(1000, 'a'), "\"}"});
  const auto tokenizer = load_tokenizer(with_part(concat(
      {R"("normalizer": {"type": "Sequence", "normalizers": [)", repeated(step, 20), "]}"})));
  ASSERT_NE(tokenizer, nullptr);
  std::vector<int32_t> ids;
  EXPECT_LT(cpu_seconds([&] { ids = tokenizer->encode(std::string(10'000, 'a')); }),
            kCpuSecondsMax);
  EXPECT_LE(ids.size(), 64u * 10'000 + 4096);
}

TEST(TokenizerLoad, GivesUpOnExponentialExpressions) {
  const auto tokenizer = load_tokenizer(with_part(
      R"("pre_tokenizer": {"type": "Split", "behavior": "Isolated", "invert": false,
         "pattern": {"Regex": "(a|aa|a+)+$"}})"));
  ASSERT_NE(tokenizer, nullptr);
  std::vector<int32_t> ids;
  EXPECT_LT(cpu_seconds([&] { ids = tokenizer->encode(std::string(20'000, 'a') + "b"); }),
            kCpuSecondsMax);
  EXPECT_EQ(tokenizer->decode(ids, false).empty(), false);
}

TEST(TokenizerLoad, EncodesOneWordOfAMegabyteInTimeThatGrowsWithIt) {
  const auto tokenizer = load_tokenizer(tokenizer_json(bpe_json(
      R"({"a": 0, "aa": 1, "aaaa": 2, "b": 3, "ab": 4})", R"(["a a", ["aa", "aa"], "a b"])")));
  ASSERT_NE(tokenizer, nullptr);
  std::vector<int32_t> ids;
  EXPECT_LT(cpu_seconds([&] { ids = tokenizer->encode(std::string(1 << 20, 'a') + "b"); }),
            kCpuSecondsMax);
  ASSERT_EQ(ids.size(), (1u << 18) + 1);
  EXPECT_EQ(ids.front(), 2);
  EXPECT_EQ(ids.back(), 3);
}

TEST(TokenizerLoad, NormalisesAMegabyteOfMarksInTimeThatGrowsWithIt) {
  const auto tokenizer = load_tokenizer(with_part(R"("normalizer": {"type": "NFC"})"));
  ASSERT_NE(tokenizer, nullptr);
  std::string marks = "a";
  while (marks.size() < 1 << 20) marks += "\xcc\x81\xcc\x96";  // Classes 230 and 220, by turns.
  EXPECT_LT(cpu_seconds([&] { tokenizer->encode(marks); }), kCpuSecondsMax);
}

}  // namespace
}  // namespace weir::text
