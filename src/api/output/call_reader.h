// CallReader: the calls between a format's markers, byte by byte. One is made where a marker has
// been read; it ends where the calls end, or with the first byte that cannot be part of them.
//
// Threads: owned by one parser.
#pragma once

#include <cstdint>
#include <memory>

#include "api/output/call_gate.h"
#include "api/output/pieces.h"

namespace weir::api::output {

class CallReader {
 public:
  enum class Step : uint8_t {
    kMore,
    kDone,        // The calls are over with this byte,
    kDoneBefore,  // or before it: it is read as what comes behind them.
    kFail,        // This byte cannot be: what has come since the last whole call is content.
  };

  virtual ~CallReader() = default;
  virtual Step push(char byte, CallGate& gate, Pieces& out) = 0;
  // The output ends here. False: what has come since the last whole call is content.
  virtual bool finish(CallGate& gate, Pieces& out) = 0;
};

using CallReaderPtr = std::unique_ptr<CallReader>;

}  // namespace weir::api::output
