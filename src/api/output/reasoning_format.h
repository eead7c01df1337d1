// ReasoningFormat: how a model's output shows where it thinks. Formats are data, found by what the
// chat template says.
//
// Threads: immutable.
#pragma once

#include <span>
#include <string_view>

namespace weir::api::output {

struct ReasoningFormat {
  std::string_view name;
  std::string_view open, close;
  std::string_view in_template;       // What templates that use it hold.
  std::string_view after{};           // Between its end and the answer,
  std::string_view before_content{};  // and before an answer that is no call.
  bool messages = false;              // HarmonyParser reads the whole output.
};

std::span<const ReasoningFormat> reasoning_formats();

// Null if the template says nothing of reasoning.
const ReasoningFormat* detect_reasoning(std::string_view chat_template);
// Null if there is none of the name.
const ReasoningFormat* find_reasoning(std::string_view name);

}  // namespace weir::api::output
