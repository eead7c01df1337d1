// ToolFunction: a function that the model may call, and what all protocols hold its name to.
//
// Threads: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "grammar/source.h"

namespace weir::api {

inline constexpr size_t kToolsMax = 512;

struct ToolFunction {
  std::string name;        // As the model reads and writes it.
  std::string parameters;  // A JSON schema; empty: none.
  bool strict = false;
  std::string field{};  // Where the schema stands in the request: "tools[0].function.parameters".
  // --- Where the client has another name for it, or gives it a text instead of JSON (responses).
  std::string space{}, own_name{};  // A namespace, or empty, and the name in it.
  bool custom = false;              // Its one argument `input` is a text,
  std::optional<grammar::GrammarSource> input{};  // bound by this.
};

enum class ToolChoice : uint8_t { kAuto, kNone, kRequired, kNamed };

Result<void> check_tool_count(std::string_view path, size_t count);
Result<void> check_function_name(std::string_view path, std::string_view name);

struct GenerateRequest;
// The choice is one that its functions allow; errors name `field`. A call that is required where
// there are no tools is ignored: clients send it so.
Result<void> check_tool_choice(const std::string& field, GenerateRequest& request);

}  // namespace weir::api
