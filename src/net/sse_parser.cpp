// SseParser: lines, then fields, then events.
#include "net/sse_parser.h"

#include <algorithm>
#include <utility>

namespace weir::net {

bool SseParser::fail(std::string message) {
  error_ = std::move(message);
  return false;
}

bool SseParser::feed(std::string_view bytes) {
  if (!error_.empty()) return false;
  while (!bytes.empty()) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    if (line_.size() + end + data_.size() > event_bytes_max_)
      return fail("an event is larger than " + std::to_string(event_bytes_max_) + " bytes");
    line_.append(bytes.substr(0, end));
    bytes.remove_prefix(end);
    if (bytes.empty()) break;
    after_cr_ = bytes.front() == '\r';
    bytes.remove_prefix(1);
    if (!take_line(line_)) return false;
    line_.clear();
  }
  return true;
}

bool SseParser::take_line(std::string_view line) {
  if (line.empty()) {
    // A blank line after a comment (a keep-alive) ends nothing.
    if (!has_data_ && !name_.empty()) return fail("the event \"" + name_ + "\" has no data");
    if (has_data_) on_event_(name_, data_);
    name_.clear();
    data_.clear();
    has_data_ = false;
    return true;
  }
  const size_t colon = line.find(':');
  if (colon == 0) return true;  // A comment.
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  } else if (field == "event") {
    name_ = value;
  } else if (field != "id" && field != "retry") {
    return fail("unknown field \"" + std::string(field.substr(0, 40)) + "\"");
  }
  return true;
}

bool SseParser::finish() {
  if (!error_.empty()) return false;
  if (!line_.empty() || has_data_ || !name_.empty())
    return fail("the stream ended within an event");
  return true;
}

}  // namespace weir::net
