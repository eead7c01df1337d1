#include "api/output/call_grammar.h"

#include <algorithm>

#include "base/json.h"

namespace weir::api::output {

namespace {

using Json = JsonWriter;

void write_text(Json& json, std::string_view text) {
  json.begin_object().field("text", text).end_object();
}

void write_space(Json& json) { json.begin_object().field("space", true).end_object(); }

// Text in which '\v' is a space that may be there; elements of a sequence.
void write_form(Json& json, std::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t space = std::min(text.find('\v', begin), text.size());
    if (space > begin) write_text(json, text.substr(begin, space - begin));
    if (space < text.size()) write_space(json);
    begin = space + 1;
  }
}

void write_markers(Json& json, std::string_view kind, std::string_view marker) {
  json.begin_object().key(kind).begin_array().value(marker).end_array().end_object();
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
  if (!function.strict) json.field("or_object", true);
  json.end_object();
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

  // A text and a call, again and again; then text to the end.
  void free_text() {
    begin_sequence();
    begin_repeat();
    begin_sequence();
    write_markers(json_, "until", grammar_.section_begin);
    behind_marker();
    end_sequence();
    if (!binding_.parallel) json_.field("max", 1);
    json_.end_object();
    // Where one call is all, it is also the end: a second one could not be told from content.
    write_markers(json_, "without", grammar_.section_begin);
    end_sequence();
  }

 private:
  void begin_sequence() { json_.begin_object().key("seq").begin_array(); }
  void end_sequence() { json_.end_array().end_object(); }
  void begin_repeat() { json_.begin_object().key("repeat"); }

  void section() {
    write_form(json_, grammar_.section_begin);
    behind_marker();
  }

  void behind_marker() {
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
      if (binding_.forced || function.strict)
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

std::string calls_part(const CallBinding& binding) {
  std::string out;
  CallsWriter writer(binding, out);
  if (binding.forced)
    writer.forced();
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
  if (!reasoning.behind.empty()) write_text(json, reasoning.behind);
  json.end_array().end_object();
  json.field("min", begun ? 1 : 0).field("max", 1).end_object();
  json.raw(answer);
  json.end_array().end_object();
  return out;
}

}  // namespace weir::api::output
