// World: a scheduler with what surrounds it in the engine, for tests of the policy. It looks at
// what every page holds, and runs each planned step after the next is planned.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "sched/scheduler.h"
#include "sched/sequence_pool.h"

namespace weir::sched {

inline constexpr int32_t kPage = kv::kPageTokens;

inline uint64_t chain(uint64_t hash, int32_t token) {
  return (hash ^ static_cast<uint64_t>(token + 1)) * 0x9e3779b97f4a7c15u + (hash >> 29);
}

// Results become known one plan late, and a step runs any time before its results are looked at.
class World {
 public:
  struct Options {
    Limits limits;
    int32_t page_count = 1000;
    std::vector<int32_t> windows = {};  // The widest first.
    int32_t cross_slots = 0;              // Of sounds that sequences attend to.
    bool cache = true;
    bool checked = true;  // What pages hold, and the scheduler itself, after each plan.
  };

  // Nowhere, everywhere, or somewhere in the middle of things.
  static std::optional<int32_t> differ_from(uint32_t seed) {
    if (seed % 2 == 0) return {};
    return static_cast<int32_t>(seed / 2 % 3) * 40;
  }

  explicit World(const Options& options)
      : prompts_differ_from_(options.limits.prompts_differ_from),
        checked_(options.checked),
        groups_(groups_of(options)),
        memory_(groups_, options.cache, {.cross = options.cross_slots}),
        scheduler_(options.limits, memory_),
        sequences_(options.limits.queue_max * 2, 1 << 14, static_cast<int32_t>(groups_.size())),
        load_(load_of(options)) {
    for (const kv::PageGroup& group : groups_)
      content_.emplace_back(static_cast<size_t>(group.pages));
  }
  World() : World(Options()) {}

  Sequence* submit(std::vector<int32_t> prompt, int32_t max_tokens, uint64_t salt = 0,
                   int32_t priority = 0, uint64_t caller = 0) {
    requests_.push_back(
        std::make_unique<Request>(std::move(prompt), sample::SamplingParams(), max_tokens, false));
    requests_.back()->priority = priority;
    requests_.back()->caller = caller;
    Sequence* seq = sequences_.take(requests_.back().get());
    seq->salt = kv::PrefixCache::salt({.cache_salt = salt});
    scheduler_.submit(seq);
    return seq;
  }
  // A prompt of which no page equals another prompt's.
  Sequence* submit(int32_t prompt_length, int32_t max_tokens, int32_t priority = 0,
                   uint64_t caller = 0) {
    std::vector<int32_t> prompt(static_cast<size_t>(prompt_length));
    std::iota(prompt.begin(), prompt.end(), next_token_);
    next_token_ += prompt_length;
    return submit(std::move(prompt), max_tokens, 0, priority, caller);
  }

  // The same, which attends to a sound of this hash.
  Sequence* submit_hearing(int32_t prompt_length, uint64_t hash) {
    std::vector<int32_t> prompt(static_cast<size_t>(prompt_length));
    std::iota(prompt.begin(), prompt.end(), next_token_);
    next_token_ += prompt_length;
    requests_.push_back(
        std::make_unique<Request>(std::move(prompt), sample::SamplingParams(), 1, false));
    auto heard = std::make_shared<HeardSound>();
    heard->hash = {hash, hash};
    requests_.back()->heard = std::move(heard);
    Sequence* seq = sequences_.take(requests_.back().get());
    scheduler_.submit(seq);
    return seq;
  }

  // Plans a step. `run_first`: the step before has ended by then; else it runs meanwhile.
  const Step& next(int32_t prefill_tokens_max = 1 << 30, bool run_first = false) {
    if (run_first) execute();
    execute();
    publish();
    Planned& planned = steps_.emplace_back();
    scheduler_.next_step(planned.step, {.max = prefill_tokens_max});
    for (const Slice& slice : planned.step.slices) {
      planned.tables.push_back(slice.seq->memory.view());
      std::vector<int32_t>& tokens = planned.tokens.emplace_back();
      for (int32_t i = 0; checked_ && i < slice.first + slice.count; ++i)
        tokens.push_back(kind(slice.seq, i) ? ~token_at(slice.seq, i) : token_at(slice.seq, i));
      ++slice.seq->steps;
    }
    expect_kinds_apart(planned.step);
    if (checked_) scheduler_.open().check();
    expect_windows_bounded();
    return planned.step;
  }

  // Plans the next slab, which is computed at once.
  const Step& slab() {
    begin_slab();
    end_slab();
    return slab_;
  }
  void begin_slab() {
    scheduler_.next_slab(slab_);
    expect_windows_bounded();
  }
  void end_slab() {
    scheduler_.end_slab(slab_);
    scheduler_.open().check();
  }

  // The client cancels, or a stop token is found.
  void end(Sequence* seq) {
    scheduler_.remove(seq);
    seq->request = nullptr;
    if (seq->steps == 0) sequences_.give_back(seq);
  }

  const Scheduler& scheduler() const { return scheduler_; }
  const OpenSequences& open() const { return scheduler_.open(); }
  kv::SequenceMemory& memory() { return memory_; }
  int64_t computed_rows() const { return computed_rows_; }

