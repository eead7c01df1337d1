#include "api/stream/open_request.h"

#include <atomic>
#include <chrono>

namespace weir::api {

OpenRequest open_request(const sched::Request& request, int32_t output_tokens,
                         sched::Clock::time_point now) {
  return {.id = request.id,
          .begun = request.begun.load(std::memory_order_acquire),
          .priority = request.priority,
          .prompt_tokens = static_cast<int32_t>(request.prompt.size()),
          .output_tokens = output_tokens,
          .max_tokens = request.max_tokens,
          .age_s = std::chrono::duration<double>(now - request.arrived).count(),
          .adapter = request.adapter.get()};
}

}  // namespace weir::api
