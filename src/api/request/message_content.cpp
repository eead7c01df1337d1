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
    std::string_view type;
    if (part["text"].get(text) == simdjson::SUCCESS)
      out.parts_.emplace_back(std::string(text));
    else if (part["type"].get(type) == simdjson::SUCCESS && type == "audio")
      out.add_medium(Medium::kSound);
    else
      out.add_medium(Medium::kPicture);
  }
  return out;
}

std::string* MessageContent::last_text() {
  return parts_.empty() ? nullptr : std::get_if<std::string>(&parts_.back());
}

void MessageContent::add_text(std::string_view text, std::string_view between) {
  if (std::string* const last = last_text())
    last->append(between).append(text);
  else
    parts_.emplace_back(std::string(text));
}

void MessageContent::add_line(std::string_view text) {
  if (text.empty()) return;
  const std::string* const last = last_text();
  add_text(text, last != nullptr && last->empty() ? "" : "\n");
}

void MessageContent::append(const MessageContent& more, std::string_view between) {
  for (const Part& part : more.parts_) {
    if (!is_text(part)) {
      parts_.push_back(part);
    } else if (const std::string& text = std::get<std::string>(part); !text.empty()) {
      const std::string* const last = last_text();
      const bool begins = parts_.empty() || (last != nullptr && last->empty());
      add_text(text, begins ? "" : between);
    }
  }
}

void MessageContent::prefix(std::string_view text) {
  if (!parts_.empty() && is_text(parts_.front()))
    std::get<std::string>(parts_.front()).insert(0, text);
  else
    parts_.insert(parts_.begin(), std::string(text));
}

bool MessageContent::empty() const {
  return std::ranges::all_of(parts_, [](const Part& part) {
    return is_text(part) && std::get<std::string>(part).empty();
  });
}

size_t MessageContent::media() const {
  return static_cast<size_t>(
      std::ranges::count_if(parts_, [](const Part& part) { return !is_text(part); }));
}

bool MessageContent::has(Medium medium) const {
  return std::ranges::find(parts_, Part(medium)) != parts_.end();
}

std::string MessageContent::text_with(const MediaMarks& marks) const {
  std::string text;
  bool first = true;
  for (const Part& part : parts_) {
    const std::string_view written = is_text(part) ? std::string_view(std::get<std::string>(part))
                                                   : marks.of(std::get<Medium>(part));
    if (!is_text(part) && written.empty()) continue;
    if (!first) text += '\n';
    text += written;
    first = false;
  }
  return text;
}

size_t MessageContent::drop(Medium medium) {
  MessageContent kept;
  for (const Part& part : parts_) {
    if (part == Part(medium)) continue;
    if (is_text(part))
      kept.add_text(std::get<std::string>(part));
    else
      kept.parts_.push_back(part);
  }
  const size_t dropped = media() - kept.media();
  if (dropped > 0) *this = std::move(kept);
  return dropped;
}

void MessageContent::write(JsonWriter& json) const {
  if (media() == 0)
    json.value(parts_.empty() ? std::string_view()
                              : std::string_view(std::get<std::string>(parts_.front())));
  else
    write_parts(json);
}

void MessageContent::write_parts(JsonWriter& json) const {
  json.begin_array();
  for (const Part& part : parts_) {
    json.begin_object();
    if (is_text(part))
      json.field("type", "text").field("text", std::string_view(std::get<std::string>(part)));
    else
      json.field("type", std::get<Medium>(part) == Medium::kSound ? "audio" : "image");
    json.end_object();
  }
  json.end_array();
}

}  // namespace weir::api
