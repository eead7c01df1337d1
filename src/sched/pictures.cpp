#include "sched/pictures.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/trace.h"

namespace weir::sched {

namespace {

using Entry = ImageCache::Entry;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Of its pictures some have rows that are still to be planned.
bool needs_some(const Sequence* seq) {
  const std::vector<Picture>& pictures = seq->media->pictures;
  return seq->state == Sequence::State::kRunning && !pictures.empty() &&
         pictures.back().end() > seq->computed;
}

}  // namespace

Pictures::Pictures(exec::Encoder& encoder, int32_t hidden_size, int64_t cache_bytes,
                   EngineStats& stats)
    : encoder_(encoder),
      hidden_size_(hidden_size),
      levels_(encoder.levels()),
      stats_(stats),
      cache_(cache_bytes, int64_t{hidden_size} * (1 + levels_)) {
  encoding_.reserve(kTogetherMax);
  tasks_.reserve(kTogetherMax);
}

bool Pictures::lacks(const Sequence* seq, size_t index) {
  return seq->media->pictures[index].end() > seq->computed &&
         (seq->pictures.empty() || seq->pictures[index] == nullptr);
}

void Pictures::look(std::span<Sequence* const> running) {
  for (Sequence* seq : running) {
    if (!seq->media || !needs_some(seq) || pin(seq)) continue;
    // It has given way, and begins again before it has let go what it had: that would be some of what
    // it needs.
    if (seq->pictures_plan <= plan_done_) let_go(seq);
    return;  // None passes it.
  }
}

// What it lacks, all at once; false: there is no room.
bool Pictures::pin(Sequence* seq) {
  const std::vector<Picture>& pictures = seq->media->pictures;
  wanted_.clear();
  for (size_t i = 0; i < pictures.size(); ++i)
    if (lacks(seq, i)) wanted_.push_back(&pictures[i]);
  if (wanted_.empty()) return true;
  found_.assign(wanted_.size(), nullptr);
  int32_t hits = 0;
  if (!cache_.pin(wanted_, found_, hits)) return false;
  stats_.image_hits.add(static_cast<uint64_t>(hits));
  if (seq->pictures.empty()) {
    seq->pictures.assign(pictures.size(), nullptr);
    holders_.push_back(seq);
  }
  for (size_t i = 0; i < wanted_.size(); ++i)
    seq->pictures[static_cast<size_t>(wanted_[i] - pictures.data())] = found_[i];
  stats_.image_bytes.set(static_cast<double>(cache_.bytes()));
  return true;
}

int32_t Pictures::ready_until(const Sequence* seq) {
  const std::vector<Picture>& pictures = seq->media->pictures;
  for (size_t i = 0; i < pictures.size(); ++i) {
    if (pictures[i].end() <= seq->computed) continue;
    if (lacks(seq, i) || seq->pictures[i]->state != Entry::State::kReady) return pictures[i].first;
  }
  return std::numeric_limits<int32_t>::max();
}

model::VectorRows Pictures::rows(const Sequence* seq, size_t index) const {
  const Entry* const entry = seq->pictures[index];
  CHECK(entry != nullptr && entry->state == Entry::State::kReady);
  return {.rows = entry->rows,
          .vectors = entry->features.get(),
          .levels = levels_,
          .level_stride = int64_t{entry->rows} * hidden_size_};
}

void Pictures::settle(uint64_t plan_done) {
  plan_done_ = plan_done;
  for (size_t i = holders_.size(); i-- > 0;) {
    Sequence* const seq = holders_[i];
    if (!needs_some(seq) && !seq->in_slab && seq->pictures_plan <= plan_done) let_go(seq);
  }
}

void Pictures::let_go(Sequence* seq) {
  if (seq->pictures.empty()) return;
  for (Entry* entry : seq->pictures)
    if (entry != nullptr) cache_.unpin(entry);
  seq->pictures.clear();
  CHECK(std::erase(holders_, seq) == 1);
  stats_.image_bytes.set(static_cast<double>(cache_.bytes()));
}

bool Pictures::busy() {
  Entry* next = nullptr;
  return !encoding_.empty() || cache_.waiting({&next, 1}) > 0;
}

Result<void> Pictures::begin() {
  encoding_.resize(kTogetherMax);
  encoding_.resize(cache_.waiting(encoding_));
  tasks_.clear();
  for (const Entry* entry : encoding_)
    tasks_.push_back({.plan = &entry->input->plan,
                      .pixels = &entry->input->pixels,
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

// Those that wait for the picture that is next. It goes with the last of them.
Pictures::Failed Pictures::failed(const std::string& why) {
  Failed failed{.sequences = {}, .why = why};
  Entry* next = nullptr;
  CHECK(cache_.waiting({&next, 1}) == 1);
  for (Sequence* seq : holders_)
    if (std::ranges::find(seq->pictures, next) != seq->pictures.end())
      failed.sequences.push_back(seq);
  return failed;
}

void Pictures::end() {
  for (Entry* entry : encoding_) {
    entry->state = Entry::State::kReady;
    entry->input.reset();
  }
  stats_.image_encoded.add(encoding_.size());
  encoding_.clear();
}

std::optional<Pictures::Failed> Pictures::advance(double seconds_max) {
  const trace::Scope scope(trace::Kind::kWhole, "encode");
  const Clock::time_point start = Clock::now();
  double taken = 0;
  for (int64_t work = pace_.next_unit(seconds_max, seconds_max); work > 0 && busy();) {
    if (encoding_.empty())
      if (const Result<void> begun = begin(); !begun) return failed(begun.error().message);
    const int64_t before = encoder_.work_done();
    if (encoder_.advance(work)) end();
    const double now = seconds_since(start);
    pace_.learn(encoder_.work_done() - before, now - taken);
    taken = now;
    work = pace_.next_unit(seconds_max, seconds_max - taken);
  }
  stats_.image_seconds.set(stats_.image_seconds.value() + taken);
  return std::nullopt;
}

void Pictures::check() const {
  cache_.check();
  for (const Sequence* seq : holders_)
    CHECK(seq->media && seq->pictures.size() == seq->media->pictures.size());
}

}  // namespace weir::sched
