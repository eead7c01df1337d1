// Requests of /v1/chat/completions for the parts, and what their answers hold.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/json.h"
#include "suite/run.h"

namespace weir::suite {

struct Chat {
  std::string message;
  int32_t max_tokens = 256;
  double temperature = 0;
  uint64_t seed = 0;
  std::function<void(JsonWriter&)> more = {};  // Other members.
};
Request chat(const Run& run, const Chat& of);

// Whether the server's model can chat; if not, `name` is skipped with what the server said.
Result<bool> needs_chat(Run& run, const Endpoint& at, const std::string& name);

}  // namespace weir::suite