 private:
  struct Planned {
    Step step;
    std::vector<kv::MemoryView> tables;
    std::vector<std::vector<int32_t>> tokens;  // Of each sequence, from its start.
    bool executed = false;
  };

  static kv::MemoryLoad load_of(const Options& options) {
    return {.running_max = options.limits.running_max,
            .rows_max = options.limits.step_tokens_max + options.limits.slab_tokens_max};
  }
  // As a server sizes them, but without room for the prefix cache: pages that windows have left are
  // taken as soon as that may be.
  static std::vector<kv::PageGroup> groups_of(const Options& options) {
    std::vector<kv::PageGroup> groups = {{.pages = options.page_count}};
    for (const int32_t window : options.windows) {
      const int64_t held = kv::window_pages_held(window, load_of(options));
      groups.push_back(
          {.window = window,
           .pages = static_cast<int32_t>(std::min<int64_t>(options.page_count, held))});
    }
    return groups;
  }

  // What running sequences hold of a window's group.
  void expect_windows_bounded() const {
    for (size_t g = 1; g < groups_.size(); ++g) {
      const int32_t held = memory_.held_pages(static_cast<int32_t>(g));
      ASSERT_LE(held, kv::window_pages_held(groups_[g].window, load_));
      ASSERT_LE(held, memory_.held());
    }
  }

  // Whether the keys and values of this token are of the other kind.
  bool kind(const Sequence* seq, int32_t index) const {
    return prompts_differ_from_ && index >= std::max(seq->prompt_length, *prompts_differ_from_);
  }

  void expect_kinds_apart(const Step& step) const {
    bool prompts = false;
    for (const Slice& slice : step.slices) {
      if (!prompts_differ_from_) return;
      const bool generated = slice.first >= slice.seq->prompt_length;
      ASSERT_EQ(generated, slice.first + slice.count > slice.seq->prompt_length) << "a mixed slice";
      ASSERT_FALSE(prompts && generated) << "generated tokens after a prompt";
      prompts |= !generated;
    }
  }

  // Runs the oldest step that has not run.
  void execute() {
    for (Planned& planned : steps_) {
      if (planned.executed) continue;
      planned.executed = true;
      for (size_t i = 0; i < planned.step.slices.size(); ++i)
        compute(planned.step.slices[i], planned.tables[i], planned.tokens[i]);
      return;
    }
  }

  // Checks that everything before the slice is what this sequence needs, and writes the slice. Also
  // if the sequence has ended meanwhile: others may already count on its pages.
  void compute(const Slice& slice, const kv::MemoryView& memory,
               const std::vector<int32_t>& tokens) {
    computed_rows_ += slice.count;
    if (!checked_) return;
    uint64_t hash = 0;
    for (int32_t i = 0; i < slice.first + slice.count; ++i) {
      hash = chain(hash, tokens[static_cast<size_t>(i)]);
      for (size_t g = 0; g < groups_.size(); ++g) {
        // What the slice's first row sees.
        if (groups_[g].window > 0 && i <= slice.first - groups_[g].window) continue;
        const int32_t number = memory.pages(static_cast<int32_t>(g))[i / kPage];
        std::vector<uint64_t>& page = content_[g][static_cast<size_t>(number)];
        page.resize(kPage);
        if (i >= slice.first) page[static_cast<size_t>(i % kPage)] = hash;
        ASSERT_EQ(page[static_cast<size_t>(i % kPage)], hash) << "position " << i << " group " << g;
      }
    }
  }

  // The last token may be sampled, but not published; it depends on nothing but its position.
  static int32_t token_at(const Sequence* seq, int32_t index) {
    return index < seq->prompt_length ? seq->token(index) : index % 7;
  }

  // Makes known what the oldest steps that have run have sampled; the last one stays unknown.
  void publish() {
    while (steps_.size() > 1 && steps_.front().executed) {
      for (const Slice& slice : steps_.front().step.slices) {
        Sequence* seq = slice.seq;
        if (slice.sample && seq->request != nullptr) {
          seq->request->log.append({.token = token_at(seq, seq->known)}, {});
          if (++seq->known == seq->limit) {
            scheduler_.remove(seq);
            seq->request = nullptr;
          }
        }
        if (--seq->steps == 0 && seq->state == Sequence::State::kEnded) sequences_.give_back(seq);
      }
      steps_.erase(steps_.begin());
    }
  }

  const std::optional<int32_t> prompts_differ_from_;
  const bool checked_;
  const std::vector<kv::PageGroup> groups_;
  kv::SequenceMemory memory_;
  Scheduler scheduler_;
  SequencePool sequences_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<Planned> steps_;
  Step slab_;
  const kv::MemoryLoad load_;
  // By group, page and slot: the hash of all tokens so far.
  std::vector<std::vector<std::vector<uint64_t>>> content_;
  int32_t next_token_ = 100;
  int64_t computed_rows_ = 0;
};

inline int32_t tokens_of(const Step& step, const Sequence* seq) {
  int32_t tokens = 0;
  for (const Slice& slice : step.slices) tokens += slice.seq == seq ? slice.count : 0;
  return tokens;
}

}  // namespace weir::sched
