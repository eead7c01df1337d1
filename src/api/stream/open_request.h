// OpenRequest: what pages and the queue are told of an open request; never its text.
//
// Threads: a plain value; open_request() is the loop's.
#pragma once

#include <cstdint>

#include "sched/request.h"

namespace weir::api {

// One choice of an open answer.
struct OpenRequest {
  uint64_t id = 0;
  bool begun = false;  // Else it waits.
  int32_t priority = 0;
  int32_t prompt_tokens = 0;
  int32_t output_tokens = 0;
  int32_t max_tokens = 0;
  double age_s = 0;
  const model::Adapter* adapter = nullptr;  // By which Adapters knows it.
};
OpenRequest open_request(const sched::Request& request, int32_t output_tokens,
                         sched::Clock::time_point now);

}  // namespace weir::api
