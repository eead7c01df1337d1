#include "sched/draft_controller.h"

#include <bit>
#include <cmath>

#include "base/check.h"

namespace weir::sched {

namespace {

// Of a step's time in a running mean: eight steps back weigh a third.
constexpr double kFresh = 1.0 / 8;
// A step that takes longer than this many means was disturbed, and says little of its rows.
constexpr double kDisturbed = 1.25;
// A mean's last step, however long ago, weighs at most so much against the next.
constexpr double kFreshMax = 1.0 / 3;
// Steps of a number of rows before their mean is trusted to be that of plain ones. The first of
// them follow a prompt and are slow: with the fastest of them instead of a mean, simulated engines
// on a busy machine keep 0.994 in their first 500 steps where drafts do not pay, before 0.985.
constexpr int32_t kKnownMin = 6;
// What a row adds to a step of one before anything is known: measured 0.13 to 0.18 for a 135M model
// on AVX-512 beyond four rows, and less before.
constexpr double kRowShare = 0.15;

// Steps with drafts are faster than plain ones by more than chance: those were slow when measured.
constexpr double kFaster = 0.97;

// What counts keep from round to round: a sequence's last thirty, a source's last thousand.
constexpr float kSequenceKept = 0.97f, kSourceKept = 0.999f;
// How many draws what is expected beforehand stands for: a position's is that of the one before it,
// a sequence's that of its source.
constexpr float kPositionWeight = 3, kSequenceWeight = 4;
// No draft is certain but those that are forced.
constexpr float kChanceMax = 0.995f;

// Trials of a sequence without drafts: so many of them, after so many tokens, twice as many after
// each that gave nothing.
constexpr int32_t kTrialDrafts = 2, kTrialAfter = 32, kTrialAfterMax = 256;
// A source that computes keeps up for so many steps before a trial: drafts that follow less text
// are seldom right.
constexpr int64_t kTrialContext = 16;
// It no longer does when so many steps have wanted no draft of it.
constexpr int32_t kUnwantedMax = 4;
// One step in so many tries a draft more than is thought best.
constexpr int64_t kMoreEvery = 16;
// And one in so many a number of drafts of which it is not known what their rows take, if it would
// be better by kFurtherMin with the time of the most rows below it that are known. That is known
// after kTriedMin steps, for kFurtherAgain: a machine may change its speed.
constexpr int64_t kFurtherEvery = 64, kFurtherAgain = 4096;
constexpr double kFurtherMin = 1.05;
constexpr int32_t kTriedMin = 3;
// The ledger forgets: about the last two thousand steps count.
constexpr double kLedgerKept = 0.9995;
// What drafts have gained pays for what they cost later, up to so many plain steps' time: enough
// for a few steps whose drafts are wrong, little beside what they cost where they become wrong for
// good.
constexpr double kCreditSteps = 3;
// So many plain steps must be known for gains against them to count.
constexpr int32_t kCreditKnown = 8;

// What was disturbed counts as little more than the mean so far.
void add_to_mean(double& mean, double seconds) {
  mean = mean == 0 ? seconds : mean + kFresh * (std::min(seconds, kDisturbed * mean) - mean);
}

}  // namespace

size_t RowCost::bucket_of(int32_t rows) {
  if (rows <= kSingle) return static_cast<size_t>(std::max(rows, 1) - 1);
  if (rows <= kTiled) return static_cast<size_t>(kSingle + (rows - 1 - kSingle) / kTile);
  const auto power = static_cast<size_t>(std::bit_width(static_cast<uint32_t>(rows - 1)));
  return std::min(kSingle + kTiles + power - std::bit_width(uint32_t{kTiled}), kBuckets - 1);
}

void RowCost::note(int32_t rows, double seconds, int64_t step) {
  Mean& mean = means_[bucket_of(rows)];
  const auto age = static_cast<double>(step - mean.step);
  mean.step = step;
  if (mean.count++ == 0) {
    mean.rows = rows;
    mean.seconds = seconds;
    return;
  }
  // The first ones, one after another, are slow for what comes before them: the fastest is nearest.
  if (mean.count <= kKnownMin && age == 1 && rows == mean.rows) {
    mean.seconds = std::min(mean.seconds, seconds);
    return;
  }
  // As if each step since had been noted; of the first ones the later count more.
  const double aged = std::max(1 - std::pow(1 - kFresh, age), 2.0 / (mean.count + 1));
  const double weight = std::clamp(aged, kFresh, kFreshMax);
  mean.seconds += weight * (std::min(seconds, kDisturbed * mean.seconds) - mean.seconds);
  mean.rows += weight * (rows - mean.rows);
}

int32_t RowCost::known(int32_t rows) const { return means_[bucket_of(rows)].count; }

double RowCost::seconds(int32_t rows) const {
  const size_t bucket = bucket_of(rows);
  if (bucket < kSingle && means_[bucket].count > 0) return means_[bucket].seconds;
  const Mean *below = nullptr, *above = nullptr;
  for (const Mean& mean : means_) {
    if (mean.count == 0) continue;
    if (mean.rows <= rows)
      below = &mean;
    else if (above == nullptr)
      above = &mean;
  }
  if (below == nullptr && above == nullptr) return 0;
  if (below != nullptr && above != nullptr) {
    // More rows take no less time, whatever was measured.
    const double more = std::max(above->seconds - below->seconds, 0.0);
    return below->seconds + more * (rows - below->rows) / (above->rows - below->rows);
  }
  const Mean& nearest = below != nullptr ? *below : *above;
  const double one = nearest.seconds / (1 + kRowShare * (nearest.rows - 1));
  return std::max(nearest.seconds + one * kRowShare * (rows - nearest.rows), 0.0);
}

double RowCost::seconds_least(int32_t rows) const {
  double least = 0;
  for (const Mean& mean : means_)
    if (mean.count > 0 && mean.rows <= rows) least = std::max(least, mean.seconds);
  return least;
}

bool RowCost::unknown_since(int32_t rows, int64_t step) const {
  const Mean& mean = means_[bucket_of(rows)];
  return mean.count < kTriedMin || mean.step < step;
}

DraftController::DraftController(int32_t sequences_max, int32_t running_max, size_t sources)
    : sources_(sources), sequences_(static_cast<size_t>(sequences_max)) {
  for (SequenceState& seq : sequences_) seq.counts.resize(sources);
  rows_.reserve(static_cast<size_t>(running_max) * DraftSource::kDraftsMax);
}

void DraftController::begin(int32_t sequence) {
  SequenceState& seq = of(sequence);
  std::ranges::fill(seq.counts, Acceptance<4>());
  // Where answers are shorter than kTrialAfter, several of them wait for a trial together.
  if (seq.trial_after > kTrialAfter) seq.idle_tokens = 0;
  seq.trial_after = kTrialAfter;
  seq.begun = steps_;
  seq.lost = kNever;
  seq.trial = false;
}

// As a source sees it, then as each position turned out, from the one before on.
float DraftController::chance(int32_t source, uint8_t sureness, int32_t position) const {
  const Acceptance<8>& counts = sources_[static_cast<size_t>(source)].counts;
  float expected = (sureness + 0.5f) / Draft::kClasses;
  for (int32_t i = 0; i <= std::min(position, 7); ++i) {
    const auto& count = counts.of(sureness, i);
    expected = (count.right + kPositionWeight * expected) / (count.tried + kPositionWeight);
  }
  return expected;
}

float DraftController::chance(const SequenceState& seq, int32_t source, uint8_t sureness,
                              int32_t position) const {
  const auto& count = seq.counts[static_cast<size_t>(source)].of(sureness, position);
  const float expected = chance(source, sureness, position);
  return std::min((count.right + kSequenceWeight * expected) / (count.tried + kSequenceWeight),
                  kChanceMax);
}

double DraftController::expected(const DraftChoice& choice) const {
  const SequenceState& seq = of(choice.sequence);
  double survival = 1, sum = choice.forced;
  for (size_t i = static_cast<size_t>(choice.forced); i < choice.drafts.size(); ++i) {
    const int32_t position = static_cast<int32_t>(i) - choice.forced;
    survival *= chance(seq, choice.source, choice.drafts[i].sureness, position);
    sum += survival;
  }
  return sum;
}

void DraftController::begin_step(const StepFacts& facts) {
  step_ = facts;
  drafting_ = 0;
  tried_ = -1;
  tried_gave_ = false;
  ++steps_;
  off_ = loss_ > share(kLossMax);
  if (off_) {
    plain_ = ++probe_ % kProbeEvery != 0;
  } else {
    const int64_t every = std::min(gain_ < kPlainGain ? kPlainOften : kPlainEvery,
                                   kPlainFirst << std::min(plain_checks_, 8));
    plain_ = cost_.known(facts.certain_rows) < kKnownMin || steps_ - plain_at_ >= every;
  }
  for (SourceState& source : sources_) {
    if (off_) source.unwanted = kUnwantedMax;
    // Where no sequence was left to be tried, too.
    if (off_ || steps_ - source.since > 2 * kTrialContext) source.trials = 0;
  }
}

exec::KeepUp DraftController::keep_up(int32_t source) const {
  const SourceState& from = sources_[static_cast<size_t>(source)];
  if (off_) return exec::KeepUp::kNot;
  if (from.unwanted < kUnwantedMax) return exec::KeepUp::kGuesses;
  if (from.trials == 0) return exec::KeepUp::kNot;
  const bool next = from.since != kNever && steps_ + 1 - from.since >= kTrialContext;
  return next ? exec::KeepUp::kGuesses : exec::KeepUp::kRows;
}

// Its source has kept up with all of the sequence's text, or with enough of it.
bool DraftController::has_context(const SourceState& from, int32_t sequence) const {
  if (!from.guesses) return false;
  const SequenceState& seq = of(sequence);
  const int64_t since = std::max(from.since, seq.lost + 1);
  return seq.begun + 1 >= since || steps_ - since >= kTrialContext;
}

// `known`: the drafts are there; else `count` that are still to be computed.
void DraftController::add_rows(const DraftChoice& choice, int32_t index, int32_t count,
                               bool known) {
  const SequenceState& seq = of(choice.sequence);
  const Acceptance<8>& any = sources_[static_cast<size_t>(choice.source)].any;
  double survival = 1;
  float expected = 0.5f;
  for (int32_t i = 0; i < count; ++i) {
    const int32_t position = i - choice.forced;
    if (position >= 0 && known) {
      const uint8_t sureness = choice.drafts[static_cast<size_t>(i)].sureness;
      survival *= chance(seq, choice.source, sureness, position);
    } else if (position >= 0) {
      const auto& counted = any.of(0, position);
      expected = (counted.right + kPositionWeight * expected) / (counted.tried + kPositionWeight);
      survival *= std::min(expected, kChanceMax);
    }
    rows_.push_back(
        {.survival = survival, .choice = index, .number = static_cast<int32_t>(rows_.size())});
  }
}

// How many of rows_, the likeliest first, give the best speed. A step with drafts takes
// `spent_seconds` beside its rows, and `each_seconds` for each draft.
size_t DraftController::best_count(double spent_seconds, double each_seconds) {
  std::ranges::sort(rows_, [](const Row& a, const Row& b) {
    return a.survival != b.survival ? a.survival > b.survival : a.number < b.number;
  });
  double tokens = step_.sequences, best = 0;
  const double plain = tokens / cost_.seconds(step_.certain_rows);
  size_t count = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    tokens += rows_[i].survival;
    const auto more = static_cast<int32_t>(i + 1);
    const double speed =
        tokens / (cost_.seconds(step_.certain_rows + more) + spent_seconds + more * each_seconds);
    if (speed <= best) continue;
    best = speed;
    count = i + 1;
  }
  if (best < kGainMin * plain) {
    if (!rows_.empty()) plain_checks_ = 0;
    return 0;
  }
  gain_ = best / plain;
  return count;
}

