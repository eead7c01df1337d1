// Guesses: their making, their worth, and what became of them.
#include "ssd/prefetcher.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace weir::ssd {
namespace {

// Guesses below are never worth a read, however idle the disk is: in replays .1 and .2 leave the
// same stall, but .1 reads half as much again in vain.
constexpr float kChanceMin = 0.2f;
// The same where a mode was asked for by name, which reads whenever the disk is free: half of the
// least precision that published traces give the previous token's choice.
constexpr float kChanceMinForced = 0.1f;
// Of one row; many rows together might make something of more.
constexpr float kChanceIgnored = 0.02f;
// Likelier than not: what is in memory and this likely stays until its layer has run.
constexpr float kLikely = 0.5f;
// What the next layer's router does not name is this much less likely than what was guessed before.
constexpr float kNotNamed = 0.1f;
// A guess in the store's queue is given up when what is known now makes it half as likely as
// would have been worth a read; the other half keeps it from flapping.
constexpr float kGivenUp = 0.5f;
// Trials that a tally's prior counts for, and where a tally fades by half.
constexpr float kPriorTrials = 16;
constexpr float kTrialsMax = 4096;
// Of so many visits of a layer, one settles each distance.
constexpr int32_t kSettledEvery = 4;
// How fast honesty follows: the last hundred or so guesses that were not in memory.
constexpr float kHonestyStep = 0.01f;
constexpr float kHonestyMin = 0.1f;
constexpr float kHonestyMax = 1.5f;

// Of an expert, until its layer has run: popped; named by the next layer's router; among the best
// guesses of a source, and those of the layer that runs are known.
enum Mark : uint8_t { kAsked = 1, kNamed = 2, kGuessed = 4 };
constexpr uint8_t guessed_by(GuessSource source) {
  return static_cast<uint8_t>(kGuessed << static_cast<uint8_t>(source));
}

// Of what a row was routed to last, or of nothing: without the -1 at its end.
std::span<const int16_t> chosen(std::span<const int16_t> experts) {
  return {experts.begin(), std::ranges::find(experts, int16_t{-1})};
}

bool contains(std::span<const int32_t> experts, int32_t expert) {
  return std::find(experts.begin(), experts.end(), expert) != experts.end();
}

float either(float a, float b) { return a + b - a * b; }

}  // namespace

std::string_view name_of(GuessSource source) {
  return source == GuessSource::kPreviousToken ? "previous-token" : "lookahead";
}

Prefetcher::Prefetcher(int32_t layers, int32_t experts, int32_t top_k, int32_t sequences_max,
                       PrefetchMode mode)
    : layers_(layers),
      experts_(experts),
      top_k_(top_k),
      depth_(std::min(kDepth, layers - 1)),
      mode_(mode),
      transitions_(layers, experts),
      sequences_(static_cast<size_t>(sequences_max)),
      ranks_(static_cast<size_t>(std::min(4 * top_k, experts))) {
  CHECK(layers > 0 && experts > 0 && top_k > 0 && top_k <= experts && sequences_max > 0);
  const size_t keys = static_cast<size_t>(layers) * static_cast<size_t>(experts);
  for (Sequence& sequence : sequences_) {
    sequence.last.assign(static_cast<size_t>(layers) * static_cast<size_t>(top_k), -1);
    sequence.levels.assign(keys * static_cast<size_t>(depth_), 0);
    sequence.guessed.assign(static_cast<size_t>(layers * depth_), 0);
    sequence.lookahead.reserve(ranks_.size());
  }
  // Before anything is counted: a share of transitions is taken at its word, and what the last
  // token chose comes again in 4 of 10 cases.
  for (auto& tallies : tallies_)
    for (int32_t level = 0; level < kLevels; ++level)
      for (int32_t again = 0; again < 2; ++again) {
        const float share = static_cast<float>(level) / kLevels;
        tallies[static_cast<size_t>(level + again * kLevels)] = {
            kPriorTrials * std::max(share, again != 0 ? 0.4f : 0.0f), kPriorTrials};
      }
  // The router one layer early: 9 of 10 for its best, half of them at rank top_k.
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const float chance = 0.9f - 0.4f * static_cast<float>(rank) / static_cast<float>(top_k);
    ranks_[rank] = {kPriorTrials * std::max(chance, 0.05f), kPriorTrials};
  }
  honesty_.fill(1);
  chance_.assign(keys, 0);
  marks_.assign(keys, 0);
  issued_.resize(keys);
  candidates_.resize(static_cast<size_t>(layers));
  for (auto& candidates : candidates_) candidates.reserve(static_cast<size_t>(experts));
  stale_.assign(static_cast<size_t>(layers), 0);
  watched_.reserve(kWatchedMax);
  likely_.reserve(static_cast<size_t>(experts * depth_));
  contradicted_.reserve(kWatchedMax);
  shares_.resize(static_cast<size_t>(experts));
  misses_.reserve(keys);
  order_.resize(static_cast<size_t>(experts));
}

