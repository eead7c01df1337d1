// HeardSound: what a request to a model with cross attention, such as Whisper, has beside its
// tokens: the sound that all of them attend to, and what is read of the model while it computes
// them. No token of the prompt stands for the sound.
//
// A transcription of one window, as long as the model's encoder takes, is a Request:
//   prompt                   [<|startofprev|>, text before,] <|startoftranscript|>, language, task
//                            [, <|notimestamps|>]
//   heard                    the window
//   sampling.transcript      the rules (sample/transcript_rules.h), beside temperature and seed
//   sampling.stop_token_ids  <|endoftext|>
//   want_logprobs            each token's, by what the rules leave: their mean is the reference's
//   probe                    how likely the no-speech token is after <|startoftranscript|>
// Windows of one recording, retries at other temperatures and choices are requests of their own.
// Those with the same `heard` share what is computed of it, also one after another.
//
// Which language is spoken: prompt <|startoftranscript|>, max_tokens 1, sampling.bounds that allow
// the languages' tokens, sampling.top_logprobs and `reported`, no `transcript`.
//
// When each word was said: the whole transcript as a prompt, max_tokens 0, `attended`; how likely
// each token was: Request::prompt_log.
//
// Threads: values, as Request.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "media/features/sound_features.h"
#include "sched/prompt_media.h"

namespace weir::sched {

struct HeardSound {
  MediaHash hash{};  // Of everything that the encoder reads: hash_of(*features).
  std::shared_ptr<const media::SoundFeatures> features{};  // Not null.
};

// The log-probability of `token` after the prompt's token `after`, of the model's own distribution.
struct Probe {
  int32_t after = 0;
  int32_t token = 0;
};

// Of the model's cross attention, as `alignment_heads` of generation_config.json counts them.
struct AttentionHead {
  int32_t layer = 0;
  int32_t head = 0;
};
inline constexpr int32_t kAttendedHeadsMax = 64;  // Published ones have up to 23.

// How much each token of the prompt from `first` on, which is 0 for times of words, attends to each
// of the first `rows` rows of the encoder, of 20 ms each, as the next token is computed: a softmax
// over those rows.
struct AttendedSound {
  std::vector<AttentionHead> heads{};
  int32_t first = 0;
  int32_t rows = 0;
  // [heads][prompt tokens - first][rows]. It comes with its size. The engine takes it when it plans
  // the request first, and gives it back filled before it finishes the log with kLength; if the log
  // finishes otherwise, there is nothing in it. media/features/token_times.h makes times of it.
  std::vector<float> weights{};
};

// What an engine computes of heard sounds; written before it is open for requests.
struct HearingLimits {
  int32_t layers = 0;  // With cross attention; 0: the model has none, and hears nothing.
  int32_t heads = 0;   // Of each.
  int32_t rows = 0;    // Of the encoder.
};

// What is wrong of what a request hears and asks of it: kInvalid. `heard`, `probe` and `attended` may
// be null.
Result<void> check_heard(const HeardSound* heard, const Probe* probe, const AttendedSound* attended,
                         int64_t prompt_tokens, int32_t vocab_size, const HearingLimits& limits);

}  // namespace weir::sched
