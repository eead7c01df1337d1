#include "api/output/call_grammar.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/json.h"
#include "grammar/parts.h"

namespace weir::api::output {

namespace {

using Json = JsonWriter;

void write_text(Json& json, std::string_view text) {
  json.begin_object().field("text", text).end_object();
}

void write_space(Json& json) { json.begin_object().field("space", true).end_object(); }

// A call's number within the conversation.
void write_number(Json& json) {
  json.begin_object().key("source").begin_object();
  json.field("kind", static_cast<int32_t>(grammar::GrammarSource::Kind::kRegex));
  json.field("text", "[0-9]{1,4}").end_object().end_object();
}

// Text in which '\v' is a space that may be there and '\a' a number; elements of a sequence.
void write_form(Json& json, std::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t other = std::min(text.find_first_of("\v\a", begin), text.size());
    if (other > begin) write_text(json, text.substr(begin, other - begin));
    if (other < text.size()) text[other] == '\v' ? write_space(json) : write_number(json);
    begin = other + 1;
  }
}

void write_array(Json& json, std::string_view key, std::span<const std::string_view> texts) {
  json.key(key).begin_array();
  for (const std::string_view text : texts) json.value(text);
  json.end_array();
}

void write_markers(Json& json, std::string_view kind, std::string_view marker) {
  json.begin_object();
  write_array(json, kind, {&marker, 1});
  json.end_object();
}

// Arguments are an object, whether the schema says so or not.
void write_schema(Json& json, const BoundFunction& function) {
  const Result<JsonDoc> doc = JsonDoc::parse(function.parameters);
  JsonObject schema;
  if (!doc || doc->root().get(schema) != simdjson::SUCCESS) {
    write_text(json, "{}");
    return;
  }
  json.begin_object().key("schema").begin_object();
  for (const auto [key, value] : schema)
    if (key != "type") json.field(key, value);
  json.field("type", "object");
  json.end_object();
  if (!function.strict) json.field("loose", function.field);
  json.end_object();
}

// {"input": TEXT}
void write_input(Json& json, const grammar::GrammarSource& source) {
  write_text(json, "{\"input\": \"");
  std::string part = grammar::source_part(source);
  part.back() = ',';
  json.raw(part + "\"in_string\":true}");
  write_text(json, "\"}");
}

class CallsWriter {
 public:
  CallsWriter(const CallBinding& binding, std::string& out)
      : binding_(binding), grammar_(binding.format->grammar), json_(out) {}

  void forced() {
    begin_sequence();
    section();
    if (binding_.parallel && grammar_.between.empty()) {
      begin_repeat();
      begin_sequence();
      write_space(json_);
      section();
      end_sequence();
      json_.end_object();
    }
    end_sequence();
  }

  // A text and a call, again and again; then text to the end. Or, where calls have no marker, an
  // answer that begins as a call is nothing but calls.
  void free_text() {
    const std::string_view bare = binding_.format->bare;
    if (bare.empty()) {
      texts_and_calls(bare);
      return;
    }
    json_.begin_object().key("any").begin_array();
    begin_sequence();
    write_space(json_);
    section();
    end_sequence();
    texts_and_calls(bare);
    json_.end_array().end_object();
  }

  // Messages: reasoning and preambles, then an answer or a call.
  void messages() {
    begin_sequence();
    begin_repeat();
    begin_sequence();
    json_.begin_object().key("any").begin_array();
    write_text(json_, "<|channel|>analysis<|message|>");
    write_text(json_, "<|channel|>commentary<|message|>");
    json_.end_array().end_object();
    write_messages_end("until", "<|end|>");
    write_text(json_, "<|start|>assistant");
    end_sequence();
    json_.end_object();
    json_.begin_object().key("any").begin_array();
    begin_sequence();
    write_text(json_, "<|channel|>final<|message|>");
    write_messages_end("without", "<|end|>");
    end_sequence();
    begin_sequence();
    section();
    end_sequence();
    json_.end_array().end_object();
    end_sequence();
  }

 private:
  void begin_sequence() { json_.begin_object().key("seq").begin_array(); }
  void end_sequence() { json_.end_array().end_object(); }
  void begin_repeat() { json_.begin_object().key("repeat"); }

  void section() {
    write_form(json_, grammar_.section_begin);
    calls();
  }

  // The marker that the grammar's calls begin with, and the others, which then may not come.
  std::string_view marker() const {
    for (const std::string_view begin : binding_.format->begins)
      if (grammar_.section_begin.starts_with(begin)) return begin;
    return binding_.format->begins.empty() ? std::string_view() : binding_.format->begins.front();
  }

