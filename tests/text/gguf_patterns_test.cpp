#include "text/gguf_patterns.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "text/byte_level.h"
#include "text/pre_tokenizer.h"

namespace weir::text {
namespace {

// The words of a text, with bars between them and bytes by their names in vocabularies.
std::string cut(std::string_view pre, std::string_view text) {
  const GgufPattern pattern = gguf_pattern(pre);
  if (pattern.pre_tokenizer.empty()) return "(not known)";
  const auto json = JsonDoc::parse(pattern.pre_tokenizer);
  if (!json) return json.error().message;
  const auto cutter = PreTokenizer::parse(json->root());
  if (!cutter) return cutter.error().message;
  Words words = {.text = std::string(text), .words = {{0, text.size(), true}}};
  cutter->run(words);
  std::string out;
  for (const Words::Word& word : words.words)
    out.append(out.empty() ? "" : "|").append(words.view(word));
  return out;
}

std::string named(std::string_view text) {
  std::string out;
  append_byte_level(out, text);
  return out;
}

// Those that llama.cpp's converter writes for the architectures of gguf_architecture.cpp.
constexpr std::string_view kWritten[] = {
    "a.x-4.0",      "chatglm-bpe",
    "dbrx",         "deepseek-coder",
    "deepseek-llm", "deepseek-v3",
    "default",      "f2llmv2",
    "falcon3",      "gigachat",
    "glm4",         "gpt-2",
    "gpt-4o",       "deepseek-r1-qwen",
    "joyai-llm",    "kanana2",
    "kimi-k2",      "kormo",
    "lfm2",         "llama-bpe",
    "megrez",       "mellum",
    "midm-2.0",     "minerva-7b",
    "minicpm5",     "olmo",
    "pixtral",      "qwen2",
    "qwen35",       "refact",
    "seed-coder",   "smaug-bpe",
    "smollm",       "solar-open",
    "starcoder",    "granite-docling",
    "stablelm2",    "tekken",
    "trillion",     "viking",
    "youtu",        "command-r",
    "llama3",       "llama-v3",
    "ufakzeka",
};

TEST(GgufPatterns, OfAllNamesThatFilesOfTheseArchitecturesCarryAreKnown) {
  for (const std::string_view pre : kWritten) EXPECT_EQ(cut(pre, "a b"), "a|" + named(" b")) << pre;
  EXPECT_EQ(cut("new-pre", "a b"), "(not known)");
}

// One text in which patterns differ: digits, case, contractions, marks before a line's end.
TEST(GgufPatterns, CutDigitsContractionsAndLinesEachInItsWay) {
  constexpr std::string_view kText = "I'VE 12345 ok?!\nNo";
  const std::string five = named(" 12345"), mark = named("?!\n"), line = named("\n");
  const std::string space = named(" "), i_ve = "I|'VE|";
  const std::string one_by_one = "|1|2|3|4|5|", threes = "|123|45|";
  const std::string ok = named(" ok") + "|";
  EXPECT_EQ(cut("llama-bpe", kText), i_ve + space + threes + ok + mark + "|No");
  EXPECT_EQ(cut("qwen2", kText), i_ve + space + one_by_one + ok + mark + "|No");
  EXPECT_EQ(cut("seed-coder", kText), i_ve + space + one_by_one + ok + "?!|" + line + "|No");
  EXPECT_EQ(cut("ufakzeka", kText), "I|'VE|" + space + one_by_one + ok + mark + "|No");
  EXPECT_EQ(cut("minicpm5", kText), i_ve + space + threes + ok + mark + "|No");
  EXPECT_EQ(cut("gpt-2", kText), "I|'|VE|" + five + "|" + ok + "?!|" + line + "|No");
  EXPECT_EQ(cut("refact", kText), "I|'|VE|" + space + one_by_one + ok + "?!|" + line + "|No");
  EXPECT_EQ(cut("deepseek-coder", kText),
            "I|'|VE|" + space + one_by_one + ok + "?!|" + line + "|No");
  EXPECT_EQ(cut("viking", kText), "I'VE|" + space + one_by_one + ok + mark + "|No");
}

TEST(GgufPatterns, CutScriptsApartWhereTheirTokenizersDo) {
  EXPECT_EQ(cut("youtu", "ab\u6f22\u5b57\ud55c\u3002x1"),
            "ab|" + named("\u6f22\u5b57") + "|" + named("\ud55c") + "|" + named("\u3002") + "|x|1");
  EXPECT_EQ(cut("qwen35", "\u0928\u093fx"), named("\u0928\u093fx")) << "marks belong to words";
  EXPECT_EQ(cut("qwen2", "\u0928\u093fx"), named("\u0928") + "|" + named("\u093fx"));
}

}  // namespace
}  // namespace weir::text
