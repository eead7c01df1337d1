// The answers of /v1/responses: a response object, whole or at the end of its events.
//
// Threads: as AnswerShape.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/answer/answer_shape.h"
#include "api/responses/request.h"
#include "api/responses/store.h"

namespace weir::api::responses {

// A function whose calls look otherwise to the client than to the model.
struct RenamedTool {
  std::string name;             // The model's.
  std::string space, own_name;  // The client's.
  bool custom = false;          // Its calls are custom_tool_call items.
};

struct ResponseFacts {
  MemoryLease lease{};  // For the settings and the turn.
  std::string id;       // "resp_..."
  int64_t created = 0;
  bool stream = false;
  bool summary = false;     // Reasoning as summary, else as content of its item.
  std::string settings{};   // Members of the object that repeat the request: "model":...,...
  size_t items_before = 0;  // Numbers of item ids that the input has taken.
  std::vector<RenamedTool> tools{};
  // Where the response is kept, if it is.
  ResponseStore* store = nullptr;
  std::string owner{};
  uint64_t caller = 0;
  std::shared_ptr<ResponseTurn> turn{};
};

std::unique_ptr<AnswerShape> make_responses_shape(ResponseFacts facts);

}  // namespace weir::api::responses