  void write_text_up_to(bool marker_comes, std::string_view not_first) {
    const std::string_view own = marker();
    std::vector<std::string_view> others(binding_.format->begins.begin(),
                                         binding_.format->begins.end());
    if (marker_comes) std::erase(others, own);
    json_.begin_object();
    if (marker_comes) write_array(json_, "until", {&own, 1});
    write_array(json_, marker_comes ? "but" : "without", others);
    if (!not_first.empty()) json_.field("not_first", not_first);
    json_.end_object();
  }

  void texts_and_calls(std::string_view not_first) {
    if (binding_.format->begins.empty()) {
      write_text_up_to(false, not_first);
      return;
    }
    json_.begin_object().key("any").begin_array();
    write_text_up_to(false, not_first);
    begin_sequence();
    text_and_calls(not_first);
    begin_repeat();
    begin_sequence();
    text_and_calls(not_first);
    end_sequence();
    if (!binding_.parallel) json_.field("max", 0);
    json_.end_object();
    // Where one call is all, it is also the end: a second one could not be told from content.
    write_text_up_to(false, not_first);
    end_sequence();
    json_.end_array().end_object();
  }

  void text_and_calls(std::string_view not_first) {
    write_text_up_to(true, not_first);
    const std::string_view own = marker(), begin = grammar_.section_begin;
    if (begin.starts_with(own)) {
      if (begin.size() > own.size()) write_space(json_);
      write_form(json_, begin.substr(own.size()));
    } else {
      write_form(json_, begin);
    }
    calls();
  }

  // What ends a message, or begins the next one, is not in its text.
  void write_messages_end(std::string_view kind, std::string_view end) {
    const std::array<std::string_view, 2> next = {"<|start|>", "<|channel|>"};
    const std::array<std::string_view, 3> all = {end, next[0], next[1]};
    json_.begin_object();
    if (kind == "until") {
      write_array(json_, kind, {&end, 1});
      write_array(json_, "but", next);
    } else {
      write_array(json_, kind, all);
    }
    json_.end_object();
  }

  void calls() {
    call();
    if (binding_.parallel && !grammar_.between.empty()) {
      begin_repeat();
      begin_sequence();
      write_form(json_, grammar_.between);
      call();
      end_sequence();
      json_.end_object();
    }
    write_form(json_, grammar_.section_end);
  }

  void call() {
    write_form(json_, grammar_.call_begin);
    json_.begin_object().key("any").begin_array();
    for (const BoundFunction& function : binding_.functions) {
      begin_sequence();
      write_text(json_, function.name);
      write_form(json_, grammar_.after_name);
      if (function.input)
        write_input(json_, *function.input);
      else if (binding_.forced || function.strict)
        write_schema(json_, function);
      else
        json_.begin_object().field("object", true).end_object();
      end_sequence();
    }
    json_.end_array().end_object();
    write_form(json_, grammar_.call_end);
  }

  const CallBinding& binding_;
  const CallGrammar& grammar_;
  Json json_;
};

}  // namespace

std::string write_calls(const CallFormat& format, std::span<const WrittenCall> calls) {
  const CallGrammar& grammar = format.grammar;
  std::string text;
  const auto append = [&](std::string_view form) {
    for (const char c : form) {
      if (c == '\a')
        text += '0';
      else
        text += c == '\v' ? '\n' : c;
    }
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    const bool joined = !grammar.between.empty();
    if (i == 0 || !joined) append(grammar.section_begin);
    if (i > 0 && joined) append(grammar.between);
    append(grammar.call_begin);
    text += calls[i].name;
    append(grammar.after_name);
    text += calls[i].arguments;
    append(grammar.call_end);
    if (i + 1 == calls.size() || !joined) append(grammar.section_end);
    if (i + 1 < calls.size() && !joined) text += '\n';
  }
  return text;
}

std::string calls_part(const CallBinding& binding) {
  std::string out;
  CallsWriter writer(binding, out);
  if (binding.forced)
    writer.forced();
  else if (binding.format->messages)
    writer.messages();
  else
    writer.free_text();
  return out;
}

std::string behind_reasoning(const ReasoningFormat& reasoning, bool begun,
                             std::string_view answer) {
  std::string out;
  Json json(out);
  json.begin_object().key("seq").begin_array();
  json.begin_object().key("repeat").begin_object().key("seq").begin_array();
  if (!begun) {
    write_space(json);
    write_text(json, reasoning.open);
  }
  write_markers(json, "until", reasoning.close);
  // Mostly two line feeds.
  write_space(json);
  write_space(json);
  if (!reasoning.after.empty()) write_text(json, reasoning.after);
  json.end_array().end_object();
  json.field("min", begun ? 1 : 0).field("max", 1).end_object();
  json.raw(answer);
  json.end_array().end_object();
  return out;
}

}  // namespace weir::api::output
