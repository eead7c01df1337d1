// CallReader: the calls between a format's markers, byte by byte. One is made where a marker has
// been read; it ends where the calls end, or with the first byte that cannot be part of them.
//
// Threads: owned by one parser.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "api/output/call_gate.h"
#include "api/output/literal_match.h"
#include "api/output/pieces.h"

namespace weir::api::output {

class CallReader {
 public:
  enum class Step : uint8_t {
    kMore,
    kDone,        // The calls are over with this byte,
    kDoneBefore,  // or before it: it is read as what comes after them.
    kFail,        // This byte cannot be: what has come since the last whole call is content.
  };

  virtual ~CallReader() = default;
  virtual Step push(char byte, CallGate& gate, Pieces& out) = 0;
  // The output ends here. False: what has come since the last whole call is content.
  virtual bool finish(CallGate& gate, Pieces& out) = 0;
};

// The marker before a call's name, after white space: text 0 of `match`; text 1 ends the calls. No
// value: the name begins. `calls`: how many have been whole.
inline std::optional<CallReader::Step> begin_call(char byte, LiteralMatch& match, int64_t calls) {
  using Step = CallReader::Step;
  if (match.fresh() && is_space(byte)) return Step::kMore;
  const bool fresh = match.fresh();
  const int found = match.push(byte);
  if (found == LiteralMatch::kMore) return Step::kMore;
  if (found == LiteralMatch::kNone) return fresh && calls > 0 ? Step::kDoneBefore : Step::kFail;
  if (found == 1) return Step::kDone;
  return std::nullopt;
}

using CallReaderPtr = std::unique_ptr<CallReader>;

}  // namespace weir::api::output
