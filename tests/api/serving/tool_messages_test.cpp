// What a chat template leaves out of tools, and how it gets into the prompt all the same.
#include "api/serving/tool_messages.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "base/json.h"

namespace weir::api {
namespace {

TemplateTools probe(const std::string& source, const MediaMarks& marks = {}) {
  auto parsed = text::ChatTemplate::parse(source);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return probe_template(*parsed, {{"bos_token", "<s>"}, {"eos_token", "</s>"}}, marks);
}

std::filesystem::path templates() {
  const char* fixtures = std::getenv("WEIR_FIXTURES");
  return std::filesystem::path(fixtures ? fixtures : WEIR_SOURCE_DIR "/../shared/fixtures") /
         "chat_templates/templates";
}

std::string source_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream source;
  source << file.rdbuf();
  return source.str();
}

constexpr const char* kPlain =
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}";

TEST(ToolMessages, ProbesSeeWhatATemplateWrites) {
  const TemplateTools plain = probe(kPlain);
  EXPECT_FALSE(plain.tools);
  EXPECT_FALSE(plain.calls);
  EXPECT_TRUE(plain.results);
  EXPECT_TRUE(plain.system);
  const TemplateTools full = probe(
      "{{ bos_token }}{% if tools %}{{ tools | tojson }}{% endif %}"
      "{% for m in messages %}{{ m['content'] }}{% for c in m['tool_calls'] or [] %}"
      "{{ c['function'] | tojson }}{% endfor %}{% endfor %}");
  EXPECT_TRUE(full.tools);
  EXPECT_TRUE(full.calls);
  EXPECT_TRUE(full.results);
  // Tools stand in the system message, or nowhere.
  EXPECT_TRUE(probe("{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] }}"
                    "{{ tools | tojson }}{% endif %}x")
                  .tools);
  const TemplateTools strict = probe(
      "{% for m in messages %}{% if m['role'] not in ['user', 'assistant'] %}"
      "{{ raise_exception('no such role') }}{% endif %}{{ m['content'] }}{% endfor %}");
  EXPECT_FALSE(strict.tools);
  EXPECT_FALSE(strict.calls);
  EXPECT_FALSE(strict.results);
  EXPECT_FALSE(strict.system);
  // One that cannot be rendered is left alone.
  const TemplateTools broken = probe("{{ raise_exception('never') }}");
  EXPECT_TRUE(broken.tools && broken.calls && broken.results && broken.system);
}

std::string letters(const TemplateTools& written) {
  return std::string(written.tools ? "T" : "-") + (written.calls ? "C" : "-") +
         (written.results ? "R" : "-") + (written.system ? "S" : "-");
}

TEST(ToolMessages, OfKnownTemplates) {
  const std::filesystem::path folder = templates();
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no templates: WEIR_FIXTURES is not set";
  // Kimi's change a list in calls, which the sandbox of templates does not allow; SmolLM3's knows
  // tools by names of its own.
  const std::map<std::string, std::string> expected = {
      {"HuggingFaceTB-SmolLM3-3B", "--RS"},
      {"Kimi-K2-Instruct", "T-RS"},
      {"Kimi-K2-Thinking", "T-RS"},
      {"LFM2-8B-A1B", "T-RS"},
      {"MiroThinker", "---S"},
      {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "--RS"},
      {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "-CRS"},
      {"deepseek-ai-DeepSeek-V3.1", "-CRS"},
      {"gemma3n", "---S"},
      {"google-gemma-2-2b-it", "----"},
      {"ibm-granite-granite-3.3-2B-Instruct", "T-RS"},
      {"llama-cpp-rwkv-world", "---S"},
      {"microsoft-Phi-3.5-mini-instruct", "---S"},
      {"tokenizer-llama3_1", "--RS"},
  };
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto found = expected.find(entry.path().stem());
    EXPECT_EQ(letters(probe(source_of(entry.path()))), found == expected.end() ? "TCRS" : found->second)
        << entry.path();
  }
}

std::string content_letters(const TemplateTools& written) {
  return std::string(written.strings ? "S" : "-") + (written.media.images ? "I" : "-") +
         (written.result_media.images ? "R" : "-");
}

