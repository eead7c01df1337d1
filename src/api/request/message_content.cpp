#include "api/request/message_content.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace weir::api {

namespace {

constexpr std::string_view kVideoType = "video";

std::string_view type_of(MessageContent::Kind kind) {
  constexpr std::array<std::string_view, 3> kTypes = {"text", "image", kVideoType};
  return kTypes[static_cast<size_t>(kind)];
}

bool is_empty(const MessageContent::Part& part) { return part.is_text() && part.text.empty(); }

}  // namespace

MessageContent MessageContent::read(JsonValue content) {
  MessageContent out;
  std::string_view text;
  if (content.get(text) == simdjson::SUCCESS) return MessageContent(std::string(text));
  JsonArray parts;
  if (content.get(parts) != simdjson::SUCCESS) return out;
  for (const JsonValue part : parts) {
    std::string_view type;
    if (part["text"].get(text) == simdjson::SUCCESS)
      out.parts_.push_back({.text = std::string(text)});
    else if (part["type"].get(type) == simdjson::SUCCESS && type == kVideoType)
      out.add_video();
    else
      out.add_picture();
  }
  return out;
}

void MessageContent::add_text(std::string_view text, std::string_view between) {
  if (parts_.empty() || !parts_.back().is_text())
    parts_.push_back({.text = std::string(text)});
  else
    parts_.back().text.append(between).append(text);
}

void MessageContent::add_line(std::string_view text) {
  if (text.empty()) return;
  const bool begins = !parts_.empty() && is_empty(parts_.back());
  add_text(text, begins ? "" : "\n");
}

void MessageContent::append(const MessageContent& more, std::string_view between) {
  for (const Part& part : more.parts_) {
    if (!part.is_text()) {
      parts_.push_back(part);
    } else if (!part.text.empty()) {
      const bool begins = parts_.empty() || is_empty(parts_.back());
      add_text(part.text, begins ? "" : between);
    }
  }
}

void MessageContent::prefix(std::string_view text) {
  if (!parts_.empty() && parts_.front().is_text())
    parts_.front().text.insert(0, text);
  else
    parts_.insert(parts_.begin(), {.text = std::string(text)});
}

bool MessageContent::empty() const { return std::ranges::all_of(parts_, is_empty); }

size_t MessageContent::pictures() const {
  return static_cast<size_t>(
      std::ranges::count_if(parts_, [](const Part& part) { return !part.is_text(); }));
}

std::string MessageContent::text_with(std::string_view mark) const {
  std::string text;
  bool first = true;
  for (const Part& part : parts_) {
    if (part.kind == Kind::kVideo || (!part.is_text() && mark.empty())) continue;
    if (!first) text += '\n';
    text += part.is_text() ? std::string_view(part.text) : mark;
    first = false;
  }
  return text;
}

MessageContent MessageContent::drop_pictures() {
  MessageContent dropped;
  std::ranges::copy_if(parts_, std::back_inserter(dropped.parts_),
                       [](const Part& part) { return !part.is_text(); });
  if (!dropped.parts_.empty()) *this = MessageContent(text());
  return dropped;
}

void MessageContent::write(JsonWriter& json) const {
  if (pictures() == 0)
    json.value(parts_.empty() ? std::string_view() : std::string_view(parts_.front().text));
  else
    write_parts(json);
}

void MessageContent::write_parts(JsonWriter& json) const {
  json.begin_array();
  for (const Part& part : parts_) {
    json.begin_object().field("type", type_of(part.kind));
    if (part.is_text()) json.field("text", std::string_view(part.text));
    json.end_object();
  }
  json.end_array();
}

}  // namespace weir::api
