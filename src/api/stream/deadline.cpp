#include "api/stream/deadline.h"

#include <string>

namespace weir::api {

namespace {

std::string text(std::chrono::duration<double> limit) {
  return std::to_string(static_cast<int64_t>(limit.count())) + " s";
}

}  // namespace

std::optional<Expiry> check_deadlines(const StreamHost& host, double age_s, double waiting_s) {
  const double queue_s = host.queue_timeout.count(), request_s = host.request_timeout.count();
  if (request_s > 0 && age_s >= request_s) {
    host.stats->request_timeouts.add();
    // To ask again would take as long again.
    return Expiry{Error{ErrorCode::kUnavailable,
                        "The answer took longer than this server allows, " +
                            text(host.request_timeout) + "; ask for fewer tokens.",
                        {},
                        "request_timeout"},
                  {{"x-should-retry", "false"}}};
  }
  if (queue_s > 0 && waiting_s >= queue_s) {
    host.stats->queue_timeouts.add();
    return Expiry{Error{ErrorCode::kOverloaded,
                        "The server is overloaded: the request has waited for " +
                            text(host.queue_timeout) + "; try again later.",
                        {},
                        "queue_timeout"},
                  {}};
  }
  return std::nullopt;
}

}  // namespace weir::api
