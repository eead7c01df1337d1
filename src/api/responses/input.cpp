#include "api/responses/input.h"

#include <utility>
#include <vector>

#include "api/memory/memory_cost.h"
#include "api/responses/items.h"
#include "api/responses/tools.h"
#include "base/check.h"

namespace weir::api::responses {

namespace {

tl::unexpected<Error> previous_not_found(std::string_view id) {
  return fail(ErrorCode::kInvalid,
              "Previous response with id '" + std::string(shown(id)) + "' not found.",
              "previous_response_id", "previous_response_not_found");
}

// Letters of the ids of items, by type; of what else comes, as of messages.
std::string_view id_letters(std::string_view type) {
  if (type == "function_call") return "fc_";
  if (type == "function_call_output") return "fco_";
  if (type == "custom_tool_call") return "ctc_";
  if (type == "custom_tool_call_output") return "ctco_";
  if (type == "reasoning") return "rs_";
  return "msg_";
}

// Reads `input`: items become messages, and, for the store, items with ids.
class InputReader {
 public:
  InputReader(const ResponsesContext& context, ResponsesRequest& out)
      : context_(context), out_(out), items_(out.generate) {}

  Result<void> read(JsonObject body) {
    WEIR_TRY(read_instructions(body));
    WEIR_TRY(read_previous());
    const auto input = json_get(body, "input");
    if (!input) return missing("input");
    std::string_view text;
    JsonArray array;
    if (input->get(text) == simdjson::SUCCESS) {
      items_.add_text(text);
      keep_text(text);
    } else if (input->get(array) == simdjson::SUCCESS) {
      size_t index = 0;
      for (const JsonValue item : array)
        WEIR_TRY(read_item("input[" + std::to_string(index++) + "]", item));
    } else {
      return wrong_type("input", "a string or an array of items", *input);
    }
    items_.finish();
    if (out_.generate.last_role.empty())
      return out_of_range("input", "expected at least one message, found none");
    return {};
  }

 private:
  Result<void> read_instructions(JsonObject body) {
    const auto value = json_get(body, "instructions");
    if (!value) return {};
    WEIR_ASSIGN(const std::string_view text, as_string("instructions", *value));
    out_.instructions.clear();
    JsonWriter(out_.instructions).value(*value);
    items_.add_instructions(text);
    return {};
  }

  // What was said before: all turns, the oldest first.
  Result<void> read_previous() {
    out_.turn = std::make_shared<ResponseTurn>();
    if (!out_.previous_response_id) return {};
    const std::string& id = *out_.previous_response_id;
    const auto response = find(id);
    if (!response) return previous_not_found(id);
    out_.turn->previous = response->turn;
    std::vector<const ResponseTurn*> turns;
    for (const ResponseTurn* turn = response->turn.get(); turn; turn = turn->previous.get())
      turns.push_back(turn);
    for (size_t i = turns.size(); i-- > 0;)
      for (const std::string* items : {&turns[i]->input, &turns[i]->output})
        WEIR_TRY(read_kept(*items));
    return {};
  }

  Result<void> read_kept(const std::string& items) {
    WEIR_ASSIGN(const JsonDoc doc, parse_kept(items));
    for (const JsonValue item : array_of(doc)) WEIR_TRY(items_.add("previous_response_id", item));
    return {};
  }

  // With the memory that it takes, as a body would.
  Result<JsonDoc> parse_kept(const std::string& items) {
    const std::string text = "[" + items + "]";
    if (context_.preparing) {
      auto lease = context_.preparing->take(context_.caller, preparing_bytes(text));
      if (!lease)
        return fail(ErrorCode::kOverloaded,
                    "The memory for requests being prepared is used up; try again later.");
      leases_.push_back(std::move(*lease));
    }
    return JsonDoc::parse(text);
  }

  static JsonArray array_of(const JsonDoc& doc) {
    JsonArray array;
    CHECK(doc.root().get(array) == simdjson::SUCCESS);
    return array;
  }

  Result<void> read_item(const std::string& path, JsonValue item) {
    WEIR_ASSIGN(const JsonObject object, as_object(path, item));
    std::string_view type;
    if (const auto value = json_get(object, "type")) {
      WEIR_ASSIGN(type, as_string(path + ".type", *value));
    }
    if (type == "item_reference") return read_reference(path, object);
    if (type == kToolsItem) return {};  // Of this request alone; they are read.
    WEIR_TRY(items_.add(path, item));
    if (out_.store) keep(object, type.empty() ? "message" : type);
    return {};
  }

  // An item of a stored response, by its id.
  Result<void> read_reference(const std::string& path, JsonObject object) {
    const auto value = json_get(object, "id");
    if (!value) return missing(path + ".id");
    WEIR_ASSIGN(const std::string_view id, as_string(path + ".id", *value));
    const auto response = find(response_of_item(id));
    if (response) {
      for (const std::string* items : {&response->turn->output, &response->turn->input}) {
        WEIR_ASSIGN(const JsonDoc doc, parse_kept(*items));
        for (const JsonValue item : array_of(doc)) {
          std::string_view found_id;
          if (item["id"].get(found_id) != simdjson::SUCCESS || found_id != id) continue;
          return read_item(path, item);
        }
      }
    }
    return fail(ErrorCode::kNotFound, "Item with id '" + std::string(shown(id)) + "' not found.",
                path + ".id");
  }

  std::shared_ptr<const StoredResponse> find(std::string_view id) const {
    return context_.store ? context_.store->find(id, context_.owner, context_.now) : nullptr;
  }

  std::string& next_kept() {
    std::string& kept = out_.turn->input;
    if (!kept.empty()) kept += ',';
    return kept;
  }

  void keep(JsonObject item, std::string_view type) {
    JsonWriter json(next_kept());
    json.begin_object();
    const auto id = json_get(item, "id");
    if (id && id->is_string())
      json.field("id", *id);
    else
      json.field("id", item_id(id_letters(type), context_.id, out_.items));
    json.field("type", type);
    for (const auto [key, value] : item)
      if (key != "id" && key != "type") json.field(key, value);
    json.end_object();
    ++out_.items;
  }

  void keep_text(std::string_view text) {
    if (!out_.store) return;
    JsonWriter json(next_kept());
    json.begin_object().field("id", item_id("msg_", context_.id, out_.items++));
    json.field("type", "message").field("status", "completed").field("role", "user");
    json.key("content").begin_array().begin_object();
    json.field("type", "input_text").field("text", text).end_object().end_array().end_object();
  }

  const ResponsesContext& context_;
  ResponsesRequest& out_;
  ResponseItems items_;
  std::vector<MemoryLease> leases_;
};

}  // namespace

Result<void> read_input(JsonObject body, const ResponsesContext& context, ResponsesRequest& out) {
  return InputReader(context, out).read(body);
}

}  // namespace weir::api::responses