// As SmolVLM's and LLaVA's do it: what is no list shows nothing.
constexpr const char* kLists =
    "{% for m in messages %}<{{ m['role'] }}>{% for p in m['content'] %}"
    "{% if p['type'] == 'image' %}<image>{% elif p['type'] == 'text' %}{{ p['text'] }}{% endif %}"
    "{% endfor %}{% endfor %}";

TEST(ToolMessages, ProbesSeeHowContentIsTaken) {
  EXPECT_EQ(content_letters(probe(kPlain, {.image = "<image>"})), "S--") << "the list's own text is no part";
  EXPECT_EQ(content_letters(probe(kLists, {.image = "<image>"})), "-IR");
  EXPECT_EQ(content_letters(probe(kLists)), "---") << "the model sees no images";
  EXPECT_EQ(content_letters(probe(kLists, {.image = "<other>"})), "---");
  const TemplateTools lists = probe(kLists, {.image = "<image>"});
  EXPECT_TRUE(lists.system) << "what it writes otherwise is seen in its own way";
  EXPECT_TRUE(lists.results);
  EXPECT_EQ(content_letters(probe("{% for m in messages %}{% if m['role'] == 'tool' %}"
                                  "{{ m['content'] | string | length }}weir_probe_result"
                                  "{% elif m['content'] is string %}{{ m['content'] }}"
                                  "{% else %}{% for p in m['content'] %}{{ p['text'] or '<image>' }}"
                                  "{% endfor %}{% endif %}{% endfor %}",
                                  {.image = "<image>"})),
            "SI-");
}

TEST(ToolMessages, ContentOfKnownTemplates) {
  if (!std::filesystem::exists(templates())) GTEST_SKIP() << "no templates: WEIR_FIXTURES is not set";
  const std::tuple<const char*, const char*, const char*> kKnown[] = {
      {"Qwen3.5-4B.jinja", "<|image_pad|>", "SIR"},
      {"google-gemma-4-31B-it.jinja", "<|image|>", "SI-"},
      {"Mistral-Small-3.2-24B-Instruct-2506.jinja", "[IMG]", "SI-"},
      {"mistralai-Ministral-3-14B-Reasoning-2512.jinja", "[IMG]", "SI-"},
      {"gemma3n.jinja", "<image_soft_token>", "SI-"},
      {"Qwen-Qwen3-0.6B.jinja", "<|image_pad|>", "S--"},
  };
  for (const auto& [name, mark, expected] : kKnown)
    EXPECT_EQ(content_letters(probe(source_of(templates() / name), {.image = mark})), expected) << name;
}

std::string rewritten(const std::string& messages, const TemplateTools& writes) {
  const auto out = write_tools_into(messages, "", writes, output::described_calls(), {.image = "<image>"});
  return out ? *out : out.error().message;
}

TEST(ToolMessages, ContentIsWrittenAsItIsTaken) {
  const std::string image =
      R"([{"role":"user","content":[{"type":"image"},{"type":"text","text":"a"},{"type":"image"}]}])";
  const std::string text = R"([{"role":"user","content":"a"}])";
  EXPECT_EQ(rewritten(image, {.media = {.images = true}}), image);
  EXPECT_EQ(rewritten(image, {.media = {}}),
            R"([{"role":"user","content":"<image>\na\n<image>"}])");
  EXPECT_EQ(rewritten(text, {.strings = true, .media = {.images = true}}), text);
  EXPECT_EQ(rewritten(text, {.strings = false}),
            R"([{"role":"user","content":[{"type":"text","text":"a"}]}])");
}

