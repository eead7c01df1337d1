#include "api/anthropic/model_pages.h"

#include <array>
#include <ctime>

#include "base/json.h"
#include "net/routes.h"

namespace weir::api::anthropic {

namespace {

// RFC 3339, in UTC.
std::string time_text(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

void write_model(JsonWriter& json, const ApiConfig& config, std::string_view id) {
  json.begin_object().field("type", "model").field("id", id).field("display_name", id);
  json.field("created_at", time_text(config.created)).end_object();
}

// Whether the query asks for what lies beyond the only model.
bool beyond(const ApiConfig& config, std::string_view query) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    std::string id;
    for (const std::string_view name : {"after_id=", "before_id="})
      if (pair.starts_with(name) && net::percent_decode(pair.substr(name.size()), id) &&
          id == config.model_id)
        return true;
  }
  return false;
}

}  // namespace

std::string model_page(const ApiConfig& config, std::string_view id) {
  std::string body;
  JsonWriter json(body);
  write_model(json, config, id);
  return body;
}

std::string models_page(const ApiConfig& config, std::string_view query) {
  const bool empty = beyond(config, query);
  std::string body;
  JsonWriter json(body);
  json.begin_object().key("data").begin_array();
  if (!empty) write_model(json, config, config.model_id);
  json.end_array().field("has_more", false);
  for (const char* name : {"first_id", "last_id"}) {
    json.key(name);
    if (empty)
      json.null();
    else
      json.value(config.model_id);
  }
  json.end_object();
  return body;
}

}  // namespace weir::api::anthropic
