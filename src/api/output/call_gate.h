// CallGate: between a reader of calls and the pieces. It lets a call out when it is known to be
// one: at once where a grammar makes it valid, else when it is whole and its arguments are a JSON
// object. Until then it holds the text, which is content if the call fails.
//
// Threads: owned by one parser.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/output/output_parser.h"
#include "api/output/pieces.h"

namespace weir::api::output {

class CallGate {
 public:
  // The most held of a call that is not certain: as long as any answer to speak of, and a bound on
  // what a hostile one makes a stream hold.
  static constexpr size_t kHeldBytesMax = 256 << 10;

  explicit CallGate(const ParserOptions& options) : options_(options) {}

  // The parser's side. Text that a marker, and what stands before it, consist of.
  void open(std::string_view text) { held_ += text; }
  // A byte that the reader is about to see; false if no more can be held.
  bool take(char byte);
  // The reader has refused the last byte.
  void give_back();
  // The end of what is held that `begins` accepts as a beginning, at most `bytes_max` long: it is
  // no longer held. For a marker that has begun within what turns out to be no call.
  template <class Begins>
  std::string take_back(size_t bytes_max, Begins begins) {
    for (size_t bytes = std::min(bytes_max, held_.size()); bytes > 0; --bytes) {
      const std::string_view end = std::string_view(held_).substr(held_.size() - bytes);
      if (!begins(end)) continue;
      const std::string taken(end);
      held_.resize(held_.size() - bytes);
      return taken;
    }
    return {};
  }
  // The calls are over, or what has come since the last one was none: it is content.
  void close(Pieces& out, bool failed);
  bool may_begin() const { return options_.parallel || calls_ == 0; }
  int32_t calls() const { return calls_; }

  // The reader's side. False: this is no call.
  bool begin(std::string_view name, std::string_view id, Pieces& out);
  void arguments(std::string_view json, Pieces& out);
  bool end(Pieces& out);
  const CallableFunction* function(std::string_view name) const;

 private:
  const ParserOptions& options_;
  std::string held_;  // Since the last call.
  std::string name_, id_, arguments_;
  bool begun_ = false;
  bool shown_ = false;  // The call's beginning is out already.
  int32_t calls_ = 0;
};

}  // namespace weir::api::output
