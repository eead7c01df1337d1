#include "api/access/queue_room.h"

#include <algorithm>
#include <unordered_map>

namespace weir::api {

namespace {

// Of two callers' answers, that of the one that has more; of one caller's, one that has not begun;
// else the later one.
bool goes_rather(const QueuedAnswer& a, int32_t held_a, const QueuedAnswer& b, int32_t held_b) {
  if (held_a != held_b) return held_a > held_b;
  if ((a.begun == 0) != (b.begun == 0)) return a.begun == 0;
  return true;
}

}  // namespace

std::optional<std::vector<size_t>> make_room(std::span<const QueuedAnswer> answers, int32_t missing,
                                             uint64_t caller, int32_t choices) {
  std::unordered_map<uint64_t, int32_t> held;
  for (const QueuedAnswer& answer : answers) held[answer.caller] += answer.choices;
  const int32_t mine = held[caller] + choices;
  std::vector<size_t> ended;
  while (missing > 0) {
    std::optional<size_t> next;
    for (size_t i = 0; i < answers.size(); ++i) {
      const QueuedAnswer& answer = answers[i];
      // One that is computed as a whole stays: its caller has it from its part of the places.
      if (answer.fixed || answer.caller == caller || answer.begun >= answer.choices) continue;
      if (held[answer.caller] <= mine || std::ranges::find(ended, i) != ended.end()) continue;
      if (!next ||
          goes_rather(answer, held[answer.caller], answers[*next], held[answers[*next].caller]))
        next = i;
    }
    if (!next) return std::nullopt;
    ended.push_back(*next);
    held[answers[*next].caller] -= answers[*next].choices;
    missing -= answers[*next].choices;
  }
  return ended;
}

Error pushed_out(int32_t queue_max) {
  return {ErrorCode::kOverloaded,
          "The queue of " + std::to_string(queue_max) +
              " requests is full, and other callers waited with fewer in it; try again later"};
}

}  // namespace weir::api
