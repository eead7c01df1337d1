// EngineHandle: what is refused at once, and the bell that wakes the engine.
#include "sched/engine_handle.h"

#include <algorithm>
#include <bit>
#include <string>
#include <thread>
#include <utility>

#include "base/check.h"

namespace weir::sched {

namespace {

// Between two looks into the inbox there may be, of each queued request, a submission and a
// cancellation, and as many cancellations of requests that have just finished: 3, rounded up to a
// power of two.
constexpr size_t kMessagesPerRequest = 4;

size_t inbox_capacity_for(int32_t queue_max, size_t asked) {
  CHECK(queue_max > 0);
  return std::bit_ceil(std::max(asked, static_cast<size_t>(queue_max) * kMessagesPerRequest));
}

}  // namespace

EngineHandle::EngineHandle(int32_t queue_max, size_t inbox_capacity, Bell& bell)
    : queue_max_(queue_max), inbox_(inbox_capacity_for(queue_max, inbox_capacity)), bell_(bell) {}

void EngineHandle::give_up(std::string why) {
  auto text = std::make_unique<const std::string>(std::move(why));
  const std::string* none = nullptr;
  if (given_up_.compare_exchange_strong(none, text.get(), std::memory_order_acq_rel))
    (void)text.release();
}

Result<void> EngineHandle::submit(Request* request) {
  if (const std::string* why = given_up()) return fail(ErrorCode::kUnavailable, *why);
  WEIR_TRY(check(*request));
  // The count rises before we look at `draining_`: an engine that stops waits for threads that are
  // between the two.
  const bool full = open_.fetch_add(1, std::memory_order_seq_cst) >= queue_max_;
  if (full || draining_.load(std::memory_order_seq_cst)) {
    open_.fetch_sub(1, std::memory_order_seq_cst);
    if (draining()) return fail(ErrorCode::kUnavailable, "The server is shutting down");
    return tl::unexpected(queue_full());
  }
  CHECK(inbox_.try_push(Message{.kind = Message::Kind::kSubmit, .request = request}));
  bell_.ring();
  return {};
}

Error EngineHandle::queue_full() const {
  return {ErrorCode::kOverloaded,
          "The queue of " + std::to_string(queue_max_) + " requests is full; try again later"};
}

Result<void> EngineHandle::check(const Request& request) const {
  const int64_t tokens = std::ssize(request.prompt) + int64_t{request.max_tokens};
  if (max_tokens_fit() == 0) return fail(ErrorCode::kUnavailable, "The model is still loading");
  if (request.prompt.empty()) return fail(ErrorCode::kInvalid, "The prompt has no tokens");
  if (request.max_tokens < 0)
    return fail(ErrorCode::kInvalid,
                "Expected max_tokens of at least 0, found " + std::to_string(request.max_tokens));
  WEIR_TRY(check_parts(request));
  if (request.sampling.top_logprobs < 0 || request.sampling.top_logprobs > kTopLogprobsMax)
    return fail(ErrorCode::kInvalid, "Expected top_logprobs between 0 and " +
                                         std::to_string(kTopLogprobsMax) + ", found " +
                                         std::to_string(request.sampling.top_logprobs));
  if (tokens > max_tokens_fit())
    return fail(ErrorCode::kContextLength, "Expected at most " + std::to_string(max_tokens_fit()) +
                                               " tokens of prompt and output together, found " +
                                               std::to_string(tokens));
  const int32_t vocab_size = vocab_size_.load(std::memory_order_relaxed);
  for (const int32_t token : request.prompt)
    if (token < 0 || token >= vocab_size)
      return fail(ErrorCode::kInvalid, "Expected token ids below " + std::to_string(vocab_size) +
                                           ", found " + std::to_string(token));
  WEIR_TRY(check_hearing(request));
  if (request.media) return check_media(*request.media, std::ssize(request.prompt), media_);
  return {};
}

Result<void> EngineHandle::check_hearing(const Request& request) const {
  const Probe* const probe = request.probe ? &*request.probe : nullptr;
  WEIR_TRY(check_heard(request.heard.get(), probe,
                       request.attended ? &*request.attended : nullptr,
                       std::ssize(request.prompt), vocab_size_.load(std::memory_order_relaxed),
                       hearing_));
  if (request.attended && request.max_tokens != 0)
    return fail(ErrorCode::kInvalid, "Expected no answer where weights of the prompt are wanted, found " +
                                         std::to_string(request.max_tokens) + " tokens");
  if (probe == nullptr) return {};
  // A row has one job.
  if (request.prompt_log || request.pooling != Pooling::kNone)
    return fail(ErrorCode::kInvalid,
                "Expected a probe, or the prompt's log-probabilities or vector, found both");
  if (request.max_tokens == 0 && probe->after + 1 == std::ssize(request.prompt))
    return fail(ErrorCode::kInvalid, "Expected an answer where the prompt's last token is probed");
  return {};
}

// What the caller of submit() has to bring along besides tokens.
Result<void> EngineHandle::check_parts(const Request& request) const {
  const bool pools = request.pooling != Pooling::kNone;
  const auto hidden = static_cast<size_t>(hidden_size_.load(std::memory_order_relaxed));
  if (pools && (request.max_tokens != 0 || request.pooled.size() != hidden))
    return fail(ErrorCode::kInvalid, "Expected no answer and " + std::to_string(hidden) +
                                         " places to pool into, found " +
                                         std::to_string(request.max_tokens) + " tokens and " +
                                         std::to_string(request.pooled.size()) + " places");
  if (pools && request.prompt_log)
    return fail(ErrorCode::kInvalid,
                "Expected a vector or the prompt's log-probabilities, found both");
  const std::vector<int32_t>& reported = request.sampling.reported;
  const int32_t vocab_size = vocab_size_.load(std::memory_order_relaxed);
  if (!reported.empty() && std::ssize(reported) != request.sampling.top_logprobs)
    return fail(ErrorCode::kInvalid, "Expected top_logprobs to be the number of tokens reported, " +
                                         std::to_string(reported.size()) + ", found " +
                                         std::to_string(request.sampling.top_logprobs));
  for (const int32_t token : reported)
    if (token < 0 || token >= vocab_size)
      return fail(ErrorCode::kInvalid, "Expected reported token ids below " +
                                           std::to_string(vocab_size) + ", found " +
                                           std::to_string(token));
  const TokenLog* log = request.prompt_log.get();
  if (log && (log->capacity() != std::ssize(request.prompt) - 1 ||
              log->top_count() != request.sampling.prompt_top_logprobs ||
              log->top_count() > kTopLogprobsMax))
    return fail(ErrorCode::kInvalid,
                "Expected a log of each token of the prompt but the first, found one of " +
                    std::to_string(log->capacity()));
  const size_t ranks = request.prompt_ranks.size();
  if (ranks > 0 && (!log || std::ssize(request.prompt_ranks) != log->capacity()))
    return fail(ErrorCode::kInvalid, "Expected a rank for each entry of the prompt's log, found " +
                                         std::to_string(ranks));
  return {};
}

void EngineHandle::cancel(Request* request) {
  // The ring can only be full if the same request is cancelled over and over.
  while (!inbox_.try_push(Message{.kind = Message::Kind::kCancel, .request = request})) {
    if (open() == 0) return;
    std::this_thread::yield();
  }
  bell_.ring();
}

}  // namespace weir::sched
