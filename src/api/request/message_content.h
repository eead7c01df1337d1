// MessageContent: what a message holds, texts, pictures and sounds in their order. Where each of the
// media comes from stands in the request's list of media, in the order of all messages.
//
// As JSON, in GenerateRequest::messages, it is a string, or with media an array of parts as
// transformers' templates expect them: {"type":"text","text":...}, {"type":"image"} and
// {"type":"audio"}.
//
// Threads: a plain value.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/request/media_source.h"
#include "base/json.h"

namespace weir::api {

// What a model's templates write where a medium is; empty: it takes none of them.
struct MediaMarks {
  std::string_view image{}, sound{};

  std::string_view of(Medium medium) const { return medium == Medium::kSound ? sound : image; }
};

class MessageContent {
 public:
  using Part = std::variant<std::string, Medium>;

  MessageContent() = default;
  explicit MessageContent(std::string text) { parts_.emplace_back(std::move(text)); }
  // Of JSON as write() has it; of anything else nothing.
  static MessageContent read(JsonValue content);

  // A text after a text is the same text, with `between` before it.
  void add_text(std::string_view text, std::string_view between = "\n");
  // The same of a text that may be nothing: then it adds no line.
  void add_line(std::string_view text);
  void add_medium(Medium medium) { parts_.emplace_back(medium); }
  // `between`: where a text meets a text, and both are something.
  void append(const MessageContent& more, std::string_view between = "\n");
  // Puts a text before everything else.
  void prefix(std::string_view text);

  std::span<const Part> parts() const { return parts_; }
  bool empty() const;  // Neither a medium nor a text of any length.
  size_t media() const;
  bool has(Medium medium) const;
  std::string text() const { return text_with({}); }
  // One text, with marks where media are; parts are lines of their own.
  std::string text_with(const MediaMarks& marks) const;
  // Without the media of this kind, of which it returns how many there were.
  size_t drop(Medium medium);

  void write(JsonWriter& json) const;
  void write_parts(JsonWriter& json) const;

 private:
  static bool is_text(const Part& part) { return std::holds_alternative<std::string>(part); }
  // The last part's, if it is one; else null.
  std::string* last_text();

  std::vector<Part> parts_;
};

}  // namespace weir::api
