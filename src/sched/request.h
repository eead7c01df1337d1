// Request: what a client asked, as the engine needs it: one continuation of one prompt. Built by
// the API on a pool thread, never changed once submitted; the engine writes only its TokenLog and
// the figures beside it.
//
// Threads and lifetime: submit() lends the Request to the engine until its log is finished(). The
// thread that submitted it keeps it alive until then, also when the client is gone: cancel() is a
// message, the finished log is the answer to it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/token_log.h"
#include "exec/step_work.h"
#include "grammar/matcher.h"
#include "kv/prefix_identity.h"
#include "sample/sampling_params.h"
#include "sched/heard_sound.h"
#include "sched/prompt_media.h"
#include "sched/text_index.h"

namespace weir::model {
class Adapter;
}  // namespace weir::model

namespace weir::sched {

using Clock = std::chrono::steady_clock;

using exec::kTopLogprobsMax;
using exec::Pooling;

// What the first rows of a sequence are made of: token ids. Its size is how many.
using Prompt = std::vector<int32_t>;
// The memory that it takes.
inline size_t prompt_bytes(const Prompt& prompt) { return prompt.size() * sizeof(int32_t); }

// What a request says of the drafts in its steps. It can have fewer than the server allows.
struct DraftLimits {
  int32_t most = std::numeric_limits<int32_t>::max();  // In a step; 0: none.
  int32_t least = 0;                                   // Rather none than fewer.
  float chance_min = 0;  // How likely a draft must be, as its source sees it.
};

// How its drafts came out: those that steps have verified, and of these the ones that were right;
// then the same of those that came from its prediction. They only grow; written by the engine
// before the tokens of the step are appended.
struct DraftCounts {
  std::atomic<int32_t> verified{0}, right{0};
  std::atomic<int32_t> predicted{0}, predicted_right{0};
};

struct Request {
  Request(Prompt prompt_tokens, sample::SamplingParams params, int32_t max_tokens_in, bool logprobs)
      : prompt(std::move(prompt_tokens)),
        sampling(std::move(params)),
        max_tokens(max_tokens_in),
        want_logprobs(logprobs),
        log(max_tokens_in, sampling.top_logprobs) {}

  uint64_t id = 0;      // Unique in this process; for logs.
  const Prompt prompt;  // Not empty.
  // The prompt's pictures and sounds; null: there are none. Choices of one prompt share them.
  std::shared_ptr<const PromptMedia> media;
  // What its tokens attend to, of a model with cross attention, which needs it; else null. What is read
  // beside: `probed` is valid as soon as the log has a token or is finished with kStop or kLength.
  std::shared_ptr<const HeardSound> heard;
  std::optional<Probe> probe;
  float probed = 0;
  std::optional<AttendedSound> attended;
  const sample::SamplingParams sampling;
  const int32_t max_tokens;  // Prompt + max_tokens fits the context. 0: there is no answer.
  const bool want_logprobs;
  uint64_t cache_salt = 0;      // Prompts with different salts never share pages.
  // What the model's weights come with, as BatchSlice::adapter; null: nothing. `adapter_key` is
  // different wherever adapter or scale are: such prompts share no pages either.
  std::shared_ptr<const model::Adapter> adapter;
  float adapter_scale = 1;
  uint64_t adapter_key = 0;
  int32_t priority = 0;         // Lower goes first; equal ones by arrival.
  uint64_t caller = 0;          // Whose it is, where callers share something fairly.
  Clock::time_point arrived{};  // When the server had read the request.

  // What answers may be copied from: the prompt, to which the engine adds the answer; null: nothing
  // is copied. And a text that the client expects in the answer, or null.
  std::unique_ptr<TextIndex> text;
  std::shared_ptr<const TextIndex> prediction;
  DraftLimits draft_limits;

  // The output's grammar, or null. The engine takes it when it plans the request first.
  std::unique_ptr<grammar::Matcher> matcher;

  // Holds the tokens of the answer. A token that ends it (kStop) is not part of it.
  TokenLog log;

  // Not kNone: the prompt's hidden states after the final norm, pooled into `pooled`, instead of
  // an answer (max_tokens 0). `pooled` comes with hidden_size entries. The engine takes it when it
  // plans the request first, and gives it back filled before it finishes the log with kLength; if
  // the log finishes otherwise, there is nothing in it.
  Pooling pooling = Pooling::kNone;
  std::vector<float> pooled;

  // Where the log-probabilities of the prompt's tokens from the second on are wanted, given those
  // before: a log of so many entries, complete when the answer's first token is there or its log is
  // finished. Else null.
  std::unique_ptr<TokenLog> prompt_log;
  // As long as that log, where the tokens' ranks in the vocabulary are wanted (1: the likeliest);
  // an entry is valid once the log has it. Else empty.
  std::vector<int32_t> prompt_ranks;

  // What its pages depend on beside the tokens, as far as the request says it; the engine adds what
  // it computes with.
  kv::PrefixIdentity shared_by() const {
    return {.adapter = adapter_key, .cache_salt = cache_salt};
  }

  // The result needs every position of the prompt computed: none may come from the prefix cache.
  bool needs_whole_prompt() const {
    return prompt_log || probe || attended || pooling == Pooling::kMean ||
           pooling == Pooling::kCls;
  }

  // How far the prompt is, where `report_progress` asks for it: of its tokens, those that are
  // computed or were found in the prefix cache, and the latter alone. They only grow; written by
  // the engine after each step, `prompt_done` last, and all of the prompt before the first token.
  bool report_progress = false;
  std::atomic<int32_t> prompt_done{0}, prompt_cached{0};

  // Some of it is planned: it waits in the queue no more. Written by the engine, read by any
  // thread.
  std::atomic<bool> begun{false};

  DraftCounts draft_counts;

  // Written by the engine before the first token is appended; valid for the reader from then on.
  int32_t cached_tokens = 0;    // Of the prompt, found in the prefix cache.
  Clock::time_point started{};  // First planned.
  Clock::time_point first_token{};
  int32_t preemptions = 0;  // Valid once finished.
  int32_t end_token = -1;   // The token that ended it (kStop), which the log lacks; -1: none.
  // Why it has finished with kError, where the model could not be read; else empty.
  std::string failure;
  // It has finished with kError because the model computed no finite numbers for it.
  bool no_numbers = false;
};

}  // namespace weir::sched
