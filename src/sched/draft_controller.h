// DraftController decides how many drafts a step verifies: as many as are expected to give the most
// tokens a second, given how often drafts like these were right, and how long steps of so many rows
// have taken. Pure policy: no clock, no model, no request.
//
//   chance    of a draft, given that all before it were right: what was counted of its source,
//             class and position, and of its own sequence, which weighs more the longer it is known
//   survival  of a draft: the product of the chances up to its own
//   speed     of a step with some of the drafts: (sequences + sum of survivals) / (T(rows) + D)
//
// Drafts are taken in the order of their survival, whosever they are, up to the number with the
// best speed; none if that is not kGainMin better than none at all.
//
// What keeps a wrong expectation from costing much is the ledger: the time that steps with drafts
// take in the mean beyond what plain steps do for the same tokens. Above kLossMax of all time
// there are no drafts, but for a probe now and then, until other steps have made up for it. A
// little of what they have gained before counts against it. What keeps it from staying wrong are
// trials: a draft more than is thought best, two for a sequence that has none, and a plain step,
// each once in a while and only while the ledger allows them.
//
// A source that computes keeps up with the texts, which costs a part of each step. It does so while
// its drafts are wanted, those of a new engine at first; else only for a few steps before a trial,
// so that its drafts follow some text.
//
// Threads: owned by the engine thread. Allocates at construction only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/drafter.h"
#include "sched/draft_source.h"

namespace weir::sched {

// How often drafts of a class were right, by their position after the last certain token.
template <int32_t kPositions>
class Acceptance {
 public:
  struct Count {
    float tried = 0;
    float right = 0;
  };

  void note(uint8_t sureness, int32_t position, bool right) {
    Count& count = counts_[index(sureness, position)];
    count.tried += 1;
    count.right += right ? 1.0f : 0.0f;
  }
  // What was counted so far weighs less.
  void fade(float kept) {
    for (Count& count : counts_) count.tried *= kept, count.right *= kept;
  }
  const Count& of(uint8_t sureness, int32_t position) const {
    return counts_[index(sureness, position)];
  }

 private:
  static size_t index(uint8_t sureness, int32_t position) {
    return static_cast<size_t>(sureness * kPositions + std::min(position, kPositions - 1));
  }

  std::array<Count, static_cast<size_t>(Draft::kClasses * kPositions)> counts_{};
};

// How long a step takes whose rows are all generated tokens, by their number: running means, and
// straight lines between them.
class RowCost {
 public:
  // Of the step of this number. The longer ago the one before of so many rows, the less that
  // weighs.
  void note(int32_t rows, double seconds, int64_t step);
  // So many steps of exactly so many rows, or of its bucket, are known.
  int32_t known(int32_t rows) const;
  // 0: nothing is known.
  double seconds(int32_t rows) const;
  // What a step of so many rows takes at least: what one of fewer takes. 0: nothing is known.
  double seconds_least(int32_t rows) const;
  // Too few steps of so many rows are known to go by, or none since the step of this number.
  bool unknown_since(int32_t rows, int64_t step) const;

 private:
  struct Mean {
    double rows = 0, seconds = 0;
    int32_t count = 0;
    int64_t step = 0;  // Of the last one.
  };
  // Up to kSingle each number of rows has a mean of its own, then each kTile: some machines compute
  // so many at a time. From kTiled on each power of two.
  static constexpr int32_t kSingle = 32, kTile = 16, kTiled = 256;
  static constexpr size_t kTiles = (kTiled - kSingle) / kTile, kBuckets = kSingle + kTiles + 8;
  static size_t bucket_of(int32_t rows);

  std::array<Mean, kBuckets> means_{};
};

// The drafts of one sequence that a step might verify.
struct DraftChoice {
  int32_t sequence = 0;  // Its number.
  int32_t source = 0;
  int32_t forced = 0;  // The first ones are certain, and not the source's.
  std::span<const Draft> drafts;
  int32_t kept = 0;  // So many of them are verified.
};

class DraftController {
 public:
  // `sequences_max`: numbers of sequences are below it.
  DraftController(int32_t sequences_max, int32_t running_max, size_t sources);

  // The sequence of this number is another one's from here on.
  void begin(int32_t sequence);
  // Sources that compute could not keep up with it in the step that has run.
  void lose_text(int32_t sequence) { of(sequence).lost = steps_; }

  // A step is bound that has so many rows without drafts, of them a certain next token for each of
  // `sequences`; drafts_max bounds those of each sequence. Prompts may be beside them.
  struct StepFacts {
    int32_t certain_rows = 0;
    int32_t sequences = 0;
    int32_t drafts_max = DraftSource::kDraftsMax;
  };
  void begin_step(const StepFacts& facts);
  // No draft of this step will be verified, whatever they are.
  bool plain() const { return plain_; }
  // How many drafts are to be computed by a source whose drafts take time: `room` of each choice at
  // most; into `kept`.
  void ask(int32_t source, std::span<DraftChoice> choices, std::span<const int32_t> room);
  // What that source computes of the step that has run, so that it can be asked after it.
  exec::KeepUp keep_up(int32_t source) const;
  // Which are verified; into `kept`.
  void choose(std::span<DraftChoice> choices);
  // How many of the drafts are expected to be right.
  double expected(const DraftChoice& choice) const;

