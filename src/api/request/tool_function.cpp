#include "api/request/tool_function.h"

#include <algorithm>

#include "api/request/generate_request.h"
#include "api/request/json_fields.h"

namespace weir::api {

namespace {

constexpr size_t kNameBytesMax = 256;

// Names stand within markers and JSON strings, as they are.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && std::ranges::none_of(name, [](char c) {
    return static_cast<uint8_t>(c) <= ' ' || c == 127 ||
           std::string_view("\"\\<>[](){}|=,;'`").find(c) != std::string_view::npos;
  });
}

}  // namespace

Result<void> check_tool_count(std::string_view path, size_t count) {
  if (count <= kToolsMax) return {};
  return out_of_range(path, "expected at most " + std::to_string(kToolsMax) + " tools, found " +
                                std::to_string(count));
}

Result<void> check_function_name(std::string_view path, std::string_view name) {
  if (is_plain_name(name)) return {};
  return out_of_range(path, "expected from 1 to " + std::to_string(kNameBytesMax) +
                                " letters, digits, _ or -, found \"" + std::string(shown(name)) +
                                "\"");
}

Result<void> check_tool_choice(const std::string& field, GenerateRequest& request) {
  if (request.functions.empty() && request.tool_choice == ToolChoice::kRequired)
    request.ignored.add(field);
  if (request.functions.empty() && !request.callable.empty())
    return out_of_range(field, "a named function needs tools");
  for (const std::string& name : request.callable)
    if (std::ranges::find(request.functions, name, &ToolFunction::name) == request.functions.end())
      return out_of_range(field, "expected the name of one of the tools, found \"" +
                                     std::string(shown(name)) + "\"");
  return {};
}

}  // namespace weir::api