// In place of the `count` that is thought best.
size_t DraftController::to_try(size_t count) const {
  if (steps_ % kMoreEvery != 0 || !may_try()) return count;
  if (steps_ % kFurtherEvery == 0) {
    const size_t further = further_worth_trying(count);
    if (further > 0) return further;
  }
  return count > 0 && count < rows_.size() ? count + 1 : count;
}

// Where rows are computed several at a time, a few drafts more cost much, and many more little: one
// more at a time would never tell. So the same number for each sequence is tried where its rows are
// not known to take too long. 0: there is none.
size_t DraftController::further_worth_trying(size_t count) const {
  const auto speed = [&](size_t drafts, double seconds) {
    double tokens = step_.sequences;
    for (const Row& row : std::span(rows_).first(drafts)) tokens += row.survival;
    return tokens / seconds;
  };
  const auto rows_with = [&](size_t drafts) {
    return step_.certain_rows + static_cast<int32_t>(drafts);
  };
  const double best = kFurtherMin * speed(count, cost_.seconds(rows_with(count)));
  const auto each = static_cast<size_t>(step_.sequences);
  // The fewest first: what they take says of more rows what those take at least.
  for (size_t drafts = each; drafts <= rows_.size(); drafts += each) {
    const int32_t rows = rows_with(drafts);
    if (cost_.unknown_since(rows, steps_ - kFurtherAgain) &&
        speed(drafts, cost_.seconds_least(rows)) > best)
      return drafts;
  }
  return 0;
}

