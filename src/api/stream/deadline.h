// How long an answer may wait and take: --queue-timeout and --request-timeout.
//
// Threads: the loop's.
#pragma once

#include <optional>

#include "api/stream/stream.h"
#include "base/result.h"
#include "net/http.h"

namespace weir::api {

// What an answer ends with whose time is over.
struct Expiry {
  Error error;
  net::HttpResponder::Headers headers;
};

// `age_s`: since it arrived; `waiting_s`: the same while the engine has begun nothing of it, else
// 0. Counts those that end.
std::optional<Expiry> check_deadlines(const StreamHost& host, double age_s, double waiting_s);

}  // namespace weir::api
