#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/utf8.h"
#include "tokenizer_fixture.h"

namespace weir::text {
namespace {

// One token for each byte, as byte-level models have them: any split of any bytes is a stream.
std::string byte_model_json() {
  std::string vocab = "{";
  int next = 0x100;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    std::string character;
    append_utf8(character, static_cast<char32_t>(printable ? b : next++));
    if (b > 0) vocab += ", ";
    append_json_string(vocab, character);
    vocab += ": " + std::to_string(b);
  }
  vocab += "}";
  return tokenizer_json(
      R"({"type": "BPE", "merges": [], "vocab": )" + vocab + "}",
      R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
         "decoder": {"type": "ByteLevel"}, "added_tokens": [
         {"id": 256, "content": "<end>", "special": true},
         {"id": 257, "content": "<tool>", "special": false}])");
}

const Tokenizer& byte_tokenizer() {
  static const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(byte_model_json());
  return *tokenizer;
}

std::string push_bytes(Detokenizer& detokenizer, std::string_view bytes) {
  std::string text;
  for (const char b : bytes) text += detokenizer.push(static_cast<uint8_t>(b));
  return text;
}

Detokenizer with_stop(std::vector<std::string> stop, bool include = false) {
  return Detokenizer(byte_tokenizer(), {.stop = std::move(stop), .include_stop = include});
}

TEST(Detokenizer, HoldsACharacterUntilItsLastByte) {
  Detokenizer detokenizer = with_stop({});
  EXPECT_EQ(push_bytes(detokenizer, "a\xf0\x9f\xa6"), "a");
  EXPECT_EQ(detokenizer.push(0x9c), "\xf0\x9f\xa6\x9c");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, ReplacesInvalidBytesOnceTheyAreKnownToBe) {
  Detokenizer detokenizer = with_stop({});
  EXPECT_EQ(push_bytes(detokenizer, "\xe6\x97"), "");
  EXPECT_EQ(detokenizer.push('z'), "\xef\xbf\xbdz");
  EXPECT_EQ(detokenizer.push(0xff), "\xef\xbf\xbd");
  EXPECT_EQ(detokenizer.push(0xc3), "");
  EXPECT_EQ(detokenizer.finish(), "\xef\xbf\xbd");
}

TEST(Detokenizer, HoldsOnlyWhatAStopStringMayBeginWith) {
  Detokenizer detokenizer = with_stop({"STOP"});
  EXPECT_EQ(push_bytes(detokenizer, "xST"), "x");
  EXPECT_EQ(detokenizer.push('S'), "ST");
  EXPECT_EQ(push_bytes(detokenizer, "TO"), "");
  EXPECT_EQ(detokenizer.push('P'), "");
  EXPECT_TRUE(detokenizer.stopped());
  EXPECT_EQ(detokenizer.stop_string(), "STOP");
  EXPECT_EQ(push_bytes(detokenizer, "more"), "");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, GivesBackWhatWasHeldAtTheEnd) {
  Detokenizer detokenizer = with_stop({"STOP", "TOAST"});
  EXPECT_EQ(push_bytes(detokenizer, "xSTO"), "x");
  EXPECT_EQ(detokenizer.finish(), "STO");
  EXPECT_FALSE(detokenizer.stopped());
}

TEST(Detokenizer, NeverLosesOrKeepsTextWhenAPrefixOfTheStopStringRecurs) {
  Detokenizer detokenizer = with_stop({"aaab"});
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += detokenizer.push('a');
    ASSERT_GE(text.size() + 3, static_cast<size_t>(i) + 1);  // At most "aaa" is held.
  }
  text += detokenizer.push('c');
  EXPECT_EQ(text, std::string(1000, 'a') + "c");
}

TEST(Detokenizer, KeepsTheStopStringWhereAsked) {
  Detokenizer detokenizer = with_stop({"\n\n"}, true);
  EXPECT_EQ(push_bytes(detokenizer, "one\ntwo\n\nthree"), "one\ntwo\n\n");
  EXPECT_TRUE(detokenizer.stopped());
}

TEST(Detokenizer, TakesTheStopStringThatEndsFirstAndTheLongestOfThose) {
  Detokenizer first = with_stop({"abcd", "bc"});
  EXPECT_EQ(push_bytes(first, "xabcd"), "xa");
  EXPECT_EQ(first.stop_string(), "bc");
  Detokenizer longest = with_stop({"c", "abc", "bc"});
  EXPECT_EQ(push_bytes(longest, "xabcd"), "x");
  EXPECT_EQ(longest.stop_string(), "abc");
}

TEST(Detokenizer, SkipsSpecialTokensUnlessAskedNotTo) {
  Detokenizer skips(byte_tokenizer(), {});
  EXPECT_EQ(skips.push(256), "");
  EXPECT_EQ(skips.push(257), "<tool>");
  Detokenizer keeps(byte_tokenizer(), {.skip_special = false});
  EXPECT_EQ(keeps.push(256), "<end>");
}

