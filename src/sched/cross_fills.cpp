#include "sched/cross_fills.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/seconds.h"
#include "base/trace.h"

namespace weir::sched {

CrossFills::CrossFills(exec::Executor& executor, kv::CrossSlots& slots, EngineStats& stats)
    : executor_(executor), facts_(executor.facts()), slots_(slots), stats_(stats) {
  CHECK(executor_.encoder() != nullptr && facts_.cross_rows > 0 && facts_.cross_layers > 0);
  const auto numbers =
      static_cast<size_t>(facts_.cross_rows) * static_cast<size_t>(facts_.spec->hidden_size);
  rows_ = std::make_unique_for_overwrite<float[]>(numbers);
}

// Its slot is still held for it, and is not being filled.
bool CrossFills::waits(const Wanted& wanted) const {
  return wanted.slot != now_.slot && slots_.is_held(wanted.slot) && !slots_.filled(wanted.slot);
}

void CrossFills::look(std::span<Sequence* const> running) {
  wanted_.clear();
  for (const Sequence* seq : running) {
    const Wanted wanted = {.slot = seq->memory.cross(), .sound = seq->heard};
    if (wanted.slot >= 0 && waits(wanted) &&
        std::ranges::find(wanted_, wanted.slot, &Wanted::slot) == wanted_.end())
      wanted_.push_back(wanted);
  }
}

bool CrossFills::busy() const {
  return now_.slot >= 0 ||
         std::ranges::any_of(wanted_, [this](const Wanted& one) { return waits(one); });
}

// The first one that waits.
Result<void> CrossFills::begin() {
  const auto next = std::ranges::find_if(wanted_, [this](const Wanted& one) { return waits(one); });
  CHECK(next != wanted_.end());
  now_ = std::move(*next);
  wanted_.erase(wanted_.begin(), next + 1);
  slots_.hold(now_.slot);
  const exec::EncodeTask task = {
      .sound = now_.sound->features.get(),
      .features = {rows_.get(), static_cast<size_t>(facts_.cross_rows) *
                                    static_cast<size_t>(facts_.spec->hidden_size)},
      .rows = facts_.cross_rows};
  encodes_ = true;
  layer_ = row_ = 0;
  WEIR_TRY(executor_.encoder()->begin(std::span(&task, 1)));
  return {};
}

// True when it was the last one.
bool CrossFills::fill_part() {
  const int32_t count = std::min(facts_.cross_rows - row_, facts_.rows_max);
  executor_.fill({.slot = now_.slot,
                  .layer = layer_,
                  .first = row_,
                  .count = count,
                  .rows = rows_.get() + int64_t{row_} * facts_.spec->hidden_size});
  row_ += count;
  if (row_ < facts_.cross_rows) return false;
  row_ = 0;
  return ++layer_ == facts_.cross_layers;
}

// As much as fits into the seconds that are left of those given, but something.
void CrossFills::encode(double given, double left) {
  const Clock::time_point start = Clock::now();
  exec::Encoder& encoder = *executor_.encoder();
  const int64_t before = encoder.work_done();
  encodes_ = !encoder.advance(std::max<int64_t>(pace_.next_unit(given, left), 1));
  pace_.learn(encoder.work_done() - before, seconds_since(start));
}

std::optional<CrossFills::Failed> CrossFills::advance(double seconds_max) {
  const trace::Scope scope(trace::Kind::kWhole, "hear");
  const Clock::time_point start = Clock::now();
  double taken = 0;
  do {
    if (now_.slot < 0)
      if (const Result<void> begun = begin(); !begun) {
        const int32_t slot = std::exchange(now_, {}).slot;
        slots_.give_back(slot);
        return Failed{.slot = slot, .why = begun.error().message};
      }
    if (encodes_) {
      encode(seconds_max, seconds_max - taken);
    } else if (fill_part()) {
      slots_.set_filled(now_.slot);
      slots_.give_back(std::exchange(now_, {}).slot);
      stats_.audio_encoded.add();
    }
    taken = seconds_since(start);
  } while (pace_.next_unit(seconds_max, seconds_max - taken) > 0 && busy());
  stats_.audio_seconds.set(stats_.audio_seconds.value() + taken);
  return std::nullopt;
}

}  // namespace weir::sched
