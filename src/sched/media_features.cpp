#include "sched/media_features.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/seconds.h"
#include "base/trace.h"

namespace weir::sched {

namespace {

using Entry = FeatureCache::Entry;

// Of its media some have rows that are still to be planned.
bool needs_some(const Sequence* seq) {
  const std::vector<Medium>& media = seq->media->items;
  return seq->state == Sequence::State::kRunning && !media.empty() &&
         media.back().end() > seq->computed;
}

}  // namespace

MediaFeatures::MediaFeatures(exec::Encoder& encoder, int32_t hidden_size, int64_t cache_bytes,
                             EngineStats& stats)
    : encoder_(encoder),
      hidden_size_(hidden_size),
      levels_(encoder.levels()),
      stats_(stats),
      cache_(cache_bytes, int64_t{hidden_size} * (1 + levels_)) {
  encoding_.reserve(kTogetherMax);
  tasks_.reserve(kTogetherMax);
}

bool MediaFeatures::lacks(const Sequence* seq, size_t index) {
  return seq->media->items[index].end() > seq->computed &&
         (seq->features.empty() || seq->features[index] == nullptr);
}

void MediaFeatures::look(std::span<Sequence* const> running) {
  for (Sequence* seq : running) {
    if (!seq->media || !needs_some(seq) || pin(seq)) continue;
    // It has given way, and begins again before it has let go what it had: that would be some of
    // what it needs.
    if (seq->features_plan <= plan_done_) let_go(seq);
    return;  // None passes it.
  }
}

// What it lacks, all at once; false: there is no room.
bool MediaFeatures::pin(Sequence* seq) {
  const std::vector<Medium>& media = seq->media->items;
  wanted_.clear();
  for (size_t i = 0; i < media.size(); ++i)
    if (lacks(seq, i)) wanted_.push_back(&media[i]);
  if (wanted_.empty()) return true;
  found_.assign(wanted_.size(), nullptr);
  if (!cache_.pin(wanted_, found_)) return false;
  for (size_t i = 0; i < wanted_.size(); ++i)
    if (found_[i]->state == Entry::State::kReady)
      (wanted_[i]->is_sound() ? stats_.audio_hits : stats_.image_hits).add(1);
  if (seq->features.empty()) {
    seq->features.assign(media.size(), nullptr);
    holders_.push_back(seq);
  }
  for (size_t i = 0; i < wanted_.size(); ++i)
    seq->features[static_cast<size_t>(wanted_[i] - media.data())] = found_[i];
  stats_.image_bytes.set(static_cast<double>(cache_.bytes()));
  return true;
}

int32_t MediaFeatures::ready_until(const Sequence* seq) {
  const std::vector<Medium>& media = seq->media->items;
  for (size_t i = 0; i < media.size(); ++i) {
    if (media[i].end() <= seq->computed) continue;
    if (lacks(seq, i) || seq->features[i]->state != Entry::State::kReady) return media[i].first;
  }
  return std::numeric_limits<int32_t>::max();
}

model::VectorRows MediaFeatures::rows(const Sequence* seq, size_t index) const {
  const Entry* const entry = seq->features[index];
  CHECK(entry != nullptr && entry->state == Entry::State::kReady);
  return {.rows = entry->rows,
          .vectors = entry->features.get(),
          .levels = levels_,
          .level_stride = int64_t{entry->rows} * hidden_size_};
}

void MediaFeatures::settle(uint64_t plan_done) {
  plan_done_ = plan_done;
  for (size_t i = holders_.size(); i-- > 0;) {
    Sequence* const seq = holders_[i];
    if (!needs_some(seq) && !seq->in_slab && seq->features_plan <= plan_done) let_go(seq);
  }
}

void MediaFeatures::let_go(Sequence* seq) {
  if (seq->features.empty()) return;
  for (Entry* entry : seq->features)
    if (entry != nullptr) cache_.unpin(entry);
  seq->features.clear();
  CHECK(std::erase(holders_, seq) == 1);
  stats_.image_bytes.set(static_cast<double>(cache_.bytes()));
}

bool MediaFeatures::busy() {
  Entry* next = nullptr;
  return !encoding_.empty() || cache_.waiting({&next, 1}) > 0;
}

Result<void> MediaFeatures::begin() {
  encoding_.resize(kTogetherMax);
  encoding_.resize(cache_.waiting(encoding_));
  tasks_.clear();
  for (const Entry* entry : encoding_)
    tasks_.push_back({.pixels = entry->input.picture ? &entry->input.picture->pixels : nullptr,
                      .sound = entry->input.sound.get(),
                      .features = {entry->features.get(), entry->count},
                      .rows = entry->rows});
  Result<int32_t> taken = encoder_.begin(tasks_);
  if (!taken) taken = encoder_.begin(std::span(tasks_).first(1));  // It may be another's fault.
  CHECK(!taken || (*taken > 0 && *taken <= std::ssize(encoding_)));
  encoding_.resize(static_cast<size_t>(taken.value_or(0)));
  for (Entry* entry : encoding_) entry->state = Entry::State::kEncoding;
  if (!taken) return tl::unexpected(taken.error());
  return {};
}

// Those that wait for the medium that is next. It goes with the last of them.
MediaFeatures::Failed MediaFeatures::failed(const std::string& why) {
  Failed failed{.sequences = {}, .why = why};
  Entry* next = nullptr;
  CHECK(cache_.waiting({&next, 1}) == 1);
  for (Sequence* seq : holders_)
    if (std::ranges::find(seq->features, next) != seq->features.end())
      failed.sequences.push_back(seq);
  return failed;
}

void MediaFeatures::end() {
  for (Entry* entry : encoding_) {
    (entry->input.sound ? stats_.audio_encoded : stats_.image_encoded).add(1);
    entry->state = Entry::State::kReady;
    entry->input.reset();
  }
  encoding_.clear();
}

void MediaFeatures::count(double seconds, bool sounds) {
  auto& figure = sounds ? stats_.audio_seconds : stats_.image_seconds;
  figure.set(figure.value() + seconds);
}

std::optional<MediaFeatures::Failed> MediaFeatures::advance(double seconds_max) {
  const trace::Scope scope(trace::Kind::kWhole, "encode");
  const Clock::time_point start = Clock::now();
  double taken = 0;
  for (int64_t work = pace_.next_unit(seconds_max, seconds_max); work > 0 && busy();) {
    if (encoding_.empty())
      if (const Result<void> begun = begin(); !begun) return failed(begun.error().message);
    const bool sounds = encoding_.front()->input.sound != nullptr;
    const int64_t before = encoder_.work_done();
    if (encoder_.advance(work)) end();
    const double seconds = seconds_since(start) - taken;
    count(seconds, sounds);
    pace_.learn(encoder_.work_done() - before, seconds);
    taken += seconds;
    work = pace_.next_unit(seconds_max, seconds_max - taken);
  }
  return std::nullopt;
}

void MediaFeatures::check() const {
  cache_.check();
  for (const Sequence* seq : holders_)
    CHECK(seq->media && seq->features.size() == seq->media->items.size());
}

}  // namespace weir::sched