void DraftController::take(std::span<DraftChoice> choices, size_t count) {
  for (DraftChoice& choice : choices) choice.kept = 0;
  for (const Row& row : std::span(rows_).first(count))
    ++choices[static_cast<size_t>(row.choice)].kept;
}

void DraftController::ask(int32_t source, std::span<DraftChoice> choices,
                          std::span<const int32_t> room) {
  rows_.clear();
  for (DraftChoice& choice : choices) choice.kept = 0;
  if (plain_) return;
  for (size_t i = 0; i < choices.size(); ++i)
    add_rows(choices[i], static_cast<int32_t>(i), std::min(room[i], step_.drafts_max),
             /*known=*/false);
  SourceState& from = sources_[static_cast<size_t>(source)];
  from.unwanted = std::min(from.unwanted + 1, kUnwantedMax);
  const size_t count = best_count(drafting_ + from.step_seconds, from.draft_seconds);
  if (count > 0) {
    take(choices, to_try(count));
    // Tokens that are certain need no source.
    const bool wanted = std::ranges::any_of(
        choices, [](const DraftChoice& choice) { return choice.kept > choice.forced; });
    if (wanted && (from.since != kNever || may_begin(from))) from.unwanted = 0;
    for (DraftChoice& choice : choices)
      if (!has_context(from, choice.sequence)) choice.kept = 0;
  }
  try_source(source, choices, room);
}

