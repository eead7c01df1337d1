// From a parsed request to engine requests: prompts, limits, sampling, the grammar of the output.
// Everything here is slow work for a pool thread and reads only what never changes.
//
// Threads: any, at once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/answer_options.h"
#include "api/answer/protocol_traits.h"
#include "api/memory/memory_lease.h"
#include "api/media/media_set.h"
#include "api/request/generate_request.h"
#include "api/serving/adapters.h"
#include "api/serving/serving_context.h"
#include "grammar/interrupt.h"
#include "sched/request.h"

namespace weir::api {

// An engine request and the memory it may hold.
struct OwnedRequest {
  MemoryLease lease;  // Declared first: given back after the request is freed.
  std::unique_ptr<sched::Request> request;
};

struct PreparedAnswer {
  AnswerOptions options;
  std::string model;                   // As answers call it: its id, or its adapter's name.
  MemoryLease whole;                   // For what is collected of an answer that is not streamed.
  std::vector<OwnedRequest> requests;  // By choice index.
};

struct PrepareInput {
  std::string_view body;
  std::string content_type{};  // Of the body, as the request says it.
  sched::Clock::time_point arrived{};
  int64_t now = 0;           // Seconds since the epoch; templates ask for the date.
  std::string answer_id;     // Random digits.
  uint64_t random_seed = 0;  // For a request that names none.
  int32_t tokens_max = 0;    // Prompt and output of one sequence.
  // The earliest that the client may ask for, and what it gets without asking.
  int32_t priority_min = 0;
  uint64_t caller = 0;  // Exchange::caller().
  // Ends the compilation of its grammar with kCancelled: the client has left, or it takes longer
  // than it may on this thread. May be null.
  std::shared_ptr<grammar::Interrupt> interrupt{};
  // Of the key that the request came with, where prompts are kept on disk: those of different keys
  // share nothing then, or how soon an answer comes would tell for days what others have asked.
  std::string key_name{};
  // Of images and sounds; not null where there may be some.
  MemoryBudget* media_budget = nullptr;
  // Of this request, where it may have media: it is prepared again once they are read. Null: it
  // may have none.
  MediaSetPtr media{};
};

// What every protocol's Protocol::prepare() ends in.
Result<PreparedAnswer> prepare_request(const ServingContext& serving, MemoryBudget& budget,
                                       const PrepareInput& in, const ProtocolTraits& protocol,
                                       const GenerateRequest& request);

}  // namespace weir::api
