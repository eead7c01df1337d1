#include "api/responses/shape.h"

#include <algorithm>
#include <utility>

#include "api/exchange/api_error.h"
#include "api/responses/events.h"
#include "api/responses/response_object.h"
#include "api/responses/tools.h"
#include "base/json.h"

namespace weir::api::responses {

namespace {

// Log-probabilities stand once in the deltas, and again in the events that repeat a whole item.
// Beyond this length they are left out of those: a connection may queue only so much
// (HttpLimits::stream_queue_bytes_max).
constexpr size_t kRepeatedLogprobBytesMax = 256 << 10;

// Of an item beside its text and log-probabilities, about.
constexpr size_t kItemBytes = 256;

std::string json_string(std::string_view text) {
  std::string json;
  append_json_string(json, text);
  return json;
}

// One choice; its pieces become items. The items are collected whether they are streamed or not:
// the last event repeats them all.
class ResponsesShape final : public AnswerShape {
 public:
  explicit ResponsesShape(ResponseFacts facts) : facts_(std::move(facts)) {}

  void begin(std::string& out, const Usage& usage) override;
  void begin_choice(std::string&, ChoiceRef) override {}
  void text(std::string& out, ChoiceRef choice, std::string_view text) override;
  void reasoning(std::string& out, ChoiceRef choice, std::string_view text) override;
  void begin_call(std::string& out, ChoiceRef choice, const CallRef& call) override;
  void call_arguments(std::string& out, ChoiceRef choice, int32_t call,
                      std::string_view text) override;
  void end_call(std::string& out, ChoiceRef choice, int32_t call) override;
  void finish(std::string& out, ChoiceRef choice, const Finish& finish) override;
  void end(std::string& out, const Usage& usage) override;
  void fail(std::string& out, const Error& error) override;

 private:
  enum class Item : uint8_t { kNone, kReasoning, kMessage, kCall, kCustomCall };

  // --- Events.
  void open_event(std::string& out, std::string_view type) { events_.open(out, type); }
  void open_item_event(std::string& out, std::string_view type) {
    events_.open_item(out, type, item_index_);
  }
  void open_part_event(std::string& out, std::string_view type);
  static void close_event(std::string& out) { ResponseEvents::close(out); }
  void response_event(std::string& out, ResponseStatus status, const Usage* usage,
                      const Error* error);

  // --- Items.
  bool is_call() const { return item_ == Item::kCall || item_ == Item::kCustomCall; }
  void open_item(std::string& out, Item kind, std::string_view letters);
  void open_message(std::string& out);
  void open_reasoning(std::string& out);
  void close_item(std::string& out, ResponseStatus status);
  void close_part(std::string& out, const std::string& text);
  void append_part(std::string& out, std::string_view text_json) const;
  void append_item(std::string& out, ResponseStatus status, std::string_view text_json) const;

  void store(std::string head, std::string tail);

  const ResponseFacts facts_;
  ResponseEvents events_;
  ResponseStatus status_ = ResponseStatus::kInProgress;

  // The open item.
  Item item_ = Item::kNone;
  int32_t item_index_ = -1;
  std::string item_id_;
  std::string text_;      // Of a call: the arguments.
  std::string logprobs_;  // Members of a JSON array.
  std::string call_id_;
  RenamedTool tool_;  // That is called.

