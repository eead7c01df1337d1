// MessageContent: what a message holds, texts, pictures and videos in their order. Where each
// picture and each frame of a video comes from stands in the request's list of pictures, in the
// order of all messages.
//
// As JSON, in GenerateRequest::messages, it is a string, or with pictures an array of parts as
// transformers' templates expect them: {"type":"text","text":...}, {"type":"image"} and
// {"type":"video"}.
//
// Threads: a plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weir::api {

class MessageContent {
 public:
  enum class Kind : uint8_t { kText, kPicture, kVideo };
  struct Part {
    Kind kind = Kind::kText;
    std::string text{};

    bool is_text() const { return kind == Kind::kText; }
  };

  MessageContent() = default;
  explicit MessageContent(std::string text) { parts_.push_back({.text = std::move(text)}); }
  // Of JSON as write() has it; of anything else nothing.
  static MessageContent read(JsonValue content);

  // A text after a text is the same text, with `between` before it.
  void add_text(std::string_view text, std::string_view between = "\n");
  // The same of a text that may be nothing: then it adds no line.
  void add_line(std::string_view text);
  void add_picture() { parts_.push_back({.kind = Kind::kPicture}); }
  void add_video() { parts_.push_back({.kind = Kind::kVideo}); }
  // `between`: where a text meets a text, and both are something.
  void append(const MessageContent& more, std::string_view between = "\n");
  // Puts a text before everything else.
  void prefix(std::string_view text);

  std::span<const Part> parts() const { return parts_; }
  bool empty() const;       // Neither a picture nor a text of any length.
  size_t pictures() const;  // And videos.
  std::string text() const { return text_with({}); }
  // One text, with `mark` where pictures are, and nothing where videos are; parts are lines of
  // their own.
  std::string text_with(std::string_view mark) const;
  // Without the pictures and videos, which it returns.
  MessageContent drop_pictures();

  void write(JsonWriter& json) const;
  void write_parts(JsonWriter& json) const;

 private:
  std::vector<Part> parts_;
};

}  // namespace weir::api
