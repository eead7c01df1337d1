// What tests of images and sounds in requests have in common: messages with parts, and what an answer
// counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "net/test_server.h"

namespace weir::api {

// A number of the answer by its name; of an error its status, code and message.
inline std::string count_of(const net::RawClient::Response& response, std::string_view name) {
  const auto doc = JsonDoc::parse(response.body);
  if (!doc) return response.body;
  int64_t count = 0;
  if (doc->root()[name].get(count) == simdjson::SUCCESS) return std::to_string(count);
  std::string_view message, code;
  if (doc->root()["error"]["message"].get(message) != simdjson::SUCCESS) return response.body;
  if (doc->root()["error"]["code"].get(code) != simdjson::SUCCESS) code = "-";
  return std::to_string(response.status) + " " + std::string(code) + ": " + std::string(message);
}

// Messages of a user whose content has these parts.
inline std::string user(const std::string& parts) {
  return R"([{"role":"user","content":[)" + parts + "]}]";
}

}  // namespace weir::api
