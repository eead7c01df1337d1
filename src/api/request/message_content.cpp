#include "api/request/message_content.h"

#include <algorithm>

namespace weir::api {

MessageContent MessageContent::read(JsonValue content) {
  MessageContent out;
  std::string_view text;
  if (content.get(text) == simdjson::SUCCESS) return MessageContent(std::string(text));
  JsonArray parts;
  if (content.get(parts) != simdjson::SUCCESS) return out;
  for (const JsonValue part : parts) {
    if (part["text"].get(text) == simdjson::SUCCESS)
      out.parts_.emplace_back(std::string(text));
    else
      out.add_picture();
  }
  return out;
}

void MessageContent::add_text(std::string_view text, std::string_view between) {
  if (parts_.empty() || !parts_.back())
    parts_.emplace_back(std::string(text));
  else
    parts_.back()->append(between).append(text);
}

void MessageContent::add_line(std::string_view text) {
  if (text.empty()) return;
  const bool begins = !parts_.empty() && parts_.back() && parts_.back()->empty();
  add_text(text, begins ? "" : "\n");
}

void MessageContent::append(const MessageContent& more, std::string_view between) {
  for (const Part& part : more.parts_) {
    if (!part) {
      add_picture();
    } else if (!part->empty()) {
      const bool begins = parts_.empty() || (parts_.back() && parts_.back()->empty());
      add_text(*part, begins ? "" : between);
    }
  }
}

void MessageContent::prefix(std::string_view text) {
  if (!parts_.empty() && parts_.front())
    parts_.front()->insert(0, text);
  else
    parts_.insert(parts_.begin(), std::string(text));
}

bool MessageContent::empty() const {
  return std::ranges::all_of(parts_, [](const Part& part) { return part && part->empty(); });
}

size_t MessageContent::pictures() const {
  return static_cast<size_t>(
      std::ranges::count_if(parts_, [](const Part& part) { return !part.has_value(); }));
}

std::string MessageContent::text_with(std::string_view mark) const {
  std::string text;
  bool first = true;
  for (const Part& part : parts_) {
    if (!part && mark.empty()) continue;
    if (!first) text += '\n';
    text += part ? std::string_view(*part) : mark;
    first = false;
  }
  return text;
}

size_t MessageContent::drop_pictures() {
  const size_t dropped = pictures();
  if (dropped > 0) *this = MessageContent(text());
  return dropped;
}

void MessageContent::write(JsonWriter& json) const {
  if (pictures() == 0)
    json.value(std::string_view(parts_.empty() ? std::string_view() : *parts_.front()));
  else
    write_parts(json);
}

void MessageContent::write_parts(JsonWriter& json) const {
  json.begin_array();
  for (const Part& part : parts_) {
    json.begin_object().field("type", part ? "text" : "image");
    if (part) json.field("text", std::string_view(*part));
    json.end_object();
  }
  json.end_array();
}

}  // namespace weir::api
