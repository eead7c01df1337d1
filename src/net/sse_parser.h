// SseParser reads a text/event-stream as it arrives: the client's side, for weir-load and tests.
// Strict: what a browser would silently pass over is counted as an error.
//
// Threads: its owner's.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace weir::net {

class SseParser {
 public:
  // `name` is empty unless the event has an `event:` line; `data` has its lines joined with '\n'.
  // The views live for the call.
  using OnEvent = std::function<void(std::string_view name, std::string_view data)>;

  // An event larger than `event_bytes_max` is an error.
  explicit SseParser(OnEvent on_event, size_t event_bytes_max = 1 << 20)
      : on_event_(std::move(on_event)), event_bytes_max_(event_bytes_max) {}

  // False if the stream is malformed, see error(); nothing more is read then.
  bool feed(std::string_view bytes);
  // At the end of the stream: false if it ended within an event.
  bool finish();
  const std::string& error() const { return error_; }

 private:
  bool take_line(std::string_view line);
  bool fail(std::string message);

  OnEvent on_event_;
  const size_t event_bytes_max_;
  std::string line_;  // The beginning of a line.
  bool after_cr_ = false;
  std::string name_, data_;
  bool has_data_ = false;
  std::string error_;
};

}  // namespace weir::net