  // What came of a choice: of its first `kept` drafts so many were right.
  void note_taken(const DraftChoice& choice, int32_t taken);
  // A source has taken so long for so many drafts.
  void note_drafting(int32_t source, int32_t drafts, double seconds);
  // It has taken so long to keep up with this step. `pure`: as in end_step().
  void note_keeping_up(int32_t source, double seconds, bool pure);
  // The step has run, in so many seconds beside what was noted of sources. `tokens`: of answers
  // that it gave. `pure`: it had no prompts.
  void end_step(int32_t rows, int32_t tokens, double seconds, bool pure);

  // For metrics.
  double loss_seconds() const { return std::max(loss_, 0.0); }
  bool off() const { return off_; }

  // Speed must rise by so much for drafts to be verified at all: what measurements can tell.
  static constexpr double kGainMin = 1.03;
  // Of all time, what speculation may cost before it is left, and before nothing is tried. A new
  // engine may as if it had run for so many steps: three steps' time for what it has to learn.
  static constexpr double kLossMax = 0.01, kTrialLossMax = 0.003;
  static constexpr double kStartSteps = 300;
  // So many plain steps, one after another, show what one takes: after steps with drafts the first
  // ones take longer (four rows of a 135M model on an AMD Zen 5: 6, 4 and 2 % more than steps among
  // plain ones), so they are no measure of those, and what they take more is a cost of drafts.
  static constexpr int32_t kPlainRun = 6, kSettling = 2;
  // Steps between such runs: few where drafts give less than kPlainGain, so that plain steps cost
  // little and much depends on what they take. Since drafts were last found not to pay, and at
  // first, kPlainFirst, then twice as many each time: a few plain steps that are slow by chance
  // look like a gain of drafts, and only others tell that it is none. And between probes while
  // drafts are left.
  static constexpr int64_t kPlainFirst = 8, kPlainOften = 96, kPlainEvery = 512, kProbeEvery = 512;
  static constexpr double kPlainGain = 1.25;

 private:
  static constexpr int64_t kNever = -1;
  // A source that computes is tried in so many steps, and more while they give something: they cost
  // less than the steps that lead to them.
  static constexpr int32_t kTrialsLeast = 4;

  struct SourceState {
    Acceptance<8> counts;
    Acceptance<8> any;         // Whatever the class: all are counted as class 0.
    double draft_seconds = 0;  // Each.
    // Of one that keeps up with the texts:
    double step_seconds = 0;        // what that takes after each step,
    int64_t since = kNever;         // the first step from which on it has done so without a gap,
    int32_t unwanted = 0;           // steps that might have had its drafts, since any were wanted,
    int32_t trials = kTrialsLeast;  // trials to come, for which it does, too,
    bool guesses = false;           // and it has what it needs to be asked.
  };
  struct SequenceState {
    std::vector<Acceptance<4>> counts;  // By source.
    int32_t idle_tokens = 0;            // Since it had a draft.
    int32_t trial_after = 0;
    int64_t begun = 0;      // The step before its first one.
    int64_t lost = kNever;  // The last step that no source could keep up with.
    bool trial = false;     // Its drafts of this step are one.
  };
  // A draft that may be taken.
  struct Row {
    double survival = 0;
    int32_t choice = 0;
    int32_t number = 0;  // As they were added: a draft comes after those before it.
  };

  float chance(int32_t source, uint8_t sureness, int32_t position) const;
  float chance(const SequenceState& seq, int32_t source, uint8_t sureness, int32_t position) const;
  void add_rows(const DraftChoice& choice, int32_t index, int32_t count, bool known);
  size_t best_count(double spent_seconds, double each_seconds);
  size_t to_try(size_t count) const;
  size_t further_worth_trying(size_t count) const;
  void take(std::span<DraftChoice> choices, size_t count);
  int32_t next_trial(std::span<const DraftChoice> choices, bool due, bool known) const;
  void try_source(int32_t source, std::span<DraftChoice> choices, std::span<const int32_t> room);
  bool has_context(const SourceState& from, int32_t sequence) const;
  // Of the time that has gone by.
  double share(double part) const {
    return part * std::max(time_, kStartSteps * cost_.seconds(step_.certain_rows));
  }
  bool may_begin(const SourceState& from) const;
  bool may_try() const { return loss_ < share(kTrialLossMax); }
  SequenceState& of(int32_t sequence) { return sequences_[static_cast<size_t>(sequence)]; }
  const SequenceState& of(int32_t sequence) const {
    return sequences_[static_cast<size_t>(sequence)];
  }

  std::vector<SourceState> sources_;
  std::vector<SequenceState> sequences_;
  std::vector<Row> rows_;  // Scratch.
  RowCost cost_;
  RowCost unsettled_;  // Of plain steps that come too soon after drafts.
  StepFacts step_;
  bool plain_ = false;
  int32_t tried_ = -1;  // The sequence whose drafts were asked for as a trial; -1: none.
  int32_t tried_source_ = 0;
  bool tried_gave_ = false;  // One of them was right.
  double drafting_ = 0;      // Seconds of this step's drafts.
  int64_t steps_ = 0, probe_ = 0;
  int64_t plain_at_ = 0;           // The last step of a run of plain ones.
  int32_t plain_run_ = kPlainRun;  // So many plain steps come directly before.
  int32_t plain_checks_ = 0;       // Runs of them since drafts were found not to pay.
  double gain_ = 1;                // Expected of the last drafts that were verified.
  double loss_ = 0, time_ = 0;     // Below 0: gained.
  bool off_ = false;
};

}  // namespace weir::sched
