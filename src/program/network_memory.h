// What connections, and requests and answers on their way, may take: the part of the memory plan
// that is needed before the model is known.
#pragma once

#include <cstdint>

#include "net/http.h"
#include "program/memory_limit.h"
#include "program/options.h"

namespace weir {

// Requests on their way in. Without --max-body it shrinks with the memory there is.
struct BodyPlan {
  int64_t largest = 0;    // One body.
  int64_t arriving = 0;   // All bodies being received,
  int64_t small = 0;      // and small ones beside them.
  int64_t preparing = 0;  // All being parsed and tokenised, with what becomes of them.
};

BodyPlan plan_bodies(const NetworkOptions& options, const MemoryLimit& limit);
int32_t plan_connections(const NetworkOptions& options);
int64_t plan_heads(const Options& options, const MemoryLimit& limit);
int64_t plan_answers(const MemoryLimit& limit);
// Images of requests; `several`: whichever models there are, most of which may see none.
int64_t plan_images(const Options& options, const MemoryLimit& limit, bool several);
// All connections that may be open.
int64_t connection_bytes(const NetworkOptions& options);

// These bounds as the server takes them.
net::HttpLimits http_limits(const Options& options, const MemoryLimit& limit);

}  // namespace weir
