#include "api/anthropic/model_pages.h"

#include <algorithm>
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

void write_model(JsonWriter& json, const ListedModel& model) {
  json.begin_object().field("type", "model").field("id", model.id).field("display_name", model.id);
  json.field("created_at", time_text(model.created)).end_object();
}

// The models that lie after one that the query names, or before one.
std::span<const ListedModel> asked_for(std::span<const ListedModel> models,
                                       std::string_view query) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    std::string id;
    for (const std::string_view name : {"after_id=", "before_id="}) {
      if (!pair.starts_with(name) || !net::percent_decode(pair.substr(name.size()), id)) continue;
      const auto found = std::ranges::find(models, id, &ListedModel::id);
      if (found == models.end()) continue;
      const auto place = static_cast<size_t>(found - models.begin());
      models = name == "after_id=" ? models.subspan(place + 1) : models.first(place);
    }
  }
  return models;
}

}  // namespace

std::string model_page(const ListedModel& model) {
  std::string body;
  JsonWriter json(body);
  write_model(json, model);
  return body;
}

std::string models_page(std::span<const ListedModel> all, std::string_view query) {
  const std::span<const ListedModel> models = asked_for(all, query);
  std::string body;
  JsonWriter json(body);
  json.begin_object().key("data").begin_array();
  for (const ListedModel& model : models) write_model(json, model);
  json.end_array().field("has_more", false);
  for (const char* name : {"first_id", "last_id"}) {
    json.key(name);
    if (models.empty())
      json.null();
    else
      json.value(name[0] == 'f' ? models.front().id : models.back().id);
  }
  json.end_object();
  return body;
}

}  // namespace weir::api::anthropic
