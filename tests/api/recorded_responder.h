// RecordedResponder: what an HttpResponder was told to answer.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"

namespace weir::api {

class RecordedResponder final : public net::HttpResponder {
 public:
  void respond(int given, const Headers& all, std::string_view text) override {
    ++answers;
    status = given;
    headers = all;
    body = text;
  }
  void start_stream(int, const Headers&) override {}
  void write(std::string_view) override {}
  void write(net::StreamBuffer&) override {}
  void end_stream() override {}
  size_t queued_bytes() const override { return 0; }
  void on_drained(std::function<void()>) override {}
  void on_closed(std::function<void()>) override {}
  bool closed() const override { return gone; }
  void prefetch() const override {}

  std::vector<std::string> values(std::string_view name) const {
    std::vector<std::string> found;
    for (const auto& [key, value] : headers)
      if (key == name) found.push_back(value);
    return found;
  }

  int answers = 0;
  int status = 0;
  Headers headers;
  std::string body;
  bool gone = false;  // The client.
};

}  // namespace weir::api
