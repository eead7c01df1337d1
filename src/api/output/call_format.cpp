#include "api/output/call_format.h"

#include <algorithm>

#include "api/output/json_calls.h"
#include "api/output/named_calls.h"

namespace weir::api::output {

namespace {

using std::string_view;

bool is_json(char first) { return first == '{' || first == '['; }

// Between <tool_call> and </tool_call> different models write different things; what comes first
// tells which.
CallReaderPtr tool_call_tag(string_view, char first) {
  if (is_json(first)) return json_calls({.close = "</tool_call>"});
  return nullptr;
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

constexpr auto kToolCall = std::to_array<string_view>({"<tool_call>"});
constexpr auto kFunction = std::to_array<string_view>({"<function="});
constexpr auto kBarToolCall = std::to_array<string_view>({"<|tool_call|>"});
constexpr auto kMistral = std::to_array<string_view>({"[TOOL_CALLS]"});
constexpr auto kPythonTag = std::to_array<string_view>({"<|python_tag|>"});
constexpr auto kDeepseek = std::to_array<string_view>({"<｜tool▁calls▁begin｜>"});
constexpr auto kKimi = std::to_array<string_view>({"<|tool_calls_section_begin|>"});
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
    {.name = "kimi_k2",
     .in_template = {"<|tool_calls_section_begin|>"},
     .begins = kKimi,
     .reader = &kimi,
     .grammar = {.section_begin = "<|tool_calls_section_begin|>",
                 .call_begin = "<|tool_call_begin|>functions.",
                 .after_name = ":0<|tool_call_argument_begin|>",
                 .call_end = "<|tool_call_end|>",
                 .section_end = "<|tool_calls_section_end|>"}},
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
    {.name = "functionary",
     .in_template = {"<function=", "</function>"},
     .begins = kFunction,
     .reader = &function_tag,
     .grammar = {.section_begin = "<function=", .after_name = ">", .section_end = "</function>"},
     .native_grammar = true},
    {.name = "hermes",
     .in_template = {"<tool_call>"},
     .begins = kToolCall,
     .reader = &tool_call_tag,
     .grammar = in_tags("<tool_call>", "\v</tool_call>"),
     .native_grammar = true},
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
    {.name = "tool_calls",  // Apriel, Jamba, MiniMax-M1.
     .in_template = {"<tool_calls>"},
     .begins = kToolCalls,
     .reader = &tool_calls_tag,
     .grammar = in_list("<tool_calls>[", "]</tool_calls>")},
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
     .grammar = {.section_begin = "",
                 .call_begin = "{\"name\": \"",
                 .after_name = "\", \"parameters\": ",
                 .call_end = "}",
                 .between = "; ",
                 .section_end = ""}},
    {.name = "json", .bare = "{[", .reader = &generic, .grammar = in_list("[", "]")},
});

bool holds(string_view text, string_view part) { return text.find(part) != string_view::npos; }

}  // namespace

std::span<const CallFormat> call_formats() { return kFormats; }

const CallFormat& generic_calls() { return kFormats.back(); }

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
