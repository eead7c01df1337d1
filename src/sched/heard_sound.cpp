#include "sched/heard_sound.h"

#include <string>

namespace weir::sched {

namespace {

tl::unexpected<Error> wrong(const std::string& what) { return fail(ErrorCode::kInvalid, what); }

Result<void> check_probe(const Probe& probe, int64_t prompt_tokens, int32_t vocab_size) {
  if (probe.after < 0 || probe.after >= prompt_tokens)
    return wrong("Expected a probe after one of the prompt's " + std::to_string(prompt_tokens) +
                 " tokens, found it after token " + std::to_string(probe.after));
  if (probe.token < 0 || probe.token >= vocab_size)
    return wrong("Expected a probe of a token below " + std::to_string(vocab_size) + ", found " +
                 std::to_string(probe.token));
  return {};
}

Result<void> check_attended(const AttendedSound& attended, int64_t prompt_tokens,
                            const HearingLimits& limits) {
  if (attended.heads.empty() || std::ssize(attended.heads) > kAttendedHeadsMax)
    return wrong("Expected 1 to " + std::to_string(kAttendedHeadsMax) +
                 " heads of which weights are wanted, found " +
                 std::to_string(attended.heads.size()));
  for (const auto& [layer, head] : attended.heads)
    if (layer < 0 || layer >= limits.layers || head < 0 || head >= limits.heads)
      return wrong("Expected heads below " + std::to_string(limits.heads) + " of layers below " +
                   std::to_string(limits.layers) + ", found head " + std::to_string(head) +
                   " of layer " + std::to_string(layer));
  if (attended.first < 0 || attended.first >= prompt_tokens)
    return wrong("Expected weights from one of the prompt's " + std::to_string(prompt_tokens) +
                 " tokens on, found " + std::to_string(attended.first));
  if (attended.rows < 1 || attended.rows > limits.rows)
    return wrong("Expected weights of 1 to " + std::to_string(limits.rows) +
                 " rows of the sound, found " + std::to_string(attended.rows));
  const int64_t numbers =
      std::ssize(attended.heads) * (prompt_tokens - attended.first) * attended.rows;
  if (std::ssize(attended.weights) != numbers)
    return wrong("Expected room for " + std::to_string(numbers) + " weights, found " +
                 std::to_string(attended.weights.size()));
  return {};
}

}  // namespace

Result<void> check_heard(const HeardSound* heard, const Probe* probe, const AttendedSound* attended,
                         int64_t prompt_tokens, int32_t vocab_size, const HearingLimits& limits) {
  if (limits.layers == 0 && (heard != nullptr || probe != nullptr || attended != nullptr))
    return wrong("This model attends to no sound beside its tokens");
  if (limits.layers == 0) return {};
  if (heard == nullptr || heard->features == nullptr)
    return wrong("This model transcribes sounds and answers nothing else: expected a sound, found "
                 "none");
  if (probe != nullptr) WEIR_TRY(check_probe(*probe, prompt_tokens, vocab_size));
  if (attended != nullptr) WEIR_TRY(check_attended(*attended, prompt_tokens, limits));
  return {};
}

}  // namespace weir::sched