  std::string output_;  // The closed items, as members of a JSON array.
};

// Of a part of the open item; it has but one.
void ResponsesShape::open_part_event(std::string& out, std::string_view type) {
  const bool summary = item_ == Item::kReasoning && facts_.summary;
  const std::string_view index_key = summary ? "summary_index" : "content_index";
  events_.open_text(out, type, item_index_, item_id_, is_call() ? std::string_view() : index_key);
}

void ResponsesShape::response_event(std::string& out, ResponseStatus status, const Usage* usage,
                                    const Error* error) {
  open_event(out, "response." + std::string(name_of(status)));
  out.append(",\"response\":");
  append_response_head(out, facts_, status, error);
  out.append(output_);
  append_response_tail(out, usage);
  close_event(out);
}

void ResponsesShape::begin(std::string& out, const Usage&) {
  if (!facts_.stream) return;
  open_event(out, "response.created");
  out.append(",\"response\":");
  append_response_head(out, facts_, ResponseStatus::kInProgress, nullptr);
  append_response_tail(out, nullptr);
  close_event(out);
  response_event(out, ResponseStatus::kInProgress, nullptr, nullptr);
}

// Ends the item before, and announces this one.
void ResponsesShape::open_item(std::string& out, Item kind, std::string_view letters) {
  close_item(out, ResponseStatus::kCompleted);
  item_ = kind;
  ++item_index_;
  item_id_ = item_id(letters, facts_.id, facts_.items_before + static_cast<size_t>(item_index_));
  if (!facts_.stream) return;
  open_item_event(out, "response.output_item.added");
  out.append(",\"item\":");
  append_item(out, ResponseStatus::kInProgress, {});
  close_event(out);
}

void ResponsesShape::open_message(std::string& out) {
  open_item(out, Item::kMessage, "msg_");
  if (!facts_.stream) return;
  open_part_event(out, "response.content_part.added");
  out.append(R"(,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""})");
  close_event(out);
}

void ResponsesShape::open_reasoning(std::string& out) {
  open_item(out, Item::kReasoning, "rs_");
  if (!facts_.stream) return;
  open_part_event(out, facts_.summary ? "response.reasoning_summary_part.added"
                                      : "response.content_part.added");
  out.append(facts_.summary ? R"(,"part":{"type":"summary_text","text":""})"
                            : R"(,"part":{"type":"reasoning_text","text":""})");
  close_event(out);
}

void ResponsesShape::text(std::string& out, ChoiceRef choice, std::string_view text) {
  if (item_ != Item::kMessage) open_message(out);
  text_ += text;
  std::string logprobs;
  if (choice.logprobs && !choice.logprobs->empty()) {
    choice.logprobs->write_and_clear(logprobs);
    if (!logprobs_.empty()) logprobs_ += ',';
    logprobs_ += logprobs;
  }
  if (!facts_.stream) return;
  open_part_event(out, "response.output_text.delta");
  out.append(",\"delta\":");
  append_json_string(out, text);
  out.append(",\"logprobs\":[").append(logprobs).append("]");
  close_event(out);
}

void ResponsesShape::reasoning(std::string& out, ChoiceRef choice, std::string_view text) {
  if (item_ != Item::kReasoning) open_reasoning(out);
  if (choice.logprobs) choice.logprobs->clear();  // They have no place.
  text_ += text;
  if (!facts_.stream) return;
  open_part_event(out, facts_.summary ? "response.reasoning_summary_text.delta"
                                      : "response.reasoning_text.delta");
  out.append(",\"delta\":");
  append_json_string(out, text);
  close_event(out);
}

void ResponsesShape::begin_call(std::string& out, ChoiceRef choice, const CallRef& call) {
  close_item(out, ResponseStatus::kCompleted);
  if (choice.logprobs) choice.logprobs->clear();
  call_id_ = call.id;
  const auto renamed = std::ranges::find(facts_.tools, call.name, &RenamedTool::name);
  tool_ = renamed == facts_.tools.end() ? RenamedTool{} : *renamed;
  if (renamed == facts_.tools.end()) tool_.own_name = call.name;
  open_item(out, tool_.custom ? Item::kCustomCall : Item::kCall, tool_.custom ? "ctc_" : "fc_");
}

void ResponsesShape::call_arguments(std::string& out, ChoiceRef choice, int32_t,
                                    std::string_view text) {
  if (choice.logprobs) choice.logprobs->clear();
  text_ += text;
  // A custom tool's input is within a JSON object: it is sent when that is whole.
  if (!facts_.stream || item_ == Item::kCustomCall) return;
  open_part_event(out, "response.function_call_arguments.delta");
  out.append(",\"delta\":");
  append_json_string(out, text);
  close_event(out);
}

void ResponsesShape::end_call(std::string& out, ChoiceRef, int32_t) {
  close_item(out, ResponseStatus::kCompleted);
}

// The part of the open item, around its text.
void ResponsesShape::append_part(std::string& out, std::string_view text_json) const {
  if (item_ == Item::kReasoning)
    out.append(facts_.summary ? R"({"type":"summary_text")" : R"({"type":"reasoning_text")");
  else
    out.append(R"({"type":"output_text","annotations":[],"logprobs":[)").append(logprobs_) += ']';
  out.append(",\"text\":").append(text_json).append("}");
}

// The open item; in progress it has no text yet.
void ResponsesShape::append_item(std::string& out, ResponseStatus status,
                                 std::string_view text_json) const {
  const auto append_status = [&] {
    out.append(",\"status\":\"").append(name_of(status)).append("\"");
  };
  const auto append_own_part = [&](bool here) {
    if (here && status != ResponseStatus::kInProgress) append_part(out, text_json);
  };
  out.append("{\"id\":\"").append(item_id_).append("\",");
  switch (item_) {
    case Item::kNone:
      break;
    case Item::kReasoning:
      out.append(R"("type":"reasoning","summary":[)");
      append_own_part(facts_.summary);
      out.append(R"(],"content":[)");
      append_own_part(!facts_.summary);
      out.append(R"(],"encrypted_content":null)");
      append_status();
      break;
    case Item::kMessage:
      out.append(R"("type":"message","role":"assistant")");
      append_status();
      out.append(",\"content\":[");
      append_own_part(true);
      out += ']';
      break;
    case Item::kCall:
    case Item::kCustomCall:
      out.append(item_ == Item::kCall ? R"("type":"function_call")"
                                      : R"("type":"custom_tool_call")");
      append_status();
      out.append(",\"call_id\":").append(json_string(call_id_));
      out.append(",\"name\":").append(json_string(tool_.own_name));
      if (!tool_.space.empty()) out.append(",\"namespace\":").append(json_string(tool_.space));
      out.append(item_ == Item::kCall ? ",\"arguments\":" : ",\"input\":");
      out.append(text_json.empty() ? "\"\"" : text_json);
      break;
  }
  out += '}';
}

// The events that repeat the text of the open item.
void ResponsesShape::close_part(std::string& out, const std::string& text) {
  if (item_ == Item::kCall) {
    open_part_event(out, "response.function_call_arguments.done");
    out.append(",\"name\":").append(json_string(tool_.own_name));
    out.append(",\"arguments\":").append(text);
    return close_event(out);
  }
  if (item_ == Item::kCustomCall) {
    open_part_event(out, "response.custom_tool_call_input.delta");
    out.append(",\"delta\":").append(text);
    close_event(out);
    open_part_event(out, "response.custom_tool_call_input.done");
    out.append(",\"input\":").append(text);
    return close_event(out);
  }
  const bool message = item_ == Item::kMessage, summary = !message && facts_.summary;
  open_part_event(out, message   ? "response.output_text.done"
                       : summary ? "response.reasoning_summary_text.done"
                                 : "response.reasoning_text.done");
  out.append(",\"text\":").append(text);
  if (message) out.append(",\"logprobs\":[").append(logprobs_).append("]");
  close_event(out);
  open_part_event(out,
                  summary ? "response.reasoning_summary_part.done" : "response.content_part.done");
  out.append(",\"part\":");
  append_part(out, text);
  close_event(out);
}

void ResponsesShape::close_item(std::string& out, ResponseStatus status) {
  if (item_ == Item::kNone) return;
  const std::string text = json_string(item_ == Item::kCustomCall ? custom_input(text_) : text_);
  std::string().swap(text_);
  if (facts_.stream && logprobs_.size() > kRepeatedLogprobBytesMax) logprobs_.clear();
  if (facts_.stream) close_part(out, text);
  if (!output_.empty()) output_ += ',';
  const size_t begin = output_.size();
  output_.reserve(begin + kItemBytes + logprobs_.size() + text.size());
  append_item(output_, status, text);
  std::string().swap(logprobs_);
  item_ = Item::kNone;
  if (!facts_.stream) return;
  open_item_event(out, "response.output_item.done");
  out.append(",\"item\":").append(output_, begin);
  close_event(out);
}

void ResponsesShape::finish(std::string& out, ChoiceRef choice, const Finish& finish) {
  status_ =
      finish.kind == FinishKind::kLength ? ResponseStatus::kIncomplete : ResponseStatus::kCompleted;
  // An answer without a word is a message, too. So are the last log-probabilities, of tokens whose
  // text was held back and is empty.
  if (item_index_ < 0) open_message(out);
  if (item_ == Item::kMessage && choice.logprobs && !choice.logprobs->empty())
    text(out, choice, {});
  close_item(out, status_);
}

void ResponsesShape::end(std::string& out, const Usage& usage) {
  std::string head, tail;
  append_response_head(head, facts_, status_, nullptr);
  append_response_tail(tail, &usage);
  if (facts_.stream) {
    open_event(out, "response." + std::string(name_of(status_)));
    out.append(",\"response\":");
  } else {
    out.reserve(head.size() + output_.size() + tail.size());
  }
  out.append(head).append(output_).append(tail);
  if (facts_.stream) close_event(out);
  store(std::move(head), std::move(tail));
}

void ResponsesShape::store(std::string head, std::string tail) {
  if (!facts_.store) return;
  facts_.turn->output = std::move(output_);
  facts_.store->put({.id = facts_.id,
                     .owner = facts_.owner,
                     .caller = facts_.caller,
                     .created = facts_.created,
                     .head = std::move(head),
                     .tail = std::move(tail),
                     .turn = facts_.turn,
                     .lease = {}});
}

// The error in OpenAI's documented form and in the one that its clients look for; then the response
// as far as it came.
void ResponsesShape::fail(std::string& out, const Error& error) {
  std::string object = error_json(error);  // {"error":{...}}
  object.erase(0, 1);
  object.pop_back();
  open_event(out, "error");
  out.append(",\"code\":").append(json_string(error.kind.empty() ? "server_error" : error.kind));
  out.append(",\"message\":").append(json_string(error.message)).append(",\"param\":null,");
  out.append(object);
  close_event(out);
  close_item(out, ResponseStatus::kIncomplete);
  response_event(out, ResponseStatus::kFailed, nullptr, &error);
}

}  // namespace

std::unique_ptr<AnswerShape> make_responses_shape(ResponseFacts facts) {
  return std::make_unique<ResponsesShape>(std::move(facts));
}

}  // namespace weir::api::responses