TEST(Detokenizer, IgnoresIdsThatDoNotExist) {
  Detokenizer detokenizer = with_stop({"x"});
  for (const int32_t id : {-1, 258, INT32_MAX, INT32_MIN}) EXPECT_EQ(detokenizer.push(id), "");
}

// A SentencePiece-like model whose decode() drops the first space.
std::string metaspace_json(std::string_view decoder) {
  std::string rest = R"("decoder": )";
  rest += decoder;
  return tokenizer_json(R"({"type": "BPE", "merges": [], "byte_fallback": true, "vocab": {
      "▁": 0, "▁the": 1, "cat": 2, "▁▁x": 3, "<0xC3>": 4, "<0xA9>": 5}})",
                        rest);
}

TEST(Detokenizer, DropsTheFirstSpaceAsDecodeDoes) {
  const auto strip = load_tokenizer(metaspace_json(
      R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"},
          "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
          {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})"));
  const auto metaspace = load_tokenizer(
      metaspace_json(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"})"));
  ASSERT_TRUE(strip && metaspace);
  EXPECT_TRUE(strip->strips_leading_space());
  for (const Tokenizer* tokenizer : {strip.get(), metaspace.get()}) {
    for (const std::vector<int32_t>& ids :
         {std::vector<int32_t>{1, 2, 1}, {3, 1}, {0, 0, 1}, {2, 1}, {0}, {0, 2}}) {
      Detokenizer detokenizer(*tokenizer, {});
      std::string text;
      for (const int32_t id : ids) text += detokenizer.push(id);
      text += detokenizer.finish();
      EXPECT_EQ(text, tokenizer->decode(ids, true)) << testing::PrintToString(ids);
    }
  }
  Detokenizer continues(*strip, {.strip_leading_space = false});
  EXPECT_EQ(continues.push(1), " the");
  EXPECT_EQ(continues.push(4), "");
  EXPECT_EQ(continues.push(5), "é");
}

// Random streams of few different bytes, so that stop strings, their prefixes and broken characters
// are common.
struct Stream {
  std::string bytes;
  std::vector<std::string> stop;
};

Stream random_stream(std::mt19937& random) {
  static constexpr std::string_view kBytes = "aab\xc3\xa9\xe6\x97\xa5\xff";
  Stream stream;
  const auto pick = [&](std::string_view from) { return from[random() % from.size()]; };
  for (size_t i = random() % 60; i > 0; --i) stream.bytes += pick(kBytes);
  for (size_t s = random() % 4; s > 0; --s) {
    std::string stop;
    for (size_t i = 1 + random() % 5; i > 0; --i)
      stop += random() % 5 == 0 ? "é" : std::string(1, pick("aab"));
    stream.stop.push_back(stop);
  }
  return stream;
}

// What the contract says, computed on the whole text.
struct Expected {
  std::string text;
  bool stopped = false;
};

Expected expected_of(const Stream& stream, bool include_stop) {
  Expected expected;
  append_valid_utf8(expected.text, stream.bytes);
  size_t end_min = std::string::npos, length = 0;
  for (const std::string& stop : stream.stop) {
    const size_t at = expected.text.find(stop);
    if (at == std::string::npos) continue;
    const size_t end = at + stop.size();
    if (end < end_min || (end == end_min && stop.size() > length)) {
      end_min = end;
      length = stop.size();
    }
  }
  if (end_min != std::string::npos) {
    expected.stopped = true;
    expected.text.resize(include_stop ? end_min : end_min - length);
  }
  return expected;
}

TEST(Detokenizer, GivesTheWholeTextOfAnyStreamUpToItsStopString) {
  std::mt19937 random(7);
  int stopped = 0;
  for (int i = 0; i < 20000; ++i) {
    const Stream stream = random_stream(random);
    const bool include = random() % 2 == 0;
    const Expected expected = expected_of(stream, include);
    Detokenizer detokenizer = with_stop(stream.stop, include);
    std::string text;
    for (const char b : stream.bytes) {
      const std::string_view piece = detokenizer.push(static_cast<uint8_t>(b));
      ASSERT_TRUE(valid_utf8(piece));
      text += piece;
      ASSERT_TRUE(expected.text.starts_with(text)) << "too much was returned";
    }
    text += detokenizer.finish();
    ASSERT_EQ(text, expected.text);
    ASSERT_EQ(detokenizer.stopped(), expected.stopped);
    stopped += expected.stopped ? 1 : 0;
  }
  EXPECT_GT(stopped, 2000);
}

TEST(Detokenizer, StreamsWhatDecodeGivesForAnyTokens) {
  const auto tokenizer = load_tokenizer(own_tokenizer_json());
  ASSERT_NE(tokenizer, nullptr);
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::vector<int32_t> ids(random() % 40);
    // Half of them from the first 256: single bytes, mostly broken characters.
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % (random() % 2 ? 8300 : 256));
    Detokenizer detokenizer(*tokenizer, {});
    std::string text;
    for (const int32_t id : ids) text += detokenizer.push(id);
    text += detokenizer.finish();
    ASSERT_EQ(text, tokenizer->decode(ids, true));
  }
}

}  // namespace
}  // namespace weir::text
