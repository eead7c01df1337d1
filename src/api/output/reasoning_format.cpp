#include "api/output/reasoning_format.h"

#include <algorithm>
#include <array>

namespace weir::api::output {

namespace {

// The first that fits counts.
constexpr auto kFormats = std::to_array<ReasoningFormat>({
    {.name = "harmony",
     .open = "<|channel|>analysis<|message|>",
     .close = "<|end|>",
     .in_template = "<|channel|>",
     .after = "<|start|>assistant",
     .before_content = "<|channel|>final<|message|>",
     .messages = true},
    {.name = "solar_open",
     .open = "<|think|>",
     .close = "<|end|>",
     .in_template = "assistant<|think|>",
     .after = "<|begin|>assistant",
     .before_content = "<|content|>"},
    {"seed", "<seed:think>", "</seed:think>", "<seed:think>"},
    {"mistral", "[THINK]", "[/THINK]", "[THINK]"},
    {"command", "<|START_THINKING|>", "<|END_THINKING|>", "<|START_THINKING|>"},
    {"gemma", "<|channel>thought", "<channel|>", "<|channel>"},
    {"granite",
     "Here is my thought process:", "Here is my response:", "Here is my thought process:"},
    {"apertus", "<|inner_prefix|>", "<|inner_suffix|>", "<|inner_prefix|>"},
    {"thinking", "<thinking>", "</thinking>", "</thinking>"},  // Apriel 1.5.
    // Apriel 1.6, whose template begins the answer with its words.
    {"apriel", "Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", "[BEGIN FINAL RESPONSE]"},
    {"think", "<think>", "</think>", "</think>"},
});

}  // namespace

std::span<const ReasoningFormat> reasoning_formats() { return kFormats; }

const ReasoningFormat* detect_reasoning(std::string_view chat_template) {
  const auto found = std::ranges::find_if(kFormats, [&](const ReasoningFormat& format) {
    return chat_template.find(format.in_template) != std::string_view::npos;
  });
  return found == kFormats.end() ? nullptr : &*found;
}

const ReasoningFormat* find_reasoning(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &ReasoningFormat::name);
  return found == kFormats.end() ? nullptr : &*found;
}

}  // namespace weir::api::output
