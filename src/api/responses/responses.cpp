#include "api/responses/responses.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "api/memory/memory_cost.h"
#include "api/memory/request_memory.h"
#include "api/prompt/chat_prompt.h"
#include "api/prompt/prompt_limits.h"
#include "api/prompt/prompt_tokens.h"
#include "api/request/sampling_fields.h"
#include "api/responses/events.h"
#include "api/responses/response_object.h"
#include "api/serving/model_name.h"
#include "base/check.h"
#include "base/json.h"

namespace weir::api::responses {

namespace {

constexpr ProtocolTraits kTraits{
    .prompt_field = "input", .logprobs = LogprobStyle::Form::kResponses, .repeats_answer = true};

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

Result<int64_t> integer_parameter(std::string_view name, std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return out_of_range(name, "expected an integer, found \"" + std::string(shown(text)) + "\"");
  return number;
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
    WEIR_ASSIGN(range.limit, integer_parameter("limit", limit));
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
Result<PreparedAnswer> prepare_truncated(const ServingContext& serving, MemoryBudget& budget,
                                         const PrepareInput& in, GenerateRequest& request) {
  const Conversation conversation(request.messages);
  PrepareInput narrow = in;
  narrow.tokens_max -= answer_room(request.token_limit().value_or(kTruncatedRoom), in.tokens_max);
  const auto attempt = [&](const PrepareInput& with, size_t dropped) {
    request.messages = conversation.without(dropped);
    return prepare_request(serving, budget, with, kTraits, request);
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

Result<ResponsesRequest> parse(const ApiConfig& config, const PrepareInput& in,
                               const ResponsesInput& input) {
  return parse_responses(in.body, {.limits = {config.vocab_size},
                                   .id = input.id,
                                   .owner = input.owner,
                                   .caller = in.caller,
                                   .now = in.now,
                                   .store = input.store,
                                   .preparing = input.preparing});
}

std::string_view id_of(JsonValue item) {
  std::string_view id;
  JsonObject object;
  if (item.get(object) == simdjson::SUCCESS && object["id"].get(id) != simdjson::SUCCESS) id = {};
  return id;
}

}  // namespace

namespace {

class ResponsesProtocol final : public Protocol {
 public:
  explicit ResponsesProtocol(ResponsesInput input) : input_(std::move(input)) {}

  Result<PreparedAnswer> prepare(const ServingContext& serving, MemoryBudget& budget,
                                 const PrepareInput& in) override {
    WEIR_ASSIGN(ResponsesRequest request, parse(serving.config, in, input_));
    Result<PreparedAnswer> answer = prepare_request(serving, budget, in, kTraits, request.generate);
    if (!answer && answer.error().code == ErrorCode::kContextLength && request.truncation == "auto")
      answer = prepare_truncated(serving, budget, in, request.generate);
    if (!answer) return answer;
    WEIR_TRY(collect_facts(serving.config, budget, in, request));
    return answer;
  }

  std::unique_ptr<AnswerShape> shape(const PreparedAnswer&) override {
    return make_responses_shape(std::move(facts_));
  }

 private:
  Result<void> collect_facts(const ApiConfig& config, MemoryBudget& budget, const PrepareInput& in,
                             ResponsesRequest& request);

  const ResponsesInput input_;
  ResponseFacts facts_;
};

Result<void> ResponsesProtocol::collect_facts(const ApiConfig& config, MemoryBudget& budget,
                                              const PrepareInput& in, ResponsesRequest& request) {
  ResponseFacts facts;
  facts.id = input_.id;
  facts.created = in.now;
  facts.stream = request.generate.stream;
  facts.summary = request.summary;
  sample::SamplingParams sampling = config.defaults.sampling;
  apply_asked(request.generate, sampling);
  facts.settings =
      response_settings(request, model_shown(config, request.generate.model), sampling.temperature,
                        sampling.top_p);
  facts.items_before = request.items;
  size_t tool_bytes = 0;
  for (const ToolFunction& function : request.generate.functions) {
    if (function.space.empty() && !function.custom) continue;
    facts.tools.push_back({function.name, function.space, function.own_name, function.custom});
    tool_bytes += sizeof(RenamedTool) + 2 * function.name.size();
  }
  // The settings, their event and its copy that is sent; what is kept of the input, stored or not.
  const size_t bytes = 3 * facts.settings.size() + request.turn->input.size() + tool_bytes;
  WEIR_TRY(check_memory(budget, "input", bytes, "shorter items, tools or schemas"));
  WEIR_ASSIGN(facts.lease, lease(budget, in.caller, bytes));
  if (request.store) {
    facts.store = input_.store;
    facts.owner = input_.owner;
    facts.caller = in.caller;
    facts.turn = std::move(request.turn);
  }
  facts_ = std::move(facts);
  return {};
}

}  // namespace

std::unique_ptr<Protocol> make_protocol(ResponsesInput input) {
  return std::make_unique<ResponsesProtocol>(std::move(input));
}

Result<std::string> count_response_tokens(const ServingContext& serving, const PrepareInput& in,
                                          const ResponsesInput& input) {
  WEIR_ASSIGN(const ResponsesRequest request, parse(serving.config, in, input));
  WEIR_TRY(check_model(serving.config, request.generate.model));
  WEIR_ASSIGN(const PromptTokens prompt, count_chat(serving, in, "input", request.generate));
  std::string out;
  JsonWriter(out)
      .begin_object()
      .field("object", "response.input_tokens")
      .field("input_tokens", static_cast<int64_t>(prompt.ids.size()))
      .end_object();
  return out;
}

Result<std::string> response_page(ResponseStore& store, std::string_view id, std::string_view owner,
                                  int64_t now) {
  const auto response = store.find(id, owner, now);
  if (!response) return not_found(id);
  return response->head + response->turn->output + response->tail;
}

Result<std::string> response_events_page(const StoredQuery& in) {
  int64_t after = -1;
  if (const std::string_view text = parameter(in.query, "starting_after"); !text.empty()) {
    WEIR_ASSIGN(after, integer_parameter("starting_after", text));
  }
  WEIR_ASSIGN(const std::string whole, response_page(*in.store, in.id, in.owner, in.now));
  // Beside the document: every text three times, and the response once more.
  WEIR_ASSIGN(const MemoryLease memory, lease(*in.preparing, in.caller, preparing_bytes(whole)));
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(whole));
  JsonObject response;
  CHECK(doc.root().get(response) == simdjson::SUCCESS);
  return replay_events(response, whole, after);
}

Result<bool> wants_events(std::string_view query) {
  const std::string_view stream = parameter(query, "stream");
  if (stream == "true" || stream == "1") return true;
  if (stream.empty() || stream == "false" || stream == "0") return false;
  return out_of_range("stream",
                      "expected true or false, found \"" + std::string(shown(stream)) + "\"");
}

Error cancel_error(ResponseStore& store, std::string_view id, std::string_view owner, int64_t now) {
  if (!store.find(id, owner, now)) return std::move(not_found(id)).value();
  return Error{ErrorCode::kInvalid,
               "Cannot cancel a synchronous response: expected one that was asked for with "
               "background, which this server does not support. To stop an answer, close its "
               "connection.",
               "response_id", "invalid_value"};
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

Result<std::string> input_items_page(const StoredQuery& in) {
  const auto response = in.store->find(in.id, in.owner, in.now);
  if (!response) return not_found(in.id);
  WEIR_ASSIGN(const ListRange range, list_range(in.query));
  const std::string& input = response->turn->input;
  WEIR_ASSIGN(const MemoryLease memory, lease(*in.preparing, in.caller, preparing_bytes(input)));
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

}  // namespace weir::api::responses
