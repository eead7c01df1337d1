// JsonScanner: finds where a JSON value ends, byte by byte, and the first byte with which it is
// none. Numbers and words are not looked at closely: a caller that needs to be sure parses the
// value once it is whole.
//
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <string>

namespace weir::api::output {

class JsonScanner {
 public:
  enum class Step : uint8_t {
    kMore,
    kDone,        // The value ends with this byte,
    kDoneBefore,  // or before it (numbers and words show no end of their own).
    kFail,
  };

  Step push(char byte);
  void reset() { *this = JsonScanner(); }

 private:
  enum class State : uint8_t {
    kValue,
    kFirstItem,  // A value or ']'.
    kFirstKey,   // A key or '}'.
    kKey,
    kColon,
    kAfterValue,
    kString,
    kEscape,
    kWord,
  };

  Step begin_value(char byte);
  Step end_value();
  Step after_value(char byte);

  State state_ = State::kValue;
  bool key_ = false;  // The string is a key.
  std::string open_;  // Brackets.
};

}  // namespace weir::api::output
