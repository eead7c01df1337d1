// LooseJson: a value that is nearly JSON, byte by byte, to JSON: with single quotes or a quote of
// the format's own, bare keys, Python's words and tuples. For formats whose models were taught no
// JSON.
//
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/output/json_scanner.h"

namespace weir::api::output {

class LooseJson {
 public:
  using Step = JsonScanner::Step;

  // `quote` opens and closes strings beside ' and ", without escapes in between.
  explicit LooseJson(std::string_view quote = {}) : quote_(quote) {}

  // Appends what is certain. kDoneBefore: the byte is not part of the value.
  Step push(char byte, std::string& json);
  void reset();

 private:
  enum class State : uint8_t { kValue, kKey, kBareKey, kColon, kQuote, kString, kWord, kAfter };

  Step begin_value(char byte, std::string& json);
  Step begin_key(char byte, std::string& json);
  Step begin_text(char byte, State bare);
  Step quote(char byte);
  Step string(char byte, std::string& json);
  Step end_string(std::string& json);
  void separate(std::string& json);
  Step after(char byte, std::string& json);
  Step close(char byte, std::string& json);
  Step end_value();
  bool at_top() const { return open_.empty(); }

  std::string_view quote_;
  State state_ = State::kValue;
  std::string open_;    // Brackets, as they are to be closed.
  bool key_ = false;    // The string is a key.
  bool first_ = false;  // Nothing in the bracket yet.
  bool comma_ = false;  // The last thing was a comma.
  char delimiter_ = 0;  // Of the string; 0: quote_.
  bool escaped_ = false;
  size_t quoted_ = 0;  // Bytes of quote_ read.
  std::string text_;
};

}  // namespace weir::api::output
