// Room in the engine's queue. One caller may fill it, but not keep the others out: where it is full
// and another caller comes that would have less, the caller with the most choices in it loses the
// answers that it asked for last and that are not computed yet.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace weir::api {

// An answer whose choices are in the queue, or about to be.
struct QueuedAnswer {
  uint64_t caller = 0;
  int32_t choices = 0;
  int32_t begun = 0;   // Of those, the ones that the engine has begun to compute.
  bool fixed = false;  // Not to be ended.
};

// Which answers are to be ended, by index, so that `missing` more choices fit for a caller that
// asks for `choices`. `answers` are in the order of their arrival. Nothing: there is no room to be
// had.
std::optional<std::vector<size_t>> make_room(std::span<const QueuedAnswer> answers, int32_t missing,
                                             uint64_t caller, int32_t choices);

// What the caller of an answer that is ended for it is told.
Error pushed_out(int32_t queue_max);

}  // namespace weir::api
