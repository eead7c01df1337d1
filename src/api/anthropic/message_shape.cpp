#include "api/anthropic/message_shape.h"

#include <string_view>
#include <utility>
#include <vector>

#include "api/anthropic/message_error.h"
#include "base/json.h"

namespace weir::api::anthropic {

namespace {

// Of a whole answer and of each block, beside their texts: about 350 and 100.
constexpr size_t kShapeBytes = 512;

enum class BlockKind : uint8_t { kThinking, kText, kToolUse };

std::string_view stop_reason(const Finish& finish) {
  switch (finish.kind) {
    case FinishKind::kLength:
      return "max_tokens";
    case FinishKind::kCalls:
      return "tool_use";
    case FinishKind::kStop:
      return finish.stop_string.empty() ? "end_turn" : "stop_sequence";
  }
  return "end_turn";
}

// Tokens that came from the cache are not among input_tokens.
void write_usage(JsonWriter& json, const Usage& usage) {
  json.key("usage").begin_object();
  json.field("input_tokens", usage.prompt_tokens - usage.cached_tokens);
  json.field("cache_creation_input_tokens", 0);
  json.field("cache_read_input_tokens", usage.cached_tokens);
  json.field("output_tokens", usage.completion_tokens);
  json.key("output_tokens_details").begin_object();
  json.field("thinking_tokens", usage.reasoning_tokens).end_object().end_object();
}

// Why the answer has ended, for its end.
struct Stop {
  std::string_view reason = "end_turn";
  std::string sequence;  // The one that was met, if stop_reason says so.

  void set(const Finish& finish) {
    reason = stop_reason(finish);
    if (reason == "stop_sequence") sequence = finish.stop_string;
  }
  void write(JsonWriter& json) const {
    json.field("stop_reason", reason).key("stop_sequence");
    if (sequence.empty())
      json.null();
    else
      json.value(sequence);
  }
};

void write_facts(JsonWriter& json, const MessageFacts& facts) {
  json.field("id", facts.id).field("type", "message").field("role", "assistant");
  json.field("model", facts.model);
}

// An event for every piece. Blocks follow each other; one is open at a time.
class MessageEvents final : public AnswerShape {
 public:
  explicit MessageEvents(const MessageFacts& facts) : facts_(facts) {}

  void begin(std::string& out, const Usage& usage) override;
  void begin_choice(std::string&, ChoiceRef) override {}
  void text(std::string& out, ChoiceRef, std::string_view text) override {
    add(out, BlockKind::kText, text);
  }
  void reasoning(std::string& out, ChoiceRef, std::string_view text) override {
    if (facts_.show_reasoning) add(out, BlockKind::kThinking, text);
  }
  void begin_call(std::string& out, ChoiceRef, const CallRef& call) override;
  void call_arguments(std::string& out, ChoiceRef, int32_t, std::string_view text) override {
    append_delta(out, R"("input_json_delta","partial_json":)", text);
  }
  void end_call(std::string& out, ChoiceRef, int32_t) override { close_block(out); }
  void finish(std::string& out, ChoiceRef, const Finish& finish) override;
  void end(std::string& out, const Usage& usage) override;
  void fail(std::string& out, const Error& error) override;
  std::string_view keep_alive() const override {
    return "event: ping\ndata: {\"type\":\"ping\"}\n\n";
  }

 private:
  void add(std::string& out, BlockKind kind, std::string_view text);
  // The members of the block after its type; ends with what closes them all.
  void open_block(std::string& out, BlockKind kind, std::string_view members);
  void append_delta(std::string& out, std::string_view head, std::string_view text);
  void close_block(std::string& out);

