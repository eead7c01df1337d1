// MessageContent: what a message holds, texts and pictures in their order. Where each picture comes
// from stands in the request's list of pictures, in the order of all messages.
//
// As JSON, in GenerateRequest::messages, it is a string, or with pictures an array of parts as
// transformers' templates expect them: {"type":"text","text":...} and {"type":"image"}.
//
// Threads: a plain value.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weir::api {

class MessageContent {
 public:
  using Part = std::optional<std::string>;  // A text; none: a picture.

  MessageContent() = default;
  explicit MessageContent(std::string text) { parts_.emplace_back(std::move(text)); }
  // Of JSON as write() has it; of anything else nothing.
  static MessageContent read(JsonValue content);

  // A text after a text is the same text, with `between` before it.
  void add_text(std::string_view text, std::string_view between = "\n");
  // The same of a text that may be nothing: then it adds no line.
  void add_line(std::string_view text);
  void add_picture() { parts_.emplace_back(std::nullopt); }
  // `between`: where a text meets a text, and both are something.
  void append(const MessageContent& more, std::string_view between = "\n");
  // Puts a text before everything else.
  void prefix(std::string_view text);

  std::span<const Part> parts() const { return parts_; }
  bool empty() const;  // Neither a picture nor a text of any length.
  size_t pictures() const;
  std::string text() const { return text_with({}); }
  // One text, with `mark` where pictures are; parts are lines of their own.
  std::string text_with(std::string_view mark) const;
  // Without the pictures, of which it returns how many there were.
  size_t drop_pictures();

  void write(JsonWriter& json) const;
  void write_parts(JsonWriter& json) const;

 private:
  std::vector<Part> parts_;
};

}  // namespace weir::api