std::span<int16_t> Prefetcher::last(Sequence& sequence, int32_t layer) const {
  return std::span(sequence.last)
      .subspan(static_cast<size_t>(layer) * static_cast<size_t>(top_k_),
               static_cast<size_t>(top_k_));
}

std::span<float> Prefetcher::chances(int32_t layer) {
  return std::span(chance_).subspan(index({layer, 0}), static_cast<size_t>(experts_));
}

float Prefetcher::busy_share() const {
  return static_cast<float>(std::popcount(busy_layers_)) / 64.0f;
}

float Prefetcher::least_chance() const {
  return mode_ == PrefetchMode::kAuto ? kChanceMin : kChanceMinForced;
}

// Guesses are read while the disk has nothing on demand, so one that comes true saves its time. One
// that does not costs its price where the disk is busy: worth it where chance > (1 - chance) *
// cost. Of thresholds tried in replays (.6, busy, 1 to 2 times busy in this formula) none was
// better at any residency by more than 2 %.
float Prefetcher::threshold() const {
  if (mode_ != PrefetchMode::kAuto) return least_chance();
  const float cost = PrefetchSwitch::kPriceInVain * busy_share();
  return std::max(least_chance(), cost / (1 + cost));
}

bool Prefetcher::uses(GuessSource source) const {
  switch (mode_) {
    case PrefetchMode::kOff:
      return false;
    case PrefetchMode::kPreviousToken:
      return source == GuessSource::kPreviousToken;
    case PrefetchMode::kLookahead:
      return source == GuessSource::kLookahead;
    case PrefetchMode::kAuto:
      return switches_[static_cast<size_t>(source)].on();
  }
  return false;
}

void Prefetcher::begin_step() {
  if (layer_now_ >= 0) leave_layer(layer_now_);
  layer_now_ = -1;
  misses_.clear();
  ++steps_;
  for (size_t d = 0; d < static_cast<size_t>(depth_); ++d) {
    for (size_t i = 0; i < worth_[d].size(); ++i)
      worth_[d][i] = tallies_[d][i].hits / tallies_[d][i].trials;
    least_[d] = 0;
    while (least_[d] < kLevels && worth_[d][least_[d]] < kChanceIgnored) ++least_[d];
  }
  wants_lookahead_ = uses(GuessSource::kLookahead);
  for (const GuessSource source : {GuessSource::kPreviousToken, GuessSource::kLookahead})
    stats_[static_cast<size_t>(source)].on.set(uses(source) ? 1 : 0);
}

void Prefetcher::forget(int32_t sequence) {
  Sequence& s = sequences_[static_cast<size_t>(sequence)];
  std::fill(s.last.begin(), s.last.end(), int16_t{-1});
  std::ranges::fill(s.guessed, uint8_t{0});
  s.lookahead_layer = -1;
}

// The first row of a layer: what the layers ahead need is guessed anew.
void Prefetcher::enter_layer(int32_t layer) {
  if (layer == layer_now_) return;
  if (layer_now_ >= 0) leave_layer(layer_now_);
  layer_now_ = layer_last_ = layer;
  lookahead_layer_ = -1;
  counted_.fill(false);
  likely_.clear();
  for (int32_t distance = 1; distance <= depth_; ++distance) {
    const int32_t target = ahead(layer, distance);
    std::ranges::fill(chances(target), 0.0f);
    stale_[static_cast<size_t>(target)] = 1;
  }
}

// The layer has run: what was asked for it came true or did not.
void Prefetcher::leave_layer(int32_t layer) {
  count_misses(layer);
  std::erase_if(watched_, [&](const Watched& watched) {
    if (watched.guess.key.layer != layer) return false;
    // Both sides are what was promised, before honesty: it converges to their ratio.
    const size_t source = static_cast<size_t>(watched.guess.source);
    if (watched.issued) switches_[source].settle(watched.came_true);
    float& honesty = honesty_[source];
    const float promised = watched.guess.probability;
    honesty *= 1 + kHonestyStep * ((watched.came_true ? 1.0f : 0.0f) - promised) / promised;
    honesty = std::clamp(honesty, kHonestyMin, kHonestyMax);
    return true;
  });
  std::fill_n(marks_.begin() + static_cast<ptrdiff_t>(index({layer, 0})), experts_, uint8_t{0});
  std::ranges::fill(chances(layer), 0.0f);
  candidates_[static_cast<size_t>(layer)].clear();
  stale_[static_cast<size_t>(layer)] = 0;
}