// It may begin to keep up: what that takes before there is a draft does not end in none at all.
bool DraftController::may_begin(const SourceState& from) const {
  return loss_ + static_cast<double>(kTrialContext) * from.step_seconds < share(kLossMax);
}

// A trial of drafts that are still to be computed, or the beginning of what comes before it.
void DraftController::try_source(int32_t source, std::span<DraftChoice> choices,
                                 std::span<const int32_t> room) {
  SourceState& from = sources_[static_cast<size_t>(source)];
  const bool due = from.trials > 0 && from.guesses;
  if (!due && !may_try()) return;
  const int32_t tried = next_trial(choices, due, /*known=*/false);
  if (tried < 0) return;
  const auto index = static_cast<size_t>(tried);
  if (has_context(from, choices[index].sequence)) {
    DraftChoice& choice = choices[index];
    choice.kept = std::min({choice.forced + kTrialDrafts, room[index], step_.drafts_max});
    tried_ = choice.sequence;
    tried_source_ = source;
  } else if (from.since == kNever) {
    from.trials = may_begin(from) ? kTrialsLeast : 0;
  }
}

// Of the sequences without drafts whose turn it is to have a trial, or of all that have none if it
// is `due`, that which waits the longest: one in a step. -1: none.
int32_t DraftController::next_trial(std::span<const DraftChoice> choices, bool due,
                                    bool known) const {
  int32_t longest = 0, found = -1;
  for (size_t i = 0; i < choices.size(); ++i) {
    const SequenceState& seq = of(choices[i].sequence);
    const int32_t waits = seq.idle_tokens - seq.trial_after;
    if (known && choices[i].drafts.empty()) continue;
    if (choices[i].kept > 0 || (waits < 0 && !due) || (found >= 0 && waits <= longest)) continue;
    longest = waits;
    found = static_cast<int32_t>(i);
  }
  return found;
}

void DraftController::choose(std::span<DraftChoice> choices) {
  rows_.clear();
  for (DraftChoice& choice : choices) {
    choice.kept = 0;
    of(choice.sequence).trial = false;
  }
  if (plain_) return;
  for (size_t i = 0; i < choices.size(); ++i) {
    const auto count = static_cast<int32_t>(choices[i].drafts.size());
    add_rows(choices[i], static_cast<int32_t>(i), std::min(count, step_.drafts_max),
             /*known=*/true);
  }
  // What was spent on computing them is spent.
  take(choices, to_try(best_count(0, 0)));
  const auto asked = std::ranges::find(choices, tried_, &DraftChoice::sequence);
  int32_t tried = -1;
  if (asked != choices.end() && asked->kept == 0)
    tried = static_cast<int32_t>(asked - choices.begin());
  else if (may_try())
    tried = next_trial(choices, /*due=*/false, /*known=*/true);
  if (tried < 0) return;
  DraftChoice& choice = choices[static_cast<size_t>(tried)];
  choice.kept = std::min(
      {choice.forced + kTrialDrafts, static_cast<int32_t>(choice.drafts.size()), step_.drafts_max});
  of(choice.sequence).trial = choice.kept > 0;
}

