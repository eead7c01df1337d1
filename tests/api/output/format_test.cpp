// Formats are found in chat templates: in lines such as templates have, and in the templates of the
// fixtures where those are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "api/output/call_format.h"
#include "api/output/reasoning_format.h"
#include "api/serving/answer_end.h"
#include "base/file.h"
#include "base/json.h"

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

// What one template is taken for, and what it writes after an answer.
struct KnownTemplate {
  std::string calls, reasoning, end;
};

// Every template of the fixtures. `end` is empty where nothing but the next turn ends an answer, or
// where the fixtures have no answer in words. Calls called json are found in any text: no reader
// knows the template's own markers.
std::map<std::string, KnownTemplate> known_templates() {
  return {
      {"Apriel-1.6-15b-Thinker-fixed", {"tool_calls", "apriel", ""}},
      {"Bielik-11B-v3.0-Instruct", {"hermes", "think", "<|im_end|>"}},
      {"ByteDance-Seed-OSS", {"seed", "seed", "<seed:eos>"}},
      {"CohereForAI-c4ai-command-r-plus-tool_use", {"json", "none", "<|END_OF_TURN_TOKEN|>"}},
      {"CohereForAI-c4ai-command-r7b-12-2024-tool_use",
       {"command", "command", "<|END_RESPONSE|><|END_OF_TURN_TOKEN|>"}},
      {"GLM-4.7-Flash", {"glm", "think", ""}},
      {"GLM-5.2", {"glm", "think", ""}},
      {"HuggingFaceTB-SmolLM3-3B", {"none", "think", "<|im_end|>"}},
      {"Kimi-K2-Instruct", {"kimi_k2", "none", "<|im_end|>"}},
      {"Kimi-K2-Thinking", {"kimi_k2", "think", "<|im_end|>"}},
      {"LFM2-8B-A1B", {"lfm2", "none", "<|im_end|>"}},
      {"MiMo-VL", {"hermes", "none", "<|im_end|>"}},
      {"MiniMax-M2", {"minimax_m2", "think", "[e~["}},
      {"MiroThinker", {"hermes", "think", ""}},
      {"Mistral-Small-3.2-24B-Instruct-2506", {"mistral_args", "none", "<EOS>"}},
      {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", {"qwen3_coder", "think", "<|im_end|>"}},
      {"NVIDIA-Nemotron-Nano-v2", {"nemotron", "think", "<SPECIAL_12>"}},
      {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", {"hermes", "none", "<|im_end|>"}},
      {"Qwen-Qwen3-0.6B", {"hermes", "think", "<|im_end|>"}},
      {"Qwen-Qwen3-Coder-30B-A3B-Instruct", {"qwen3_coder", "none", "<|im_end|>"}},
      {"Qwen3.5-4B", {"qwen3_coder", "think", "<|im_end|>"}},
      {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
       {"deepseek_v3", "think", "<｜end▁of▁sentence｜>"}},
      {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
       {"deepseek_v3", "think", "<｜end▁of▁sentence｜>"}},
      {"deepseek-ai-DeepSeek-V3.1", {"deepseek_v31", "think", "<｜end▁of▁sentence｜>"}},
      {"deepseek-ai-DeepSeek-V3.2", {"deepseek_v32", "think", "<｜end▁of▁sentence｜>"}},
      {"deepseek-ai-DeepSeek-V4", {"deepseek_v4", "think", "<｜end▁of▁sentence｜>"}},
      {"fireworks-ai-llama-3-firefunction-v2", {"firefunction", "none", ""}},
      {"gemma3n", {"none", "none", "<end_of_turn>"}},
      {"gemma4_31b_chat_template", {"gemma4", "gemma", "<turn|>"}},
      {"glimmer_chat_template", {"json", "none", "<|eot|>"}},
      {"google-gemma-2-2b-it", {"none", "none", "<end_of_turn>"}},
      {"google-gemma-4-31B-it", {"gemma4", "gemma", "<turn|>"}},
      {"google-gemma-4-31B-it-interleaved", {"gemma4", "gemma", "<turn|>"}},
      {"ibm-granite-granite-3.3-2B-Instruct", {"granite", "think", "<|end_of_text|>"}},
      {"ibm-granite-granite-4.0", {"hermes", "none", "<|end_of_text|>"}},
      {"laguna_v8_chat_template", {"glm", "think", "</assistant>"}},
      {"llama-cpp-rwkv-world", {"none", "think", ""}},
      {"meetkai-functionary-medium-v3.1", {"functionary", "none", "<|eot_id|>"}},
      {"meta-llama-Llama-3.1-8B-Instruct", {"llama3", "none", "<|eot_id|>"}},
      {"meta-llama-Llama-3.2-3B-Instruct", {"llama3", "none", "<|eot_id|>"}},
      {"microsoft-Phi-3.5-mini-instruct", {"none", "none", "<|end|>"}},
      {"mistral_nemo_tool_call", {"mistral", "none", "<EOS>"}},
      {"mistralai-Ministral-3-14B-Reasoning-2512", {"mistral_args", "mistral", "<EOS>"}},
      {"mistralai-Mistral-Nemo-Instruct-2407", {"mistral", "none", "<EOS>"}},
      {"moonshotai-Kimi-K2", {"kimi_k2", "none", "<|im_end|>"}},
      {"nemotron35_chat_template", {"qwen3_coder", "think", "<|im_end|>"}},
      {"nousresearch_hermes2_pro_tool_use", {"hermes", "none", "<|im_end|>"}},
      {"openai-gpt-oss-120b", {"harmony", "harmony", "<|return|>"}},
      {"tokenizer-llama3_1", {"none", "none", "<|eot_id|>"}},
      {"unsloth-Apriel-1.5", {"tool_calls", "thinking", "<|end|>"}},
      {"unsloth-mistral-Devstral-Small-2507", {"mistral_args", "none", "<EOS>"}},
      {"upstage-Solar-Open-100B", {"solar_open", "solar_open", "<|end|>"}},
  };
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

// What the recorded conversation has after the assistant's words.
std::string_view after_answer(JsonValue renders, JsonValue contexts) {
  for (const char* context : {"nogen", "system"}) {
    const auto text = json_get(renders[context], "ok");
    for (const JsonValue message : JsonArray(contexts[context]["messages"])) {
      if (!text || std::string_view(message["role"]) != "assistant") continue;
      const std::string_view words = trimmed(std::string_view(message["content"]));
      const size_t at = std::string_view(*text).find(words);
      if (at != std::string_view::npos)
        return trimmed(std::string_view(*text).substr(at + words.size()));
    }
  }
  return {};
}

JsonDoc read_json(const std::filesystem::path& path) {
  const auto text = read_file(path.string(), size_t{16} << 20);
  auto doc = JsonDoc::parse(text ? *text : "");
  EXPECT_TRUE(doc) << path;
  return doc ? std::move(*doc) : *JsonDoc::parse("{}");
}

TEST(Formats, OfKnownTemplates) {
  const char* fixtures = std::getenv("WEIR_FIXTURES");
  const std::filesystem::path folder =
      std::filesystem::path(fixtures ? fixtures : WEIR_SOURCE_DIR "/../shared/fixtures") /
      "chat_templates";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no templates: WEIR_FIXTURES is not set";
  const JsonDoc renders = read_json(folder / "renders.json");
  const JsonDoc contexts = read_json(folder / "contexts.json");
  const std::map<std::string, KnownTemplate> known = known_templates();
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "templates")) {
    SCOPED_TRACE(entry.path().filename().string());
    const auto expected = known.find(entry.path().stem());
    ASSERT_NE(expected, known.end());
    const auto source = read_file(entry.path().string(), size_t{1} << 20);
    ASSERT_TRUE(source);
    EXPECT_EQ(calls_of(*source), expected->second.calls);
    EXPECT_EQ(reasoning_of(*source), expected->second.reasoning);
    const auto rendered = json_get(renders.root(), entry.path().filename().string());
    ASSERT_TRUE(rendered);
    const auto parsed = text::ChatTemplate::parse(*source);
    ASSERT_TRUE(parsed);
    const std::string ours =
        text_after_answer(*parsed, {{"bos_token", "<BOS>"}, {"eos_token", "<EOS>"}});
    EXPECT_TRUE(ours.starts_with(expected->second.end)) << ours;
    const std::string_view rest = after_answer(*rendered, contexts.root());
    EXPECT_TRUE(rest.starts_with(expected->second.end)) << rest;
    EXPECT_EQ(expected->second.end.empty(), !rest.starts_with('<') && !rest.starts_with('['))
        << rest;
    ++count;
  }
  EXPECT_EQ(count, known.size());
}

}  // namespace
}  // namespace weir::api::output
