// Where a published tokenizer.json is known, the patterns are its own, not those by which llama.cpp
// stands for them: that one knows no classes of letters by case.
#include "text/gguf_patterns.h"

#include <array>
#include <vector>

#include "base/json.h"
#include "text/patterns.h"

namespace weir::text {

namespace {

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
    R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kThreeDigits = R"(\p{N}{1,3})";
constexpr std::string_view kCjk = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
constexpr std::string_view kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
    R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// DeepSeek's first tokenizers cut by lists of characters: letters with case, punctuation, Han.
constexpr std::string_view kLineEnd = R"([\r\n])";
constexpr std::string_view kCased =
    "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293"
    "\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c"
    "\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5"
    "\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15"
    "\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d"
    "\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb"
    "\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124"
    "\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184"
    "\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f"
    "\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a"
    "\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2"
    "\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+";
constexpr std::string_view kPunctuation =
    "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+";
constexpr std::string_view kSpacesAtEnd = R"(\s+$)";
constexpr std::string_view kHan = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+";
constexpr std::string_view kPunctuationRuns = R"([\p{P}\$\+<=>\^~\|]+)";
constexpr std::string_view kNumbers = R"(\p{N}+)";
constexpr std::string_view kThreeAscii = R"([0-9][0-9][0-9])";
constexpr std::string_view kSpacedLetters = R"(\s?\p{L}+)";
constexpr std::string_view kSpacedPunctuation = R"(\s?\p{P}+)";
// Seed-Coder's differs from Qwen's where marks stand before a line's end: they do not take it.
constexpr std::string_view kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Qwen's without English contractions.
constexpr std::string_view kTurkish =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// After groups of three digits have been cut: what is left of numbers stays whole.
constexpr std::string_view kMiniCpm5 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Words end at sentences' marks of several scripts.
constexpr std::string_view kViking = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+";
// Hangul and its letters, marks of full width, Bopomofo, Han and kana.
constexpr std::string_view kYoutuScripts =
    "[\uac00-\ud7a3\u3131-\u318e]+|"
    "[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+|"
    "[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
constexpr std::string_view kYoutu =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Patterns one after the other, each of which cuts what the ones before have left.
struct Known {
  std::string_view name;
  std::array<std::string_view, 6> patterns{};
  bool ignore_merges = false;
  bool adds_bos = false;
};

constexpr std::array kKnown = {
    Known{"a.x-4.0", {kGpt2}},
    Known{"chatglm-bpe", {kLlama3}},
    Known{"codeshell", {kDigit, kGpt2}},
    Known{"command-r", {kDigit, kGpt2}},
    Known{"dbrx", {kLlama3}},
    Known{"deepseek-coder", {kLineEnd, kSpacedLetters, kSpacedPunctuation, kHan, kDigit}},
    Known{"deepseek-llm", {kLineEnd, kCased, kPunctuation, kSpacesAtEnd, kHan, kDigit}},
    Known{"deepseek-r1-qwen", {kQwenPattern}},
    Known{"deepseek-v3", {kThreeDigits, kCjk, kDeepseek3}},
    Known{"default", {kPunctuationRuns, kGpt2, kNumbers, kThreeAscii}},
    Known{"exaone", {kDigit, kGpt2}},
    Known{"exaone4", {kGpt2}},
    Known{"f2llmv2", {kQwenPattern}},
    Known{"falcon-h1", {kLlama3}, true, true},
    Known{"falcon3", {kLlama3}, true, true},
    Known{"gigachat", {kGpt2}},
    Known{"glm4", {kLlama3}},
    Known{"gpt-2", {kGpt2}},
    Known{"gpt-4o", {kGpt4o}},
    Known{"granite-docling", {kGpt2}},
    Known{"grok-2", {kQwenPattern}},
    Known{"hunyuan", {kQwenPattern}},
    Known{"hunyuan-dense", {kThreeDigits, kCjk, kDeepseek3}},
    Known{"hy_v4", {kThreeDigits, kCjk, kDeepseek3}},
    Known{"jais", {kGpt2}},
    Known{"joyai-llm", {kThreeDigits, kCjk, kDeepseek3}},
    Known{"kanana2", {kGpt4o}},
    Known{"kimi-k2", {kKimiPattern}},
    Known{"kormo", {kQwenPattern}},
    Known{"lfm2", {kLlama3}, true, true},
    Known{"llama-bpe", {kLlama3}, true, true},
    Known{"llama-v3", {kLlama3}, true, true},
    Known{"llama3", {kLlama3}, true, true},
    Known{"llama4", {kGpt4o}},
    Known{"megrez", {kQwenPattern}},
    Known{"mellum", {kGpt2}},
    Known{"mellum2", {kDigit, kGpt2}},
    Known{"midm-2.0", {kLlama3}, true, true},
    Known{"minerva-7b", {kDigit, kGpt2}},
    Known{"minicpm5", {kThreeDigits, kMiniCpm5}, true},
    Known{"minimax-m2", {kGpt4o}},
    Known{"mpt", {kGpt2}},
    Known{"olmo", {kGpt2}},
    Known{"phi-2", {kGpt2}},
    Known{"pixtral", {kLlama3}, true, true},
    Known{"qwen2", {kQwenPattern}},
    Known{"qwen35", {kQwen35}},
    Known{"refact", {kDigit, kGpt2}},
    Known{"seed-coder", {kSeedCoder}},
    Known{"smaug-bpe", {kLlama3}},
    Known{"smollm", {kDigit, kGpt2}},
    Known{"solar-open", {kQwenPattern}},
    Known{"stablelm2", {kQwenPattern}},
    Known{"starcoder", {kDigit, kGpt2}},
    Known{"talkie", {kGpt4o}},
    Known{"tekken", {kTekken}, true, true},
    Known{"trillion", {kGpt2}},
    Known{"ufakzeka", {kTurkish}},
    Known{"viking", {kViking, kDigit}},
    Known{"youtu", {kYoutuScripts, kYoutu}, true},
};

}  // namespace

GgufPattern gguf_pattern(std::string_view pre) {
  for (const Known& known : kKnown) {
    if (known.name != pre) continue;
    GgufPattern out = {.ignore_merges = known.ignore_merges, .adds_bos = known.adds_bos};
    out.pre_tokenizer = R"({"type":"Sequence","pretokenizers":[)";
    for (const std::string_view pattern : known.patterns) {
      if (pattern.empty()) break;
      out.pre_tokenizer += R"({"type":"Split","pattern":{"Regex":)";
      append_json_string(out.pre_tokenizer, pattern);
      out.pre_tokenizer += R"(},"behavior":"Isolated"},)";
    }
    out.pre_tokenizer += R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})";
    return out;
  }
  return {};
}

std::string gguf_pattern_names() {
  std::string names;
  for (const Known& known : kKnown) names.append(names.empty() ? "" : ", ").append(known.name);
  return names;
}

}  // namespace weir::text
