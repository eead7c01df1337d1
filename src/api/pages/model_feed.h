// ModelFeed: the open answers of /models/sse: clients that hear what becomes of the models. One
// that does not read is dropped.
//
// Threads: the loop's.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "api/exchange/exchange.h"
#include "sched/request.h"

namespace weir::api::pages {

class ModelFeed {
 public:
  // `unread_max`: bytes that a client may leave unread.
  explicit ModelFeed(size_t unread_max) : unread_max_(unread_max) {}

  // Begins with `states`. Too many listen: the answer is an error.
  void add(const ExchangePtr& exchange, std::string_view states);
  void tell(std::string_view event);
  // Now and then: that the connection lives is said after a long silence.
  void keep_alive(sched::Clock::time_point now);
  // The feed is over.
  void end();

 private:
  void forget(const Exchange& exchange);

  const size_t unread_max_;
  std::vector<ExchangePtr> listeners_;
  sched::Clock::time_point told_{};
};

}  // namespace weir::api::pages
