// Formats are found in chat templates: in lines such as templates have, and in the templates of the
// fixtures where those are.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "api/output/call_format.h"
#include "api/output/reasoning_format.h"
#include "base/file.h"

namespace weir::api::output {
namespace {

std::string calls_of(std::string_view text) {
  const CallFormat* format = detect_calls(text);
  return format ? std::string(format->name) : "none";
}

std::string reasoning_of(std::string_view text) {
  const ReasoningFormat* format = detect_reasoning(text);
  return format ? std::string(format->name) : "none";
}

TEST(Formats, AreFoundByTheirMarkers) {
  EXPECT_EQ(calls_of("{{ message.content }}"), "none");
  EXPECT_EQ(calls_of("{% if tools %}{{ tools | tojson }}{% endif %}"), "json");
  EXPECT_EQ(calls_of("{{ '<tool_call>' }}"), "hermes");
  EXPECT_EQ(calls_of("<tool_call><function=x><parameter=y>"), "qwen3_coder");
  EXPECT_EQ(calls_of("[TOOL_CALLS]"), "mistral");
  EXPECT_EQ(reasoning_of("{{ '<think>' }}"), "none");
  EXPECT_EQ(reasoning_of("{{ content.split('</think>')[-1] }}"), "think");
}

TEST(Formats, HaveNamesOfTheirOwnAndMarkersThatDoNotBeginEachOther) {
  for (const CallFormat& format : call_formats()) {
    EXPECT_EQ(find_calls(format.name), &format);
    EXPECT_EQ(format.reader == nullptr, format.messages) << format.name;
    EXPECT_FALSE(format.native_grammar && format.grammar.section_begin.empty()) << format.name;
    for (const std::string_view a : format.begins)
      for (const std::string_view b : format.begins) EXPECT_TRUE(a == b || !a.starts_with(b));
  }
  for (const ReasoningFormat& format : reasoning_formats())
    EXPECT_EQ(find_reasoning(format.name), &format);
}

TEST(Formats, OfKnownTemplates) {
  const char* fixtures = std::getenv("WEIR_FIXTURES");
  const std::filesystem::path folder =
      std::filesystem::path(fixtures ? fixtures : WEIR_SOURCE_DIR "/../shared/fixtures") /
      "chat_templates/templates";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no templates: WEIR_FIXTURES is not set";
  const std::map<std::string, std::pair<std::string, std::string>> expected = {
      {"ByteDance-Seed-OSS", {"seed", "seed"}},
      {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", {"command", "command"}},
      {"GLM-4.7-Flash", {"glm", "think"}},
      {"Kimi-K2-Instruct", {"kimi_k2", "none"}},
      {"Kimi-K2-Thinking", {"kimi_k2", "think"}},
      {"LFM2-8B-A1B", {"lfm2", "none"}},
      {"MiniMax-M2", {"minimax_m2", "think"}},
      {"Mistral-Small-3.2-24B-Instruct-2506", {"mistral_args", "none"}},
      {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", {"qwen3_coder", "think"}},
      {"NVIDIA-Nemotron-Nano-v2", {"nemotron", "think"}},
      {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", {"hermes", "none"}},
      {"Qwen-Qwen3-0.6B", {"hermes", "think"}},
      {"Qwen-Qwen3-Coder-30B-A3B-Instruct", {"qwen3_coder", "none"}},
      {"Qwen3.5-4B", {"qwen3_coder", "think"}},
      {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", {"deepseek_v3", "think"}},
      {"deepseek-ai-DeepSeek-V3.1", {"deepseek_v31", "think"}},
      {"deepseek-ai-DeepSeek-V3.2", {"deepseek_v32", "think"}},
      {"deepseek-ai-DeepSeek-V4", {"deepseek_v4", "think"}},
      {"fireworks-ai-llama-3-firefunction-v2", {"firefunction", "none"}},
      {"google-gemma-2-2b-it", {"none", "none"}},
      {"google-gemma-4-31B-it", {"gemma4", "gemma"}},
      {"ibm-granite-granite-3.3-2B-Instruct", {"granite", "think"}},
      {"ibm-granite-granite-4.0", {"hermes", "none"}},
      {"meetkai-functionary-medium-v3.1", {"functionary", "none"}},
      {"meta-llama-Llama-3.1-8B-Instruct", {"llama3", "none"}},
      {"meta-llama-Llama-3.2-3B-Instruct", {"llama3", "none"}},
      {"mistralai-Ministral-3-14B-Reasoning-2512", {"mistral_args", "mistral"}},
      {"mistralai-Mistral-Nemo-Instruct-2407", {"mistral", "none"}},
      {"openai-gpt-oss-120b", {"harmony", "harmony"}},
      {"unsloth-Apriel-1.5", {"tool_calls", "thinking"}},
  };
  for (const auto& [name, formats] : expected) {
    const auto source = read_file((folder / (name + ".jinja")).string(), size_t{1} << 20);
    ASSERT_TRUE(source) << name;
    EXPECT_EQ(calls_of(*source), formats.first) << name;
    EXPECT_EQ(reasoning_of(*source), formats.second) << name;
  }
}

}  // namespace
}  // namespace weir::api::output
