// Prompts and requests that are the same in every run.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "suite/client.h"

namespace weir::suite {

// splitmix64: a full-period generator whose state may be any number.
uint64_t next_random(uint64_t& state);
// A number from `low` to `high`, both included.
int32_t pick(uint64_t& state, int32_t low, int32_t high);

// So many plain English words; others for another seed.
std::string words(int32_t count, uint64_t seed);

struct Completion {
  std::string model = {};  // Empty: not said.
  std::string prompt;
  int32_t max_tokens = 16;
  double temperature = 0;
  uint64_t seed = 0;
  bool stream = false;
  // Other members, into the request's object.
  std::function<void(JsonWriter&)> more = {};
};
// Of /v1/completions. Answers do not end before max_tokens.
Request completion(const Completion& of);

// What is the same in every answer to a request: its choices, with all numbers.
Result<std::string> choices_of(const Answer& answer);
// The text of a whole answer, or of all events of a stream.
std::string text_of(const Answer& answer);
// What a stream or an answer says of `usage`: "prompt_tokens", ...; 0: nothing.
int64_t usage_of(const Answer& answer, std::string_view member);
int64_t cached_tokens_of(const Answer& answer);
// Seconds until the first event with text; a whole answer's until its end.
double first_text_of(const Answer& answer);

}  // namespace weir::suite
