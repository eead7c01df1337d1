#include "api/batch_answer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "api/api_error.h"
#include "api/deadline.h"

namespace weir::api {

namespace {

// Requests of one answer that the engine has at once, at most, and never more than half its queue:
// twice what a step of 512 tokens holds of sentences with four.
constexpr size_t kOpenMax = 256;

double seconds(sched::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

BatchAnswer::BatchAnswer(StreamHost& host, ExchangePtr exchange, PreparedBatch prepared)
    : host_(host), exchange_(std::move(exchange)), prepared_(std::move(prepared)) {
  for (const OwnedRequest& owned : prepared_.requests)
    figures_.prompt_tokens += std::ssize(owned.request->prompt);
}

Result<void> BatchAnswer::submit() {
  if (Result<void> submitted = submit_more(); !submitted && open_.empty()) {
    ended_ = true;
    return submitted;
  }
  exchange_->responder().on_closed([weak = weak_from_this()] {
    if (const auto answer = weak.lock()) answer->abandon();
  });
  return {};
}

// The error of the first request that the engine does not take.
Result<void> BatchAnswer::submit_more() {
  const size_t open_max =
      std::clamp<size_t>(static_cast<size_t>(host_.engine->queue_max()) / 2, 1, kOpenMax);
  while (next_ < prepared_.requests.size() && open_.size() < open_max) {
    WEIR_TRY(host_.engine->submit(prepared_.requests[next_].request.get()));
    open_.push_back(next_++);
  }
  return {};
}

void BatchAnswer::poll() {
  if (ended_ || writing_) return;
  take_finished();
  if (ended_) return;
  // A full queue may have room when the next step is through, or at the latest with the next tick.
  if (const Result<void> more = submit_more(); !more && more.error().code != ErrorCode::kOverloaded)
    return fail(more.error());
  if (open_.empty() && next_ == prepared_.requests.size()) write();
}

void BatchAnswer::take_finished() {
  for (size_t i = 0; i < open_.size();) {
    const sched::Request& finished = request(open_[i]);
    const FinishReason reason = finished.log.finish_reason();
    if (reason == FinishReason::kNone) {
      ++i;
      continue;
    }
    if (reason == FinishReason::kCancelled)
      return fail(Error{ErrorCode::kUnavailable, "The server is shutting down."});
    if (reason == FinishReason::kError) return fail(engine_error(finished, "input"));
    figures_.cached_tokens += finished.cached_tokens;
    figures_.queue_s = seconds(finished.started - finished.arrived);
    figures_.first_token_s = seconds(finished.first_token - finished.arrived);
    open_[i] = open_.back();
    open_.pop_back();
  }
}

// All are finished. Millions of numbers take a while to write.
void BatchAnswer::write() {
  const auto json = std::make_shared<std::optional<Result<std::string>>>();
  writing_ = host_.loop->run_in_pool(
      [json, self = shared_from_this()] {
        *json = self->prepared_.write(self->prepared_.requests, self->figures_.prompt_tokens);
      },
      [json, self = shared_from_this()] {
        self->writing_ = false;
        self->send(**json);
      });
}

void BatchAnswer::send(const Result<std::string>& json) {
  if (ended_) return;
  if (!json) return fail(json.error());
  ended_ = true;
  host_.stats->prompt_tokens.add(static_cast<uint64_t>(figures_.prompt_tokens));
  host_.stats->cached_prompt_tokens.add(static_cast<uint64_t>(figures_.cached_tokens));
  host_.stats->answer_time.observe(seconds(sched::Clock::now() - exchange_->arrived()));
  exchange_->set_figures(figures_);
  exchange_->respond_json(*json);
}

double BatchAnswer::waiting_seconds(sched::Clock::time_point now) const {
  const auto begun = [this](size_t index) {
    return request(index).begun.load(std::memory_order_acquire);
  };
  // Open ones come from the front, so where one is missing it has been finished.
  const bool any_finished = open_.size() < next_;
  if (ended_ || any_finished || std::ranges::any_of(open_, begun)) return 0;
  return seconds(now - exchange_->arrived());
}

void BatchAnswer::expire(sched::Clock::time_point now) {
  if (ended_ || writing_) return;
  const double age_s = seconds(now - exchange_->arrived());
  if (auto expiry = check_deadlines(host_, age_s, waiting_seconds(now)))
    fail(expiry->error, std::move(expiry->headers));
}

void BatchAnswer::list_open(std::vector<OpenRequest>& list, sched::Clock::time_point now) const {
  for (const size_t index : open_) list.push_back(open_request(request(index), 0, now));
}

// Of what the engine has begun: who was sent away from the queue, or left it, has used nothing.
AnswerFigures BatchAnswer::figures_so_far() const {
  if (writing_) return figures_;  // It has finished all; the pool looks at them.
  AnswerFigures figures = figures_;
  figures.prompt_tokens = 0;
  for (size_t i = 0; i < next_; ++i)
    if (request(i).begun.load(std::memory_order_acquire))
      figures.prompt_tokens += std::ssize(request(i).prompt);
  return figures;
}

void BatchAnswer::fail(const Error& error, net::HttpResponder::Headers headers) {
  if (ended_) return;
  exchange_->set_figures(figures_so_far());
  end_requests();
  host_.stats->failures.add();
  exchange_->respond_error(error, std::move(headers));
}

void BatchAnswer::abandon() {
  if (ended_) return;
  exchange_->set_figures(figures_so_far());
  end_requests();
  exchange_->abandon();
}

void BatchAnswer::end_requests() {
  ended_ = true;
  for (const size_t index : open_) {
    OwnedRequest& owned = prepared_.requests[index];
    if (owned.request->log.finished()) continue;
    host_.engine->cancel(owned.request.get());
    host_.retired.push_back(std::move(owned));
  }
  open_.clear();
}

}  // namespace weir::api
