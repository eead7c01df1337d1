#include "api/responses/events.h"

#include <algorithm>
#include <array>

namespace weir::api::responses {

void ResponseEvents::open(std::string& out, std::string_view type) {
  out.append("event: ").append(type).append("\ndata: {\"type\":\"").append(type);
  out.append("\",\"sequence_number\":");
  JsonWriter(out).value(number_++);
}

void ResponseEvents::open_item(std::string& out, std::string_view type, int32_t output_index) {
  open(out, type);
  out.append(",\"output_index\":");
  JsonWriter(out).value(output_index);
}

void ResponseEvents::open_text(std::string& out, std::string_view type, int32_t output_index,
                               std::string_view item_id, std::string_view index_key,
                               int32_t index) {
  open_item(out, type, output_index);
  out.append(",\"item_id\":");
  append_json_string(out, item_id);
  if (index_key.empty()) return;
  out.append(",\"").append(index_key).append("\":");
  JsonWriter(out).value(index);
}

namespace {

std::string_view string_of(JsonObject object, std::string_view key) {
  std::string_view text;
  const auto value = json_get(object, key);
  return value && value->get(text) == simdjson::SUCCESS ? text : std::string_view();
}

// The texts that items hold, and the names of their events.
struct TextKind {
  std::string_view holder;  // The type of the item, or of the part.
  std::string_view key;     // The text's member,
  std::string_view done;    // and how the event that repeats it calls it.
  std::string_view events;  // "response.EVENTS.delta"
};
constexpr auto kTextKinds = std::to_array<TextKind>({
    {"output_text", "text", "text", "output_text"},
    {"reasoning_text", "text", "text", "reasoning_text"},
    {"summary_text", "text", "text", "reasoning_summary_text"},
    {"function_call", "arguments", "arguments", "function_call_arguments"},
    {"custom_tool_call", "input", "input", "custom_tool_call_input"},
});

// The lists of parts that items hold.
struct PartList {
  std::string_view key, index_key, events;
};
constexpr auto kPartLists = std::to_array<PartList>({
    {"summary", "summary_index", "response.reasoning_summary_part"},
    {"content", "content_index", "response.content_part"},
});

class Replay {
 public:
  explicit Replay(int64_t after) : after_(after) {}

  std::string events(JsonObject response, std::string_view whole) {
    for (const char* type : {"response.created", "response.in_progress"}) {
      events_.open(event_, type);
      event_.append(",\"response\":");
      append_begun(response);
      close();
    }
    JsonArray items;
    if (const auto output = json_get(response, "output"); output && !output->get(items)) {
      for (const JsonValue element : items) {
        JsonObject object;
        if (element.get(object) == simdjson::SUCCESS) item(object);
        ++index_;
      }
    }
    events_.open(event_, "response." + std::string(string_of(response, "status")));
    event_.append(",\"response\":").append(whole);
    close();
    return std::move(out_);
  }

 private:
  // The response as it was before its first item.
  void append_begun(JsonObject response) {
    JsonWriter json(event_);
    json.begin_object();
    for (const auto [key, value] : response) {
      if (key == "status")
        json.field(key, "in_progress");
      else if (key == "output")
        json.key(key).raw("[]");
      else if (key == "error" || key == "incomplete_details" || key == "usage")
        json.key(key).null();
      else
        json.field(key, value);
    }
    json.end_object();
  }

  void item(JsonObject object) {
    item_id_ = string_of(object, "id");
    events_.open_item(event_, "response.output_item.added", index_);
    event_.append(",\"item\":");
    append_empty(object, {"summary", "content", "arguments", "input"});
    close();
    text(object, {}, 0);
    for (const PartList& list : kPartLists) parts(object, list);
    events_.open_item(event_, "response.output_item.done", index_);
    event_.append(",\"item\":");
    JsonWriter json(event_);
    json.begin_object();
    for (const auto [key, value] : object) json.field(key, value);
    json.end_object();
    close();
  }

  void parts(JsonObject object, const PartList& list) {
    JsonArray array;
    const auto value = json_get(object, list.key);
    if (!value || value->get(array) != simdjson::SUCCESS) return;
    int32_t number = 0;
    for (const JsonValue element : array) {
      JsonObject part;
      if (element.get(part) != simdjson::SUCCESS) continue;
      open_part(list, ".added", number);
      append_empty(part, {"text", "logprobs"});
      close();
      text(part, list.index_key, number);
      open_part(list, ".done", number++);
      JsonWriter(event_).value(element);
      close();
    }
  }

  void open_part(const PartList& list, std::string_view ending, int32_t number) {
    events_.open_text(event_, std::string(list.events).append(ending), index_, item_id_,
                      list.index_key, number);
    event_.append(",\"part\":");
  }

  // The text of an item or of a part, if it holds one.
  void text(JsonObject holder, std::string_view index_key, int32_t number) {
    const auto kind = std::ranges::find(kTextKinds, string_of(holder, "type"), &TextKind::holder);
    if (kind == kTextKinds.end()) return;
    const auto logprobs = json_get(holder, "logprobs");
    for (const std::string_view ending : {"delta", "done"}) {
      const std::string type = "response." + std::string(kind->events) + "." + std::string(ending);
      events_.open_text(event_, type, index_, item_id_, index_key, number);
      if (kind->holder == "function_call" && ending == "done") {
        event_.append(",\"name\":");
        append_json_string(event_, string_of(holder, "name"));
      }
      event_.append(",\"").append(ending == "delta" ? ending : kind->done).append("\":");
      append_json_string(event_, string_of(holder, kind->key));
      if (logprobs) {
        event_.append(",\"logprobs\":");
        JsonWriter(event_).value(*logprobs);
      }
      close();
    }
  }

  // An item or a part before anything of it is written.
  void append_empty(JsonObject object, std::initializer_list<std::string_view> grown) {
    JsonWriter json(event_);
    json.begin_object();
    for (const auto [key, value] : object) {
      if (key == "status")
        json.field(key, "in_progress");
      else if (std::ranges::find(grown, key) == grown.end())
        json.field(key, value);
      else
        json.key(key).raw(value.is_array() ? "[]" : "\"\"");
    }
    json.end_object();
  }

  // Sends the event, unless the client has it.
  void close() {
    ResponseEvents::close(event_);
    if (events_.number() - 1 > after_) out_ += event_;
    event_.clear();
  }

  const int64_t after_;
  ResponseEvents events_;
  int32_t index_ = 0;  // Of the item.
  std::string_view item_id_;
  std::string event_, out_;
};

}  // namespace

std::string replay_events(JsonObject response, std::string_view whole, int64_t after) {
  return Replay(after).events(response, whole);
}

}  // namespace weir::api::responses
