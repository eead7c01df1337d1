// Drafter: guesses the tokens that follow what a model has just computed. Its layers' keys and
// values lie in the model's own pages, so that what holds a sequence holds them too.
//
// A round follows a pass of the model. First rows are computed of all tokens that have become
// certain, with the features that the pass has left of them; then, k - 1 times, of the last guess.
// Slot j of a page holds what the drafter remembers of token j, computed with the feature of j - 1:
// so what lies in a page depends on the tokens up to its end alone, and pages are shared as the
// model's are. The feature at a page's end is kept in the page, for sequences that go on after it.
//
// Threads: the team's leader; run() uses the team.
// Invariants: (1) slots [State::begin, State::next) of a sequence hold rows of certain tokens;
// (2) no row attends to a slot before State::begin.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "kv/kv_cache.h"
#include "model/batch_builder.h"
#include "model/drafts/draft_spec.h"
#include "model/model.h"

namespace weir::model {

class Decoder;

// Of one sequence, what a pass of the model has made certain.
struct DraftSlice {
  int32_t sequence = 0;  // As BatchSlice::sequence.
  kv::MemoryView memory{};
  int32_t first = 0;  // Position of its first row in the pass,
  int32_t row = 0;    // and which row that is.
  // The tokens from there on that are certain: those of `computed` rows, and the one after them,
  // where it is known.
  std::span<const int32_t> tokens{};
  int32_t computed = 0;
  int32_t covered = 0;   // Positions before this one have memory: those of the rows, at least.
  bool guesses = false;  // A draft may be asked for: the first one is computed along.
};

// Drafts that are asked for.
struct DraftTask {
  int32_t sequence = 0;
  kv::MemoryView memory{};
  int32_t position = 0;  // Of the first draft. Memory covers all that are asked for.
  // Tokens just before it that the model has not computed, after the last one that it was given.
  std::span<const int32_t> forced{};
  std::span<int32_t> tokens{};       // Room for as many as are asked for, and
  std::span<float> probabilities{};  // how sure the drafter is of each.
  int32_t count = 0;                 // So many are given.
};

class Drafter {
 public:
  // `target` outlives it; `card`: the target's.
  static Result<std::unique_ptr<Drafter>> bind(DraftSpec spec, const Decoder& target,
                                               const card::ModelCard& card, const kernels::Ops& ops,
                                               int members);
  ~Drafter();

  const DraftSpec& spec() const { return spec_; }
  const Model& net() const;
  int32_t drafts_max() const { return drafts_max_; }
  // Of its layers, and of features at the ends of pages.
  const std::vector<kv::MemoryNeed>& memory_needs() const { return needs_; }
  ModelMemory memory() const;
  // "eagle3 of 1 layer, 2.4 M parameters, 16-bit 100 %, ...": for people.
  std::string describe() const;
  bool pack_until(ThreadTeam& team, const std::function<void(int64_t, int64_t)>& progress,
                  Model::Clock::time_point until);
  void give_back_scratch();

  // Sequences are remembered in this cache from now on; nothing is known of any. It outlives what
  // is done with it.
  void use(const kv::KvCache& kv);
  // After a pass of the target in Lane::kStep, before its next one. `slices`: of different
  // sequences. Of those left out forget() is to be called.
  void keep_up(std::span<const DraftSlice> slices, ThreadTeam& team);
  // Positions [first, end) of a sequence were computed, and it does not keep up.
  void forget(int32_t sequence, const kv::MemoryView& memory, int32_t first, int32_t end);
  // After that. None are given of a sequence that has not kept up.
  void draft(std::span<DraftTask> tasks, ThreadTeam& team);

 private:
  // What is known of a sequence.
  struct State {
    int32_t begin = 0;  // Its rows attend from here on.
    int32_t next = -1;  // The first slot without its row; -1: it knows nothing.
    int32_t page = -1;  // That holds the slot before; another one is another sequence's.
    int32_t last = -1;  // The last certain token.
    // Of the position before `next`, where all that is computed of the sequence ends there.
    std::vector<float> feature;
    // The token that follows, or -1; how likely it is; and the feature of its row.
    int32_t guess = -1;
    float probability = 0;
    std::vector<float> chained;
  };
  // A sequence in a round.
  struct Work {
    const DraftSlice* slice = nullptr;  // Of keep_up(),
    DraftTask* task = nullptr;          // or of draft().
    State* state = nullptr;
    int32_t slot = 0;  // Rows [slot, end) are to be computed.
    int32_t end = 0;
    size_t forced = 0;  // Of the task's, those that are computed.
    int32_t row = -1;   // Its last one in the batch at hand; -1: nothing is wanted of it there.
  };
  enum class Ready : uint8_t { kNo, kLastRow, kYes };  // kLastRow: but for that row.
  class Sink;

  Drafter(DraftSpec spec, const Decoder& target, const kernels::Ops& ops);
  Result<void> read_table(const card::Checkpoint& tensors);

  std::span<Work> works() { return std::span(works_).first(works_count_); }
  State& state_of(int32_t sequence);
  bool goes_on(const State& state, const DraftSlice& slice) const;
  // Where rows begin that nothing is known of, as pages before them say.
  void restart(State& state, const DraftSlice& slice) const;
  bool knows_tokens(const DraftSlice& slice) const;
  void begin(const DraftSlice& slice);
  void clear_rows(const kv::MemoryView& memory, int32_t first, int32_t end);
  void end(const Work& work);
  void store_feature(int32_t page, const float* feature) const;
  void load_feature(int32_t page, std::vector<float>& feature) const;

  const float* feature_of(const Work& work, int32_t slot) const;
  void open_slice(const Work& work, const kv::MemoryView& memory, int32_t sequence, int32_t slot,
                  const Mask& mask = {});
  void add_rows(Work& work, int32_t end);
  // Runs the batch at hand, if there is one, and takes the guesses that it gives.
  void flush(bool remembers = false);
  void take_guess(Work& work);
  int32_t token_of(int32_t head_row) const;
  Ready ready(const State& state, const DraftTask& task) const;
  void add_last_row(Work& work);
  bool next_row(Work& work);
  void chain();
  void fill_blocks();
  void take_blocks();

  DraftSpec spec_;
  const Decoder& target_;
  const kernels::Ops& ops_;
  int32_t drafts_max_ = 0;
  std::vector<kv::MemoryNeed> needs_;
  int32_t feature_memory_ =
      -1;  // The layer of the cache where features at pages' ends lie; -1: none do.
  std::unique_ptr<Decoder> net_;
  std::vector<int32_t> table_;  // Token of each row of the head; empty: the row itself.

  const kv::KvCache* kv_ = nullptr;
  std::vector<State> states_;      // By sequence.
  std::vector<uint8_t> has_rows_;  // By page of the spine: all its slots have rows.
  // Of the round at hand.
  ThreadTeam* team_ = nullptr;
  std::vector<Work> works_;  // The first works_count_.
  size_t works_count_ = 0;
  BatchBuilder batch_;
  // By row of the batch: the head's best row, and how likely it is.
  std::vector<int32_t> best_;
  std::vector<float> probabilities_;
};

}  // namespace weir::model