void Prefetcher::routed(int32_t layer, int32_t sequence, std::span<const int32_t> experts) {
  if (mode_ == PrefetchMode::kOff) return;
  enter_layer(layer);
  Sequence& s = sequences_[static_cast<size_t>(sequence)];
  for (Watched& watched : watched_)
    if (watched.guess.key.layer == layer && contains(experts, watched.guess.key.expert))
      watched.came_true = true;
  settle(s, layer, experts);
  settle_lookahead(s, layer, experts);
  if (mode_ == PrefetchMode::kLookahead) return;
  learn(s, layer, experts);
  for (int32_t distance = 1; distance <= depth_; ++distance) guess(s, layer, distance);
}

void Prefetcher::routed_prompt(int32_t layer, int32_t sequence, std::span<const int32_t> experts) {
  if (mode_ == PrefetchMode::kOff || mode_ == PrefetchMode::kLookahead) return;
  learn(sequences_[static_cast<size_t>(sequence)], layer, experts);
}

// Counts what followed what, then remembers the choice as the sequence's last.
void Prefetcher::learn(Sequence& s, int32_t layer, std::span<const int32_t> experts) {
  CHECK(experts.size() <= static_cast<size_t>(top_k_));
  for (int32_t distance = 1; distance <= transitions_.depth(); ++distance) {
    const int32_t from_layer = (layer - distance + layers_) % layers_;
    const std::span<const int16_t> from = chosen(last(s, from_layer));
    if (!from.empty()) transitions_.count(from_layer, distance, from, experts);
  }
  const std::span<int16_t> now = last(s, layer);
  const auto rest = std::ranges::transform(experts, now.begin(), [](int32_t expert) {
                      return static_cast<int16_t>(expert);
                    }).out;
  std::fill(rest, now.end(), int16_t{-1});
}

// Guesses what the layer `distance` ahead will choose for this sequence.
void Prefetcher::guess(Sequence& s, int32_t layer, int32_t distance) {
  const int32_t target = ahead(layer, distance);
  const std::span<const int16_t> again = chosen(last(s, target));
  std::ranges::fill(shares_, uint16_t{0});
  if (distance <= transitions_.depth())
    transitions_.add_shares(layer, distance, chosen(last(s, layer)), shares_);
  const std::span<uint8_t> level = levels(s, target, distance);
  for (size_t e = 0; e < level.size(); ++e)
    level[e] = static_cast<uint8_t>(std::min(shares_[e] / kShareOfLevel, kLevels - 1));
  for (const int16_t e : again) level[static_cast<size_t>(e)] |= kLevels;
  s.guessed[static_cast<size_t>(target * depth_ + distance - 1)] = 1;
  if (!uses(GuessSource::kPreviousToken)) return;
  const auto& worth = worth_[static_cast<size_t>(distance - 1)];
  const uint8_t least = least_[static_cast<size_t>(distance - 1)];
  const std::span<float> chance = chances(target);
  for (size_t e = 0; e < level.size(); ++e) {
    if (level[e] < least) continue;
    const float p = worth[level[e]];
    chance[e] = either(chance[e], p);
    if (distance == 1 && p >= kLikely && likely_.size() < likely_.capacity())
      likely_.push_back({target, static_cast<int32_t>(e)});
  }
}

std::span<uint8_t> Prefetcher::levels(Sequence& s, int32_t layer, int32_t distance) const {
  const size_t place = static_cast<size_t>(layer * depth_ + distance - 1);
  return std::span(s.levels).subspan(place * static_cast<size_t>(experts_),
                                     static_cast<size_t>(experts_));
}

