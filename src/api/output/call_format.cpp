#include "api/output/call_format.h"

#include <algorithm>

#include "api/output/json_calls.h"
#include "api/output/loose_calls.h"
#include "api/output/named_calls.h"
#include "api/output/xml_calls.h"

namespace weir::api::output {

namespace {

using std::string_view;

bool is_json(char first) { return first == '{' || first == '['; }

XmlCallForm function_elements(string_view section_end) {
  XmlCallForm form;
  form.function_begin = "<function=";
  form.function_end = "</function>";
  form.key_begin = "<parameter=";
  form.key_end = ">";
  form.value_end = "</parameter>";
  form.section_end = section_end;
  return form;
}

CallReaderPtr glm() {
  return xml_calls({.function_end = "</tool_call>",
                    .key_begin = "<arg_key>",
                    .key_end = "</arg_key>",
                    .value_begin = "<arg_value>",
                    .value_end = "</arg_value>"});
}

// Between <tool_call> and </tool_call> different models write different things; what comes first
// tells which. Qwen3-Coder forgets the outer tag at times.
CallReaderPtr tool_call_tag(string_view marker, char first) {
  XmlCallForm elements = function_elements("</tool_call>");
  elements.in_function = marker == "<function=";
  if (elements.in_function || first == '<') return xml_calls(elements);
  return is_json(first) ? json_calls({.close = "</tool_call>"}) : glm();
}

CallReaderPtr seed(string_view, char first) {
  if (is_json(first)) return json_calls({.close = "</seed:tool_call>"});
  return xml_calls(function_elements("</seed:tool_call>"));
}

CallReaderPtr minimax(string_view, char first) {
  if (is_json(first)) return json_calls({.close = "</minimax:tool_call>"});
  return xml_calls({.function_begin = "<invoke name=",
                    .function_end = "</invoke>",
                    .key_begin = "<parameter name=",
                    .key_end = ">",
                    .value_end = "</parameter>",
                    .section_end = "</minimax:tool_call>"});
}

CallReaderPtr dsml(string_view marker, char first) {
  const bool v32 = marker == "<｜DSML｜function_calls>";
  const string_view end = v32 ? "</｜DSML｜function_calls>" : "</｜DSML｜tool_calls>";
  if (is_json(first)) return json_calls({.close = end});
  return xml_calls({.function_begin = "<｜DSML｜invoke name=",
                    .function_end = "</｜DSML｜invoke>",
                    .key_begin = "<｜DSML｜parameter name=",
                    .key_end = ">",
                    .value_end = "</｜DSML｜parameter>",
                    .section_end = end});
}

CallReaderPtr gemma(string_view, char first) {
  if (is_json(first)) return json_calls({.close = "<end_function_call>"});
  return gemma_calls({.quote = "<escape>", .close = "<end_function_call>"});
}

CallReaderPtr gemma4(string_view, char first) {
  if (is_json(first)) return json_calls({.close = "<tool_call|>"});
  return gemma_calls({.quote = "<|\"|>", .close = "<tool_call|>"});
}

// Python's calls are a list too: what comes first within it tells, so forced calls are no list.
CallReaderPtr lfm2(string_view, char first) {
  return first == '{' ? json_calls({.close = "<|tool_call_end|>"})
                      : python_calls("<|tool_call_end|>");
}

CallReaderPtr pythonic(string_view marker, char first) {
  return first == '{' ? json_calls({.needs_arguments = marker.empty()}) : python_calls({});
}

CallReaderPtr function_tag(string_view, char) {
  return named_calls({.name_end = ">", .call_end = "</function>"});
}

CallReaderPtr bar_tool_call(string_view, char first) {
  return is_json(first) ? json_calls({.close = "<|/tool_call|>"}) : nullptr;
}

CallReaderPtr mistral(string_view, char first) {
  if (is_json(first)) return json_calls({});
  return named_calls({.name_end = "[ARGS]", .id_begin = "[CALL_ID]"});
}

CallReaderPtr llama(string_view marker, char first) {
  if (first != '{') return nullptr;
  return json_calls({.needs_arguments = marker.empty()});
}

CallReaderPtr deepseek_v3(string_view, char) {
  return named_calls({.call_begin = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                      .name_end = "\n```json\n",
                      .call_end = "```<｜tool▁call▁end｜>",
                      .section_end = "<｜tool▁calls▁end｜>"});
}

CallReaderPtr deepseek_v31(string_view, char) {
  return named_calls({.call_begin = "<｜tool▁call▁begin｜>",
                      .name_end = "<｜tool▁sep｜>",
                      .call_end = "<｜tool▁call▁end｜>",
                      .section_end = "<｜tool▁calls▁end｜>"});
}

CallReaderPtr kimi(string_view, char) {
  return named_calls({.call_begin = "<|tool_call_begin|>",
                      .name_end = "<|tool_call_argument_begin|>",
                      .call_end = "<|tool_call_end|>",
                      .section_end = "<|tool_calls_section_end|>",
                      .kimi_names = true});
}

CallReaderPtr solar(string_view, char) {
  return named_calls({.call_begin = "<|tool_call:begin|>",
                      .name_end = "<|tool_call:args|>",
                      .call_end = "<|tool_call:end|>",
                      .section_end = "<|calls|>",
                      .id_end = "<|tool_call:name|>"});
}

CallReaderPtr nemotron(string_view, char first) {
  return is_json(first) ? json_calls({.close = "</TOOLCALL>"}) : nullptr;
}

CallReaderPtr tool_calls_tag(string_view, char first) {
  return is_json(first) ? json_calls({.close = "</tool_calls>"}) : nullptr;
}

CallReaderPtr command(string_view, char first) {
  return is_json(first) ? json_calls({.close = "<|END_ACTION|>"}) : nullptr;
}

CallReaderPtr functools(string_view, char first) {
  return is_json(first) ? json_calls({}) : nullptr;
}

CallReaderPtr generic(string_view, char) { return json_calls({.needs_arguments = true}); }

constexpr auto kToolCallOrFunction = std::to_array<string_view>({"<tool_call>", "<function="});
constexpr auto kSeed = std::to_array<string_view>({"<seed:tool_call>"});
constexpr auto kMinimax = std::to_array<string_view>({"<minimax:tool_call>"});
constexpr auto kDsml =
    std::to_array<string_view>({"<｜DSML｜function_calls>", "<｜DSML｜tool_calls>"});
constexpr auto kGemma = std::to_array<string_view>({"<start_function_call>"});
constexpr auto kGemma4 = std::to_array<string_view>({"<|tool_call>"});
constexpr auto kLfm2 = std::to_array<string_view>({"<|tool_call_start|>"});
constexpr auto kToolCall = std::to_array<string_view>({"<tool_call>"});
constexpr auto kFunction = std::to_array<string_view>({"<function="});
constexpr auto kBarToolCall = std::to_array<string_view>({"<|tool_call|>"});
constexpr auto kMistral = std::to_array<string_view>({"[TOOL_CALLS]"});
constexpr auto kPythonTag = std::to_array<string_view>({"<|python_tag|>"});
constexpr auto kDeepseek = std::to_array<string_view>({"<｜tool▁calls▁begin｜>"});
constexpr auto kKimi = std::to_array<string_view>({"<|tool_calls_section_begin|>"});
constexpr auto kSolar = std::to_array<string_view>({"<|tool_calls|>"});
constexpr auto kNemotron = std::to_array<string_view>({"<TOOLCALL>"});
constexpr auto kToolCalls = std::to_array<string_view>({"<tool_calls>"});
constexpr auto kCommand = std::to_array<string_view>({"<|START_ACTION|>"});
constexpr auto kFunctools = std::to_array<string_view>({"functools"});

// Hermes' form, in whose markers other formats' readers take it too.
constexpr CallGrammar in_tags(string_view begin, string_view end) {
  return {.section_begin = begin,
          .call_begin = "\v{\"name\": \"",
          .after_name = "\", \"arguments\": ",
          .call_end = "}",
          .section_end = end};
}

constexpr CallGrammar in_list(string_view begin, string_view end) {
  return {.section_begin = begin,
          .call_begin = "{\"name\": \"",
          .after_name = "\", \"arguments\": ",
          .call_end = "}",
          .between = ", ",
          .section_end = end};
}

// In the order in which they are looked for: those whose markers others use too come first.
constexpr auto kFormats = std::to_array<CallFormat>({
    {.name = "harmony",
     .in_template = {"<|channel|>", "<|message|>"},
     .grammar = {.section_begin = "<|channel|>commentary to=functions.",
                 .after_name = " <|constrain|>json<|message|>"},
     .markers = "<|start|><|channel|><|message|><|constrain|><|end|><|call|><|return|>",
     .messages = true},
    {.name = "kimi_k2",
     .in_template = {"<|tool_calls_section_begin|>"},
     .begins = kKimi,
     .reader = &kimi,
     .grammar = {.section_begin = "<|tool_calls_section_begin|>",
                 .call_begin = "<|tool_call_begin|>functions.",
                 .after_name = ":\a<|tool_call_argument_begin|>",
                 .call_end = "<|tool_call_end|>",
                 .between = "\v",
                 .section_end = "<|tool_calls_section_end|>"}},
    // The end of a section, <|calls|>, ends the answer too.
    {.name = "solar_open",
     .in_template = {"<|tool_call:begin|>"},
     .begins = kSolar,
     .reader = &solar,
     .grammar = {.section_begin = "<|tool_calls|>",
                 .call_begin = "<|tool_call:begin|>\a<|tool_call:name|>",
                 .after_name = "<|tool_call:args|>",
                 .call_end = "<|tool_call:end|>",
                 .between = "\v"},
     .native_grammar = true,
     .markers = "<|calls|>"},
    {.name = "deepseek_v3",
     .in_template = {"<｜tool▁calls▁begin｜>", "```json"},
     .begins = kDeepseek,
     .reader = &deepseek_v3,
     .grammar = {.section_begin = "<｜tool▁calls▁begin｜>",
                 .call_begin = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                 .after_name = "\n```json\n",
                 .call_end = "\n```<｜tool▁call▁end｜>",
                 .between = "\n",
                 .section_end = "<｜tool▁calls▁end｜>"},
     .native_grammar = true},
    {.name = "deepseek_v31",
     .in_template = {"<｜tool▁calls▁begin｜>"},
     .begins = kDeepseek,
     .reader = &deepseek_v31,
     .grammar = {.section_begin = "<｜tool▁calls▁begin｜>",
                 .call_begin = "<｜tool▁call▁begin｜>",
                 .after_name = "<｜tool▁sep｜>",
                 .call_end = "<｜tool▁call▁end｜>",
                 .between = "\v",
                 .section_end = "<｜tool▁calls▁end｜>"},
     .native_grammar = true},
    {.name = "deepseek_v32",
     .in_template = {"｜DSML｜", "function_calls>"},
     .begins = kDsml,
     .reader = &dsml,
     .grammar = in_tags("<｜DSML｜function_calls>", "\v</｜DSML｜function_calls>"),
     .markers = "｜DSML｜"},
    {.name = "deepseek_v4",
     .in_template = {"｜DSML｜", "tool_calls>"},
     .begins = kDsml,
     .reader = &dsml,
     .grammar = in_tags("<｜DSML｜tool_calls>", "\v</｜DSML｜tool_calls>"),
     .markers = "｜DSML｜"},
    {.name = "minimax_m2",
     .in_template = {"<minimax:tool_call>"},
     .begins = kMinimax,
     .reader = &minimax,
     .grammar = in_tags("<minimax:tool_call>", "\v</minimax:tool_call>")},
    {.name = "seed",
     .in_template = {"<seed:tool_call>"},
     .begins = kSeed,
     .reader = &seed,
     .grammar = in_tags("<seed:tool_call>", "\v</seed:tool_call>")},
    {.name = "qwen3_coder",
     .in_template = {"<function=", "<parameter="},
     .begins = kToolCallOrFunction,
     .reader = &tool_call_tag,
     .grammar = in_tags("<tool_call>", "\v</tool_call>")},
    {.name = "glm",
     .in_template = {"<arg_key>"},
     .begins = kToolCall,
     .reader = &tool_call_tag,
     .grammar = in_tags("<tool_call>", "\v</tool_call>")},
    {.name = "functionary",
     .in_template = {"<function=", "</function>"},
     .begins = kFunction,
     .reader = &function_tag,
     .grammar = {.section_begin = "<function=", .after_name = ">", .section_end = "</function>"},
     .native_grammar = true},
    {.name = "tool_calls",  // Apriel, Jamba, MiniMax-M1.
     .in_template = {"<tool_calls>"},
     .begins = kToolCalls,
     .reader = &tool_calls_tag,
     .grammar = in_list("<tool_calls>[", "]</tool_calls>")},
    {.name = "hermes",
     .in_template = {"<tool_call>"},
     .begins = kToolCall,
     .reader = &tool_call_tag,
     .grammar = in_tags("<tool_call>", "\v</tool_call>"),
     .native_grammar = true},
    {.name = "gemma4",
     .in_template = {"<|tool_call>"},
     .begins = kGemma4,
     .reader = &gemma4,
     .grammar = in_tags("<|tool_call>", "\v<tool_call|>"),
     .markers = "<|\"|>"},
    {.name = "gemma",
     .in_template = {"<start_function_call>"},
     .begins = kGemma,
     .reader = &gemma,
     .grammar = in_tags("<start_function_call>", "\v<end_function_call>"),
     .markers = "<escape>"},
    {.name = "lfm2",
     .in_template = {"<|tool_list_start|>"},
     .begins = kLfm2,
     .reader = &lfm2,
     .grammar = in_tags("<|tool_call_start|>", "\v<|tool_call_end|>")},
    {.name = "granite",  // Phi-4 mini too.
     .in_template = {"<|tool_call|>"},
     .begins = kBarToolCall,
     .reader = &bar_tool_call,
     .grammar = in_list("<|tool_call|>[", "]"),
     .markers = "<|/tool_call|>"},
    {.name = "mistral_args",
     .in_template = {"[TOOL_CALLS]", "[ARGS]"},
     .begins = kMistral,
     .reader = &mistral,
     .grammar = {.section_begin = "[TOOL_CALLS]", .after_name = "[ARGS]"},
     .native_grammar = true,
     .markers = "[CALL_ID]",
     .short_ids = true},
    {.name = "mistral",
     .in_template = {"[TOOL_CALLS]"},
     .begins = kMistral,
     .reader = &mistral,
     .grammar = in_list("[TOOL_CALLS][", "]"),
     .short_ids = true},
    {.name = "nemotron",
     .in_template = {"<TOOLCALL>"},
     .begins = kNemotron,
     .reader = &nemotron,
     .grammar = in_list("<TOOLCALL>[", "]</TOOLCALL>")},
    {.name = "command",
     .in_template = {"<|START_ACTION|>"},
     .begins = kCommand,
     .reader = &command,
     .grammar = {.section_begin = "<|START_ACTION|>[\v",
                 .call_begin = "{\"tool_call_id\": \"0\", \"tool_name\": \"",
                 .after_name = "\", \"parameters\": ",
                 .call_end = "}",
                 .between = ",\n",
                 .section_end = "\v]<|END_ACTION|>"}},
    {.name = "firefunction",
     .in_template = {"functools["},
     .begins = kFunctools,
     .reader = &functools,
     .grammar = in_list("functools[", "]")},
    {.name = "llama3",
     .in_template = {"<|start_header_id|>", "\"parameters\""},
     .begins = kPythonTag,
     .bare = "{",
     .reader = &llama,
     .grammar = {.call_begin = "{\"name\": \"",
                 .after_name = "\", \"parameters\": ",
                 .call_end = "}",
                 .between = "; "}},
    {.name = "pythonic",  // Llama 3.2 and 4, asked so; Llama 3's JSON too.
     .begins = kPythonTag,
     .bare = "[{",
     .reader = &pythonic,
     .grammar = {.call_begin = "{\"name\": \"",
                 .after_name = "\", \"parameters\": ",
                 .call_end = "}",
                 .between = "; "}},
    // As serving/tool_messages.h describes them: Hermes' form, which many models know.
    {.name = "described",
     .begins = kToolCall,
     .reader = &tool_call_tag,
     .grammar = in_tags("<tool_call>", "\v</tool_call>"),
     .native_grammar = true},
    {.name = "json", .bare = "{[", .reader = &generic, .grammar = in_list("[", "]")},
});

bool holds(string_view text, string_view part) { return text.find(part) != string_view::npos; }

}  // namespace

std::span<const CallFormat> call_formats() { return kFormats; }

const CallFormat& generic_calls() { return kFormats.back(); }

const CallFormat& described_calls() { return *find_calls("described"); }

const CallFormat* detect_calls(string_view chat_template) {
  for (const CallFormat& format : kFormats)
    if (!format.in_template[0].empty() &&
        std::ranges::all_of(format.in_template,
                            [&](string_view part) { return holds(chat_template, part); }))
      return &format;
  return holds(chat_template, "tools") ? &generic_calls() : nullptr;
}

const CallFormat* find_calls(string_view name) {
  const auto found = std::ranges::find(kFormats, name, &CallFormat::name);
  return found == kFormats.end() ? nullptr : &*found;
}

bool is_marker(const CallFormat& format, string_view text) {
  const CallGrammar& grammar = format.grammar;
  return text.size() > 1 &&
         (std::ranges::any_of(format.begins, [&](string_view m) { return holds(m, text); }) ||
          holds(grammar.section_begin, text) || holds(grammar.call_begin, text) ||
          holds(grammar.after_name, text) || holds(grammar.call_end, text) ||
          holds(grammar.section_end, text) || holds(format.markers, text));
}

}  // namespace weir::api::output
