#include "api/responses.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/json.h"

namespace weir::api {

namespace {

// OpenAI's default and limit of a list.
constexpr int64_t kListDefault = 20;
constexpr int64_t kListMax = 100;

tl::unexpected<Error> not_found(std::string_view id) {
  return fail(ErrorCode::kNotFound, "Response with id '" + std::string(shown(id)) + "' not found.",
              "response_id");
}

// The value of a query's parameter, as it stands: ids and numbers need no escapes.
std::string_view parameter(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=')
      return pair.substr(name.size() + 1);
  }
  return {};
}

struct ListRange {
  int64_t limit = kListDefault;
  bool ascending = false;
  std::string_view after;
};

Result<ListRange> list_range(std::string_view query) {
  ListRange range;
  range.after = parameter(query, "after");
  if (const std::string_view limit = parameter(query, "limit"); !limit.empty()) {
    const auto [end, error] =
        std::from_chars(limit.data(), limit.data() + limit.size(), range.limit);
    if (error != std::errc() || end != limit.data() + limit.size())
      return out_of_range("limit",
                          "expected an integer, found \"" + std::string(shown(limit)) + "\"");
    WEIR_TRY(check_range("limit", static_cast<double>(range.limit), 1, kListMax));
  }
  if (const std::string_view order = parameter(query, "order"); !order.empty()) {
    if (order != "asc" && order != "desc")
      return out_of_range("order",
                          "expected asc or desc, found \"" + std::string(shown(order)) + "\"");
    range.ascending = order == "asc";
  }
  return range;
}

std::string_view id_of(JsonValue item) {
  std::string_view id;
  JsonObject object;
  if (item.get(object) == simdjson::SUCCESS && object["id"].get(id) != simdjson::SUCCESS) id = {};
  return id;
}

}  // namespace

Result<PreparedResponse> prepare_response(const ApiConfig& config, MemoryBudget& budget,
                                          const ResponsesInput& in) {
  const ResponsesContext context{.limits = {config.vocab_size},
                                 .id = in.id,
                                 .owner = in.owner,
                                 .now = in.prepare.now,
                                 .store = in.store,
                                 .preparing = in.preparing};
  WEIR_ASSIGN(ResponsesRequest request, parse_responses(in.prepare.body, context));
  PreparedResponse prepared;
  WEIR_ASSIGN(prepared.answer, prepare_request(config, budget, in.prepare, request.generate));
  ResponseFacts& facts = prepared.facts;
  facts.id = in.id;
  facts.created = in.prepare.now;
  facts.stream = request.generate.stream;
  facts.summary = request.summary;
  const auto number = [](std::optional<double> asked, float fallback) {
    return asked ? static_cast<float>(*asked) : fallback;
  };
  facts.settings = response_settings(
      request, config.model_id, number(request.generate.temperature, config.defaults.temperature),
      number(request.generate.top_p, config.defaults.top_p));
  facts.items_before = request.items;
  if (request.store) {
    facts.store = in.store;
    facts.owner = in.owner;
    facts.turn = std::move(request.turn);
  }
  return prepared;
}

Result<std::string> response_page(ResponseStore& store, std::string_view id, std::string_view owner,
                                  int64_t now) {
  const auto response = store.find(id, owner, now);
  if (!response) return not_found(id);
  return response->head + response->turn->output + response->tail;
}

Result<std::string> delete_response_page(ResponseStore& store, std::string_view id,
                                         std::string_view owner, int64_t now) {
  if (!store.erase(id, owner, now)) return not_found(id);
  std::string page;
  JsonWriter(page)
      .begin_object()
      .field("id", id)
      .field("object", "response")
      .field("deleted", true)
      .end_object();
  return page;
}

Result<std::string> input_items_page(ResponseStore& store, std::string_view id,
                                     std::string_view owner, int64_t now, std::string_view query) {
  const auto response = store.find(id, owner, now);
  if (!response) return not_found(id);
  WEIR_ASSIGN(const ListRange range, list_range(query));
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse("[" + response->turn->input + "]"));
  JsonArray array;
  CHECK(doc.root().get(array) == simdjson::SUCCESS);
  std::vector<JsonValue> items;
  for (const JsonValue item : array) items.push_back(item);
  if (!range.ascending) std::ranges::reverse(items);
  if (!range.after.empty()) {
    const auto found = std::ranges::find(items, range.after, id_of);
    if (found == items.end())
      return out_of_range("after", "expected the id of an item of this response, found \"" +
                                       std::string(shown(range.after)) + "\"");
    items.erase(items.begin(), found + 1);
  }
  const bool more = std::ssize(items) > range.limit;
  if (more) items.resize(static_cast<size_t>(range.limit));
  std::string page;
  JsonWriter json(page);
  json.begin_object().field("object", "list").key("data").begin_array();
  for (const JsonValue item : items) json.value(item);
  json.end_array();
  for (const auto& [name, item] :
       {std::pair("first_id", size_t{0}), std::pair("last_id", items.size() - 1)}) {
    json.key(name);
    if (items.empty())
      json.null();
    else
      json.value(id_of(items[item]));
  }
  json.field("has_more", more).end_object();
  return page;
}

}  // namespace weir::api
