// SequencePool: every Sequence object there will ever be, built at the start with room for the page
// tables of the longest context, so that the engine allocates none of it later.
//
// Threads: owned by the engine thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "sched/sequence.h"

namespace weir::sched {

class SequencePool {
 public:
  SequencePool(int32_t count, int32_t context_max, int32_t memory_groups)
      : count_(static_cast<size_t>(count)), sequences_(std::make_unique<Sequence[]>(count_)) {
    free_.reserve(count_);
    for (Sequence& seq : all()) {
      seq.memory.reserve(memory_groups, kv::blocks_for(context_max));
      free_.push_back(&seq);
    }
  }

  std::span<Sequence> all() { return {sequences_.get(), count_}; }
  std::span<const Sequence> all() const { return {sequences_.get(), count_}; }

  int32_t index_of(const Sequence* seq) const {
    return static_cast<int32_t>(seq - sequences_.get());
  }

  Sequence* take(Request* request) {
    CHECK(!free_.empty());
    Sequence* seq = free_.back();
    free_.pop_back();
    CHECK(seq->state == Sequence::State::kFree && seq->steps == 0 && seq->memory.empty());
    seq->request = request;
    seq->prompt_length = static_cast<int32_t>(request->prompt.size());
    seq->known = seq->length = seq->prompt_length;
    // Without an answer there is a last row all the same, from which nothing is sampled.
    seq->limit = seq->prompt_length + std::max(request->max_tokens, 1);
    seq->computed = seq->unsettled = seq->drafts = seq->drafts_bound = seq->replays = 0;
    seq->matched_tokens = seq->preemptions = 0;
    seq->priority = request->priority;
    seq->turn = seq->gave_way = 0;
    seq->scored = 0;
    seq->in_slab = seq->cancelled = false;
    seq->whole_prompt = request->needs_whole_prompt();
    seq->pooling = request->pooling;
    seq->slot = -1;
    seq->want_logprobs = request->want_logprobs;
    seq->media = request->media;
    seq->rope_shift = 0;
    seq->features_plan = 0;
    CHECK(seq->features.empty());
    seq->adapter = request->adapter;
    seq->adapter_scale = request->adapter_scale;
    return seq;
  }

  // REQUIRES: ended, and no step refers to it.
  void give_back(Sequence* seq) {
    seq->adapter.reset();
    seq->media.reset();
    CHECK(seq->state == Sequence::State::kEnded && seq->steps == 0 && seq->memory.empty());
    seq->state = Sequence::State::kFree;
    seq->sampler.reset();
    std::vector<float>().swap(seq->pooled);
    free_.push_back(seq);
  }

  int32_t free_count() const { return static_cast<int32_t>(free_.size()); }
  int32_t count() const { return static_cast<int32_t>(count_); }

 private:
  const size_t count_;
  const std::unique_ptr<Sequence[]> sequences_;
  std::vector<Sequence*> free_;
};

}  // namespace weir::sched