  const MessageFacts facts_;
  int32_t index_ = 0;  // Of the block that is open, or will be.
  bool open_ = false;
  BlockKind kind_ = BlockKind::kText;
  Stop stop_;
};

void MessageEvents::begin(std::string& out, const Usage& usage) {
  out.append("event: message_start\ndata: ");
  JsonWriter json(out);
  json.begin_object().field("type", "message_start").key("message").begin_object();
  write_facts(json, facts_);
  json.key("content").begin_array().end_array();
  json.key("stop_reason").null().key("stop_sequence").null();
  write_usage(json, usage);
  json.end_object().end_object();
  out.append("\n\n");
}

void MessageEvents::open_block(std::string& out, BlockKind kind, std::string_view members) {
  close_block(out);
  open_ = true;
  kind_ = kind;
  out.append("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":");
  JsonWriter(out).value(index_);
  out.append(R"(,"content_block":{"type":)").append(members).append("}}\n\n");
}

void MessageEvents::append_delta(std::string& out, std::string_view head, std::string_view text) {
  out.append("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":");
  JsonWriter(out).value(index_);
  out.append(R"(,"delta":{"type":)").append(head);
  append_json_string(out, text);
  out.append("}}\n\n");
}

void MessageEvents::add(std::string& out, BlockKind kind, std::string_view text) {
  if (text.empty()) return;
  const bool thinking = kind == BlockKind::kThinking;
  if (!open_ || kind_ != kind)
    open_block(out, kind,
               thinking ? R"("thinking","thinking":"","signature":"")" : R"("text","text":"")");
  append_delta(out, thinking ? R"("thinking_delta","thinking":)" : R"("text_delta","text":)", text);
}

void MessageEvents::begin_call(std::string& out, ChoiceRef, const CallRef& call) {
  std::string members = R"("tool_use","id":)";
  append_json_string(members, call.id);
  members.append(R"(,"name":)");
  append_json_string(members, call.name);
  members.append(R"(,"input":{})");
  open_block(out, BlockKind::kToolUse, members);
}

// Thinking is signed; no server here checks it, but clients wait for the signature.
void MessageEvents::close_block(std::string& out) {
  if (!std::exchange(open_, false)) return;
  if (kind_ == BlockKind::kThinking) append_delta(out, R"("signature_delta","signature":)", "");
  out.append("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":");
  JsonWriter(out).value(index_++);
  out.append("}\n\n");
}

void MessageEvents::finish(std::string& out, ChoiceRef, const Finish& finish) {
  close_block(out);
  stop_.set(finish);
}

void MessageEvents::end(std::string& out, const Usage& usage) {
  out.append("event: message_delta\ndata: ");
  JsonWriter json(out);
  json.begin_object().field("type", "message_delta").key("delta").begin_object();
  stop_.write(json);
  json.end_object();
  write_usage(json, usage);
  json.end_object();
  out.append("\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

void MessageEvents::fail(std::string& out, const Error& error) {
  out.append("event: error\ndata: ").append(error_json(error, {})).append("\n\n");
}

// Collects the blocks and writes them at the end.
class WholeMessage final : public AnswerShape {
 public:
  explicit WholeMessage(const MessageFacts& facts) : facts_(facts) {}

  void begin(std::string&, const Usage&) override {}
  void begin_choice(std::string&, ChoiceRef) override {}
  void text(std::string&, ChoiceRef, std::string_view text) override {
    add(BlockKind::kText, text);
  }
  void reasoning(std::string&, ChoiceRef, std::string_view text) override {
    if (facts_.show_reasoning) add(BlockKind::kThinking, text);
  }
  void begin_call(std::string&, ChoiceRef, const CallRef& call) override {
    blocks_.push_back({BlockKind::kToolUse, {}, std::string(call.id), std::string(call.name)});
  }
  void call_arguments(std::string&, ChoiceRef, int32_t, std::string_view text) override {
    blocks_.back().text += text;
  }
  void end_call(std::string&, ChoiceRef, int32_t) override { blocks_.back().complete = true; }
  void finish(std::string&, ChoiceRef, const Finish& finish) override { stop_.set(finish); }
  void end(std::string& out, const Usage& usage) override;
  void fail(std::string&, const Error&) override {}

 private:
  struct Block {
    BlockKind kind = BlockKind::kText;
    std::string text;  // Or the JSON of a call's input.
    std::string id, name;
    bool complete = false;  // A call.
  };

  void add(BlockKind kind, std::string_view text);
  static void write(JsonWriter& json, const Block& block);

  const MessageFacts facts_;
  std::vector<Block> blocks_;
  Stop stop_;
};

void WholeMessage::add(BlockKind kind, std::string_view text) {
  if (text.empty()) return;
  if (blocks_.empty() || blocks_.back().kind != kind) blocks_.push_back({kind, {}, {}, {}});
  blocks_.back().text += text;
}

void WholeMessage::write(JsonWriter& json, const Block& block) {
  json.begin_object();
  switch (block.kind) {
    case BlockKind::kThinking:
      json.field("type", "thinking").field("thinking", block.text).field("signature", "");
      break;
    case BlockKind::kText:
      json.field("type", "text").field("text", block.text);
      break;
    case BlockKind::kToolUse:
      json.field("type", "tool_use").field("id", block.id).field("name", block.name).key("input");
      json.raw(block.text.empty() ? "{}" : std::string_view(block.text));
      break;
  }
  json.end_object();
}

void WholeMessage::end(std::string& out, const Usage& usage) {
  size_t bytes = kShapeBytes;
  for (const Block& block : blocks_) bytes += kShapeBytes + block.text.size();
  out.reserve(bytes);
  JsonWriter json(out);
  json.begin_object();
  write_facts(json, facts_);
  json.key("content").begin_array();
  for (Block& block : blocks_) {
    // A call that the limit of tokens has cut is no JSON, and no client is to make it.
    if (block.kind != BlockKind::kToolUse || block.complete) write(json, block);
    std::string().swap(block.text);  // What stands in the body is not held twice.
  }
  json.end_array();
  stop_.write(json);
  write_usage(json, usage);
  json.end_object();
}

}  // namespace

std::unique_ptr<AnswerShape> make_message_shape(const MessageFacts& facts) {
  if (facts.stream) return std::make_unique<MessageEvents>(facts);
  return std::make_unique<WholeMessage>(facts);
}

}  // namespace weir::api::anthropic
