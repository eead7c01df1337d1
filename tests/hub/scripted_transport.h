// ScriptedTransport: a hub and its CDN within the test, on a clock that runs only when nothing
// else happens. What it answers is a function of the request; answers come in pieces.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hub/blob_hash.h"
#include "hub/transport.h"

namespace weir::hub {

struct ScriptedAnswer {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  size_t cut_after = SIZE_MAX;  // Bytes of the body, then the connection breaks.
  Ending ending = Ending::kWhole;
};

class ScriptedTransport final : public Transport {
 public:
  using Script = std::function<ScriptedAnswer(const Request& request)>;

  explicit ScriptedTransport(Script script) : script_(std::move(script)) {}

  Id start(const Request& request, Receiver& receiver) override {
    requests.push_back(request);
    open_[++last_] = {&receiver, script_(request), 0, false};
    return last_;
  }
  void cancel(Id id) override { open_.erase(id); }

  // One piece of each answer.
  void run(std::chrono::milliseconds time) override {
    if (open_.empty()) now_ += std::max(time, std::chrono::milliseconds(1));
    std::vector<Id> ids;
    for (const auto& [id, answer] : open_) ids.push_back(id);
    for (const Id id : ids) step(id);
    now_ += std::chrono::milliseconds(1);
  }
  std::chrono::steady_clock::time_point now() const override { return now_; }

  // With a token, to another address than the endpoint's.
  bool leaked(const std::string& endpoint) const {
    return std::ranges::any_of(requests, [&](const Request& request) {
      return !request.token.empty() && !request.url.starts_with(endpoint + "/");
    });
  }

  std::vector<Request> requests;
  size_t piece_bytes = 64 << 10;

 private:
  struct Open {
    Receiver* receiver = nullptr;
    ScriptedAnswer answer;
    size_t sent = 0;
    bool head_told = false;
  };

  void step(Id id) {
    Open& open = open_.at(id);
    const ScriptedAnswer& answer = open.answer;
    if (answer.ending != Ending::kWhole && answer.status == 0) return end(id, answer.ending);
    if (!std::exchange(open.head_told, true) &&
        !open.receiver->on_head({answer.status, answer.headers})) {
      open_.erase(id);
      return;
    }
    const size_t most = std::min(answer.body.size(), answer.cut_after);
    const size_t count = std::min(piece_bytes, most - open.sent);
    if (count > 0) {
      const std::string piece = answer.body.substr(open.sent, count);
      open.sent += count;
      if (!open.receiver->on_data(piece)) {
        open_.erase(id);
        return;
      }
    }
    if (open.sent == most) end(id, most < answer.body.size() ? Ending::kBroken : Ending::kWhole);
  }
  void end(Id id, Ending ending) {
    Receiver* receiver = open_.at(id).receiver;
    open_.erase(id);
    receiver->on_end(ending, ending == Ending::kWhole ? "" : "the connection broke");
  }

  Script script_;
  std::map<Id, Open> open_;
  Id last_ = 0;
  std::chrono::steady_clock::time_point now_{};
};

// The name that bytes have as a large or a small file.
inline std::string blob_of(const std::string& bytes, bool large) {
  BlobHash hash(std::string(large ? 64 : 40, '0'), static_cast<int64_t>(bytes.size()));
  hash.add(bytes);
  return hash.finish();
}

}  // namespace weir::hub
