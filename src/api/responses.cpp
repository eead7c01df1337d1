#include "api/responses.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "api/memory_cost.h"
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

// What truncation keeps free for the answer where the request does not say.
constexpr int64_t kTruncatedRoom = 1024;

std::string_view role_of(JsonValue message) {
  std::string_view role;
  return message["role"].get(role) == simdjson::SUCCESS ? role : std::string_view();
}

// A conversation whose beginning may be left out, but for the system's messages there.
class Conversation {
 public:
  // `messages` is of our own making.
  explicit Conversation(const std::string& messages) {
    Result<JsonDoc> doc = JsonDoc::parse(messages, kDepthMax);
    JsonArray array;
    CHECK(doc && doc->root().get(array) == simdjson::SUCCESS);
    doc_ = std::move(*doc);
    for (const JsonValue message : array) messages_.push_back(message);
    while (kept_ < messages_.size() && role_of(messages_[kept_]) == "system") ++kept_;
  }

  // The last message always stays.
  size_t dropped_max() const { return messages_.size() > kept_ ? messages_.size() - kept_ - 1 : 0; }

  std::string without(size_t dropped) const {
    std::string out;
    JsonWriter json(out);
    json.begin_array();
    for (size_t i = 0; i < kept_; ++i) json.value(messages_[i]);
    size_t i = kept_ + dropped;
    // Outputs whose calls are gone say nothing.
    while (i + 1 < messages_.size() && role_of(messages_[i]) == "tool") ++i;
    for (; i < messages_.size(); ++i) json.value(messages_[i]);
    json.end_array();
    return out;
  }

 private:
  // A body's depth, and that of arguments, which were strings in it.
  static constexpr size_t kDepthMax = 1024;

  std::optional<JsonDoc> doc_;
  std::vector<JsonValue> messages_;
  size_t kept_ = 0;
};

// With truncation "auto": leaves out the fewest of the oldest messages.
Result<PreparedAnswer> prepare_truncated(const ApiConfig& config, MemoryBudget& budget,
                                         const PrepareInput& in, GenerateRequest& request) {
  const Conversation conversation(request.messages);
  const auto quarter = in.tokens_max / 4;
  PrepareInput narrow = in;
  narrow.tokens_max -= static_cast<int32_t>(
      std::min<int64_t>(request.token_limit().value_or(kTruncatedRoom), quarter));
  const auto attempt = [&](const PrepareInput& with, size_t dropped) {
    request.messages = conversation.without(dropped);
    return prepare_request(config, budget, with, request);
  };
  size_t low = 0, high = conversation.dropped_max();
  Result<PreparedAnswer> fits = attempt(narrow, high);
  if (!fits) return fits;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (attempt(narrow, middle))
      high = middle;
    else
      low = middle + 1;
  }
  fits = {};  // Its memory first.
  return attempt(in, high);
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
  Result<PreparedAnswer> answer = prepare_request(config, budget, in.prepare, request.generate);
  if (!answer && answer.error().code == ErrorCode::kContextLength && request.truncation == "auto")
    answer = prepare_truncated(config, budget, in.prepare, request.generate);
  if (!answer) return tl::unexpected<Error>(std::move(answer.error()));
  prepared.answer = std::move(*answer);
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
  // The settings, their event and its copy that is sent; what is kept of the input, stored or not.
  const size_t bytes = 3 * facts.settings.size() + request.turn->input.size();
  WEIR_TRY(check_memory(budget, "input", bytes, "shorter items, tools or schemas"));
  WEIR_ASSIGN(facts.lease, lease(budget, bytes));
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

Result<std::string> input_items_page(ResponseStore& store, MemoryBudget& preparing,
                                     std::string_view id, std::string_view owner, int64_t now,
                                     std::string_view query) {
  const auto response = store.find(id, owner, now);
  if (!response) return not_found(id);
  WEIR_ASSIGN(const ListRange range, list_range(query));
  const std::string& input = response->turn->input;
  WEIR_ASSIGN(const MemoryLease memory, lease(preparing, preparing_bytes(input)));
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse("[" + input + "]"));
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
