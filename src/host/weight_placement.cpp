#include "host/weight_placement.h"

#include <chrono>
#include <utility>

namespace weir::host {

namespace {

// A stream's tokens come so much later at the most while another model loads.
constexpr auto kSlice = std::chrono::milliseconds(20);

}  // namespace

bool WeightPlacement::take_turn(sched::Actor*& waiting) {
  {
    const std::lock_guard lock(mutex_);
    if (result_) return false;
  }
  if (waiting != nullptr) std::exchange(waiting, nullptr)->publish_turn();
  if (stop_()) {
    end(fail(ErrorCode::kCancelled, "the load was stopped"));
    return false;
  }
  const Result<bool> placed = executor_.place_weights(progress_, Clock::now() + kSlice);
  if (!placed)
    end(tl::unexpected(placed.error()));
  else if (*placed)
    end({});
  return true;
}

void WeightPlacement::end(Result<void> result) {
  const std::lock_guard lock(mutex_);
  if (!result_) result_ = std::move(result);
  ended_.notify_all();
}

Result<void> WeightPlacement::wait() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return result_.has_value(); });
  return *result_;
}

void WeightPlacement::give_up() { end(fail(ErrorCode::kCancelled, "the server is shutting down")); }

}  // namespace weir::host