// Counts how guesses of the previous-token source came out, for one distance in turn.
void Prefetcher::settle(Sequence& s, int32_t layer, std::span<const int32_t> experts) {
  if (depth_ == 0) return;
  // A sample of the visits is enough, and costs a token less.
  const int32_t distance = (layer + steps_) % kSettledEvery + 1;
  if (distance > depth_) return;
  if (s.guessed[static_cast<size_t>(layer * depth_ + distance - 1)] == 0) return;
  const std::span<const uint8_t> level = levels(s, layer, distance);
  auto& tallies = tallies_[static_cast<size_t>(distance - 1)];
  for (const uint8_t l : level) tallies[l].trials += 1;
  for (const int32_t e : experts) tallies[level[static_cast<size_t>(e)]].hits += 1;
  for (Tally& tally : tallies)
    if (tally.trials > kTrialsMax) tally = {tally.hits / 2, tally.trials / 2};
  if (distance != 1) return;
  const auto& worth = worth_[0];
  std::iota(order_.begin(), order_.end(), 0);
  std::nth_element(
      order_.begin(), order_.begin() + top_k_ - 1, order_.end(), [&](int32_t a, int32_t b) {
        return worth[level[static_cast<size_t>(a)]] > worth[level[static_cast<size_t>(b)]];
      });
  count_right(GuessSource::kPreviousToken, layer,
              std::span(order_).first(static_cast<size_t>(top_k_)), experts);
}

void Prefetcher::settle_lookahead(const Sequence& s, int32_t layer,
                                  std::span<const int32_t> experts) {
  if (s.lookahead_layer != layer) return;
  for (size_t rank = 0; rank < s.lookahead.size(); ++rank) {
    Tally& tally = ranks_[rank];
    tally.trials += 1;
    if (contains(experts, s.lookahead[rank])) tally.hits += 1;
    if (tally.trials > kTrialsMax) tally = {tally.hits / 2, tally.trials / 2};
  }
  count_right(
      GuessSource::kLookahead, layer,
      std::span(s.lookahead).first(std::min(s.lookahead.size(), static_cast<size_t>(top_k_))),
      experts);
}

void Prefetcher::count_right(GuessSource source, int32_t layer, std::span<const int32_t> guesses,
                             std::span<const int32_t> experts) {
  SourceStats& stats = stats_[static_cast<size_t>(source)];
  uint64_t right = 0;
  for (const int32_t e : guesses) {
    marks_[index({layer, e})] |= guessed_by(source);
    if (contains(experts, e)) ++right;
  }
  counted_[static_cast<size_t>(source)] = true;
  stats.guesses.add(guesses.size());
  stats.right.add(right);
  stats.routed.add(experts.size());
}

void Prefetcher::missed(ExpertKey key) {
  if (misses_.size() < misses_.capacity()) misses_.push_back(key);
}

// Counts which misses of a layer were among the best guesses of each source.
void Prefetcher::count_misses(int32_t layer) {
  for (const ExpertKey key : misses_) {
    if (key.layer != layer) continue;
    for (size_t source = 0; source < kGuessSources; ++source) {
      if (!counted_[source]) continue;
      stats_[source].misses.add();
      if ((marks_[index(key)] & guessed_by(static_cast<GuessSource>(source))) != 0)
        stats_[source].foreseen.add();
    }
  }
  // Those of the layer that begins may be known already.
  std::erase_if(misses_, [layer](ExpertKey key) { return key.layer == layer; });
}

void Prefetcher::looked_ahead(int32_t layer, int32_t sequence, std::span<const int32_t> experts) {
  if (!wants_lookahead_) return;
  Sequence& s = sequences_[static_cast<size_t>(sequence)];
  const size_t count = std::min(experts.size(), ranks_.size());
  s.lookahead.assign(experts.begin(), experts.begin() + static_cast<ptrdiff_t>(count));
  s.lookahead_layer = layer;
  const std::span<float> chance = chances(layer);
  if (lookahead_layer_ != layer) {
    lookahead_layer_ = layer;
    for (float& p : chance) p *= kNotNamed;
  }
  for (size_t rank = 0; rank < count; ++rank) {
    const int32_t expert = experts[rank];
    const float p = ranks_[rank].hits / ranks_[rank].trials;
    float& known = chance[static_cast<size_t>(expert)];
    known = either(known, p);
    marks_[index({layer, expert})] |= kNamed;
    if (p >= kLikely && likely_.size() < likely_.capacity()) likely_.push_back({layer, expert});
  }
  stale_[static_cast<size_t>(layer)] = 1;
}