TEST(ToolMessages, ImagesOfResultsStandBeforeTheUsersNextWords) {
  const std::string result =
      R"({"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"r"},{"type":"image"}]})";
  const std::string shown = R"({"role":"tool","tool_call_id":"c","content":"r"})";
  const TemplateTools writes{.media = {.images = true}};
  EXPECT_EQ(rewritten("[" + result + R"(,{"role":"user","content":"u"}])", writes),
            "[" + shown +
                R"(,{"role":"user","content":[{"type":"image"},{"type":"text","text":"u"}]}])");
  EXPECT_EQ(rewritten("[" + result + "," + result + "]", writes),
            "[" + shown + "," + shown +
                R"(,{"role":"user","content":[{"type":"image"},{"type":"image"}]}])");
  EXPECT_EQ(rewritten("[" + result + "]", {.media = {.images = true}, .result_media = {.images = true}}),
            "[" + result + "]");
  EXPECT_EQ(rewritten("[" + result + "]", {.results = false, .media = {.images = true}}),
            R"([{"role":"user","content":[{"type":"text","text":"<tool_response>\nr"},)"
            R"({"type":"image"},{"type":"text","text":"\n</tool_response>"}]}])");
}

constexpr const char* kTools =
    R"([{"type":"function","function":{"name":"add","description":"Adds."}}])";
const std::string kDescription =
    "You can call functions. These are there, each as JSON:\n\n"
    "{\"name\":\"add\",\"description\":\"Adds.\"}\n\n"
    "To call one, write its name and its arguments, a JSON object, in exactly this form:\n\n"
    "<tool_call>\n{\"name\": \"NAME\", \"arguments\": {\"PARAMETER\": \"VALUE\"}}\n</tool_call>\n\n"
    "Then end your turn: the next message has the result. Call a function when the answer needs "
    "it; otherwise answer in plain text.";

std::string written(const std::string& messages, const TemplateTools& writes,
                    const char* tools = kTools) {
  const auto out = write_tools_into(messages, tools, writes, output::described_calls());
  return out ? *out : out.error().message;
}

std::string json_of(std::string_view text) {
  std::string json;
  append_json_string(json, text);
  return json;
}

TEST(ToolMessages, DescriptionsStandInTheSystemMessage) {
  const TemplateTools none{.tools = false, .calls = false, .results = false, .system = true};
  EXPECT_EQ(written(R"([{"role":"user","content":"Hi"}])", none),
            R"([{"role":"system","content":)" + json_of(kDescription) +
                R"(},{"role":"user","content":"Hi"}])");
  EXPECT_EQ(
      written(R"([{"role":"system","content":"Be kind."},{"role":"user","content":"Hi"}])", none),
      R"([{"role":"system","content":)" + json_of("Be kind.\n\n" + kDescription) +
          R"(},{"role":"user","content":"Hi"}])");
  const TemplateTools no_system{.tools = false, .calls = false, .results = false, .system = false};
  EXPECT_EQ(
      written(R"([{"role":"user","content":"Hi","name":"Bo"}])", no_system),
      R"([{"role":"user","content":)" + json_of(kDescription + "\n\nHi") + R"(,"name":"Bo"}])");
}

TEST(ToolMessages, CallsAndResultsAreTexts) {
  const std::string history =
      R"([{"role":"user","content":"Hi"},{"role":"assistant","content":"Well.","tool_calls":[)"
      R"({"id":"a","type":"function","function":{"name":"add","arguments":{"a":1}}},)"
      R"({"id":"b","type":"function","function":{"name":"add","arguments":{"a":2}}}]},)"
      R"({"role":"tool","content":"1","tool_call_id":"a"},)"
      R"({"role":"tool","content":"2","tool_call_id":"b"},{"role":"user","content":"And?"}])";
  const TemplateTools none{.tools = true, .calls = false, .results = false, .system = true};
  EXPECT_EQ(
      written(history, none, ""),
      R"([{"role":"user","content":"Hi"},{"role":"assistant","content":)" +
          json_of(
              "Well.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\":1}}\n</tool_call>\n"
              "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\":2}}\n</tool_call>") +
          R"(},{"role":"user","content":)" +
          json_of("<tool_response>\n1\n</tool_response>\n\n<tool_response>\n2\n</tool_response>\n\n"
                  "And?") +
          "}]");
  // Results at the end, where the model's turn is next.
  EXPECT_EQ(written(R"([{"role":"tool","content":"7","tool_call_id":"a"}])", none, ""),
            R"([{"role":"user","content":"<tool_response>\n7\n</tool_response>"}])");
}

}  // namespace
}  // namespace weir::api