void DraftController::note_taken(const DraftChoice& choice, int32_t taken) {
  SequenceState& seq = of(choice.sequence);
  if (choice.kept == 0) {
    ++seq.idle_tokens;
    return;
  }
  SourceState& source = sources_[static_cast<size_t>(choice.source)];
  Acceptance<4>& own = seq.counts[static_cast<size_t>(choice.source)];
  own.fade(kSequenceKept);
  source.counts.fade(kSourceKept);
  source.any.fade(kSourceKept);
  // Those after the first wrong one say nothing.
  for (int32_t i = choice.forced; i < std::min(choice.kept, taken + 1); ++i) {
    const uint8_t sureness = choice.drafts[static_cast<size_t>(i)].sureness;
    const int32_t position = i - choice.forced;
    own.note(sureness, position, i < taken);
    source.counts.note(sureness, position, i < taken);
    source.any.note(0, position, i < taken);
  }
  const bool gave = taken > choice.forced;
  if (choice.sequence == tried_ && choice.source == tried_source_) tried_gave_ = gave;
  if (seq.trial)
    seq.trial_after = gave ? kTrialAfter : std::min(2 * seq.trial_after, kTrialAfterMax);
  seq.idle_tokens = 0;
}

void DraftController::note_drafting(int32_t source, int32_t drafts, double seconds) {
  drafting_ += seconds;
  if (drafts <= 0) return;
  add_to_mean(sources_[static_cast<size_t>(source)].draft_seconds, seconds / drafts);
}

void DraftController::note_keeping_up(int32_t source, double seconds, bool pure) {
  drafting_ += seconds;
  if (!pure) return;
  add_to_mean(sources_[static_cast<size_t>(source)].step_seconds, seconds);
}

void DraftController::end_step(int32_t rows, int32_t tokens, double seconds, bool pure) {
  if (tried_ >= 0) {
    // Also where its drafts were too unsure to be given, or another source had better ones.
    int32_t& trials = sources_[static_cast<size_t>(tried_source_)].trials;
    trials = std::max(trials - 1, tried_gave_ ? 1 : 0);
  }
  for (size_t i = 0; i < sources_.size(); ++i) {
    const exec::KeepUp kept_up = keep_up(static_cast<int32_t>(i));
    SourceState& source = sources_[i];
    source.guesses = kept_up == exec::KeepUp::kGuesses;
    if (kept_up == exec::KeepUp::kNot)
      source.since = kNever;
    else if (source.since == kNever)
      source.since = steps_;
  }
  if (step_.sequences == 0) return;
  const bool is_plain = rows == step_.certain_rows;
  const bool settled = plain_run_ >= kSettling;
  plain_run_ = is_plain ? std::min(plain_run_ + 1, kPlainRun) : 0;
  // Beside prompts a plain step tells nothing, but it has had its turn.
  if (is_plain && plain_run_ == kPlainRun) {
    if (plain_) ++plain_checks_;
    plain_at_ = steps_;
  }
  if (!pure) return;
  const double plain = cost_.seconds(step_.certain_rows);
  (is_plain && !settled ? unsettled_ : cost_).note(rows, seconds, steps_);
  loss_ *= kLedgerKept;
  time_ = kLedgerKept * time_ + seconds + drafting_;
  if (is_plain) {
    // What it took more or less than others is no matter of drafts, but for the time in which they
    // were made and then not taken, and for what steps take longer that come after drafts.
    loss_ += drafting_;
    if (!settled && plain > 0) loss_ += std::max(unsettled_.seconds(rows) - plain, 0.0);
    return;
  }
  if (plain == 0) return;
  // More rows do not take less time: the machine is faster than when plain steps were measured.
  if (gain_ < kPlainGain && cost_.seconds(rows) < kFaster * plain) plain_checks_ = 0;
  // Means against means: a step that was disturbed would have been so without drafts.
  const double spent = cost_.seconds(rows) + drafting_;
  const double credit = cost_.known(step_.certain_rows) > kCreditKnown ? kCreditSteps * plain : 0;
  loss_ = std::max(loss_ + spent - plain * tokens / step_.sequences, -credit);
}

}  // namespace weir::sched