// Lists the layer's guesses that are worth a read, best last.
void Prefetcher::collect(int32_t layer) {
  std::vector<Guess>& list = candidates_[static_cast<size_t>(layer)];
  list.clear();
  stale_[static_cast<size_t>(layer)] = 0;
  const float limit = threshold();
  const std::span<const float> chance = chances(layer);
  // Most experts are out of the question before anything is looked up.
  const float least = std::max(least_chance(), limit / kHonestyMax);
  for (int32_t expert = 0; expert < experts_; ++expert) {
    const float known = chance[static_cast<size_t>(expert)];
    if (known < least) continue;
    const uint8_t marks = marks_[index({layer, expert})];
    if ((marks & kAsked) != 0) continue;
    const GuessSource source =
        (marks & kNamed) != 0 ? GuessSource::kLookahead : GuessSource::kPreviousToken;
    const float p = std::min(1.0f, known * honesty_[static_cast<size_t>(source)]);
    if (p >= limit) list.push_back({{layer, expert}, p, source});
  }
  std::ranges::sort(list, {}, &Guess::probability);
}

bool Prefetcher::pop(Guess& out) {
  std::vector<Guess>* best = nullptr;
  if (layer_last_ < 0) return false;
  for (int32_t distance = 1; distance <= depth_; ++distance) {
    const int32_t target = ahead(layer_last_, distance);
    if (stale_[static_cast<size_t>(target)] != 0) collect(target);
    std::vector<Guess>& list = candidates_[static_cast<size_t>(target)];
    if (list.empty()) continue;
    // The nearer layer first among equals: it is known best and needed soonest.
    if (best == nullptr || list.back().probability > best->back().probability) best = &list;
  }
  if (best == nullptr) return false;
  out = best->back();
  best->pop_back();
  marks_[index(out.key)] |= kAsked;
  return true;
}

void Prefetcher::watch(const Guess& guess) {
  if (watched_.size() < kWatchedMax) watched_.push_back({guess});
}

std::span<const ExpertKey> Prefetcher::contradicted() {
  contradicted_.clear();
  const float limit = kGivenUp * threshold();
  for (Watched& watched : watched_) {
    const ExpertKey key = watched.guess.key;
    if (watched.named || watched.came_true || !outstanding(key)) continue;
    const bool wrong = key.layer == layer_now_;
    if (!wrong &&
        chance_[index(key)] * honesty_[static_cast<size_t>(watched.guess.source)] >= limit)
      continue;
    watched.named = true;
    contradicted_.push_back(key);
  }
  return contradicted_;
}

void Prefetcher::issued(const Guess& guess, int64_t bytes) {
  CHECK(bytes > 0 && !outstanding(guess.key));
  issued_[index(guess.key)] = {bytes, guess.source};
  for (Watched& watched : watched_)
    if (watched.guess.key == guess.key) watched.issued = true;
  stats_[static_cast<size_t>(guess.source)].issued_bytes.add(static_cast<uint64_t>(bytes));
}

Prefetcher::Issued Prefetcher::take_issued(ExpertKey key) {
  CHECK(outstanding(key));
  return std::exchange(issued_[index(key)], Issued{});
}

void Prefetcher::used(ExpertKey key, int64_t bytes, bool late) {
  const Issued issue = take_issued(key);
  CHECK(issue.bytes == bytes);
  SourceStats& stats = stats_[static_cast<size_t>(issue.source)];
  stats.used_bytes.add(static_cast<uint64_t>(bytes));
  if (late) stats.late_bytes.add(static_cast<uint64_t>(bytes));
  missed(key);  // It would have been.
}

void Prefetcher::wasted(ExpertKey key, int64_t bytes) {
  const Issued issue = take_issued(key);
  CHECK(issue.bytes == bytes);
  stats_[static_cast<size_t>(issue.source)].wasted_bytes.add(static_cast<uint64_t>(bytes));
}

void Prefetcher::dropped(ExpertKey key) {
  const Issued issue = take_issued(key);
  stats_[static_cast<size_t>(issue.source)].dropped_bytes.add(static_cast<uint64_t>(issue.bytes));
}

void Prefetcher::disk_busy(bool busy_at_issue) {
  busy_layers_ = busy_layers_ << 1 | (busy_at_issue ? 1 : 0);
}

void Prefetcher::step_done(double seconds, double stall_seconds, int32_t tokens) {
  CHECK(seconds >= 0 && stall_seconds >= 0 && tokens >= 0);
  if (mode_ != PrefetchMode::kAuto || tokens == 0) return;
  for (size_t source = 0; source < kGuessSources; ++source)
    switches_[source].step(seconds, tokens, busy_share(), !switches_[1 - source].trying());
}

}  // namespace weir::ssd
