// Sequence: one request as the engine sees it, its continuation and its memory.
//
// Tokens of a sequence, by position:
//   [0, prompt_length)   the prompt
//   [.., known)          values are known: the prompt and what was published to the log
//   [.., length)         planned: the last one may be sampled by a step that still runs
//   [.., limit)          what the request allows
// `computed` counts the tokens that its memory holds once every planned step has run; so many as
// `unsettled` may come on top of it and of `length`, as drafts are taken or not.
// Steps run in the order in which they were planned, so a plan may treat that as the present.
//
// Threads: the engine thread. The executor's threads use `sampler`, with the `params` it refers to,
// and `pooled` of sequences in the step that runs. The engine changes none of the three from the
// first slice on until no step refers to the sequence (`steps` is 0).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "kv/block.h"
#include "kv/holding.h"
#include "kv/prefix_cache.h"
#include "sample/sampler.h"
#include "sched/feature_cache.h"
#include "sched/request.h"

namespace weir::sched {

struct Share;

struct Sequence final : kv::TokenKeys {
  enum class State : uint8_t {
    kFree,     // In the pool.
    kWaiting,  // Holds no memory.
    kRunning,  // Holds memory.
    kPlanned,  // Every row is planned; the last tokens are still to be published.
    kEnded,    // The log is finished; a step may still refer to the object.
  };

  Sequence() = default;
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  State state = State::kFree;
  Request* request = nullptr;  // Null once the log is finished.

  int32_t prompt_length = 0;
  int32_t known = 0;
  int32_t length = 0;
  int32_t computed = 0;
  int32_t unsettled = 0;
  int32_t limit = 0;

  // The scheduler's.
  int32_t priority = 0;       // Lower goes first.
  Share* share = nullptr;     // Its caller's, from submission to its end.
  int32_t drafts = 0;         // Most drafts in a slice of it,
  int32_t drafts_bound = 0;   // and how many there were in the last one.
  int32_t replays = 0;        // That were right and its states have not taken; no slice is planned.
  uint64_t turn = 0;          // The plan that had a slice of it last.
  uint64_t gave_way = 0;      // The plan in which it gave way; 0: none.
  uint64_t arrival = 0;       // Order of submission; never equal.
  int64_t passed_tokens = 0;  // Prompt tokens of those after it, planned before its own.
  int32_t prefill_end = 0;    // Length when it was admitted: the tokens to compute in chunks.
  kv::Holding memory;         // Only grows while the sequence runs.
  kv::PrefixKey salt;         // What, besides tokens, must agree for memory to be shared.
  // Tokens from here on leave other memory than the same tokens of a prompt.
  int32_t marked_from = std::numeric_limits<int32_t>::max();
  bool whole_prompt = false;   // Takes nothing from the prefix cache.
  bool in_slab = false;        // Its prompt is in the slab that is being computed.
  bool cancelled = false;      // To be ended as soon as the slab is done.
  // What is known of its blocks on disk (disk_loads.h). While it is not known, or they are coming,
  // it is not admitted; nor while all loads are taken, of which it is worth one.
  enum class OnDisk : uint8_t { kUnknown, kLacksLoad, kLacksMemory, kComing, kKnown };
  OnDisk on_disk = OnDisk::kKnown;
  int32_t matched_tokens = 0;  // Of the prompt, found in the cache before the first token.
  int32_t preemptions = 0;

  // The engine's.
  int32_t steps = 0;  // Steps, planned or running, that refer to this object.
  // Where the step before the one being planned leaves what it takes (exec::StepResults::taken).
  int32_t slot = -1;
  bool want_logprobs = false;
  // The request's. A step may compute with it after the request is gone.
  std::shared_ptr<const model::Adapter> adapter;
  float adapter_scale = 1;
  std::shared_ptr<const PromptMedia> media;  // The request's, likewise.
  std::shared_ptr<const HeardSound> heard;   // Likewise.
  bool probed = false;  // What its request probes is planned.
  // Where positions are three numbers: Batch::rope_shift of what comes after its pictures.
  int32_t rope_shift = 0;
  // Of its media the features that it has pinned, or null (media_features.h); empty: none. The plan
  // with the last slice that has rows of them.
  std::vector<FeatureCache::Entry*> features;
  uint64_t features_plan = 0;
  int32_t scored = 0;  // Leading positions whose next token's log-probability is planned.
  Pooling pooling = Pooling::kNone;
  std::vector<float> pooled;      // The request's, from its first slice on.
  std::vector<float> weights;     // Likewise AttendedSound::weights.
  sample::SamplingParams params;  // A copy: the sampler may outlive the request by a step.
  std::optional<sample::Sampler> sampler;

  // REQUIRES: index < known, the request is not finished.
  int32_t token(int32_t index) const {
    return index < prompt_length ? request->prompt[static_cast<size_t>(index)]
                                 : request->log[index - prompt_length].token;
  }
  bool prefilling() const { return computed < prefill_end; }

  // A token as memory is shared by it: where it matters, generated ones are told from those of
  // prompts by their complement, which no token id equals. REQUIRES: as token().
  int32_t key(int32_t index) const { return index >= marked_from ? ~token(index) : token(index); }
  void read(int32_t block, kv::BlockTokens& tokens) const override {
    for (int32_t i = 0; i < kv::kPageTokens; ++i)
      tokens[static_cast<size_t>(i)] = key(block * kv::kPageTokens + i);
    tokens.media = {};
    if (heard)
      tokens.media = heard->hash;
    else if (media)
      tokens.media = hash_within(*media, block * kv::kPageTokens, (block + 1) * kv::kPageTokens);
  }
};

}  // namespace weir::sched
