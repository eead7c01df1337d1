// MediaDesk: fetches what requests name by web addresses. The program has one: the API knows no HTTP
// client. Which hosts may be asked is the desk's to say.
//
// Threads: the loop's; a desk calls back there, `admit` on a thread of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace weir::api {

class MediaDesk {
 public:
  struct Order {
    std::vector<std::string> addresses{};
    size_t bytes_max = 0;  // Of one file.
    // Asked for memory before that is taken; its error ends the order.
    std::function<Result<void>(size_t bytes)> admit{};
    // The files, in the order of their addresses, each or why it is not there. Called once, unless
    // the order is cancelled.
    std::function<void(std::vector<Result<std::string>> files)> done{};
  };

  virtual ~MediaDesk() = default;

  // Returns a number for cancel(). `done` is not called before it has returned.
  virtual uint64_t fetch(Order order) = 0;
  // Nothing is called any more. An order that has ended is left alone.
  virtual void cancel(uint64_t number) = 0;
};

}  // namespace weir::api
