#include "api/stream/batch_answer.h"

#include <algorithm>
#include <utility>

#include "api/answer/timings.h"
#include "api/exchange/api_error.h"
#include "api/stream/deadline.h"

namespace weir::api {

namespace {

// Requests of one answer that the engine has at once, at most: twice what a step of 512 tokens
// holds of sentences with four.
constexpr size_t kOpenMax = 256;

}  // namespace

BatchAnswer::BatchAnswer(StreamHost& host, ExchangePtr exchange, PreparedBatch prepared,
                         uint64_t& next_id)
    : host_(host),
      exchange_(std::move(exchange)),
      next_id_(next_id),
      prepared_(std::move(prepared)) {}

Result<void> BatchAnswer::submit() {
  Result<void> submitted = submit_more();
  const sched::EngineHandle& engine = *host_.engine;
  if (submitted && open_.empty() && engine.open() >= engine.queue_max())
    submitted = tl::unexpected(engine.queue_full());
  if (!submitted && open_.empty()) {
    ended_ = true;
    release();
    return submitted;
  }
  exchange_->responder().on_closed([weak = weak_from_this()] {
    if (const auto answer = weak.lock()) answer->abandon();
  });
  return {};
}

// For one request more: of the queue, and beyond the first, which is the answer's own, of the key.
bool BatchAnswer::take_place() {
  const bool is_first = open_.empty();
  if (!is_first && !exchange_->lend_place()) return false;
  if (host_.queue_share->take(exchange_->caller(), host_.engine->open())) return true;
  if (!is_first) exchange_->give_back_places(1);
  return false;
}

// The error of the first request that the engine does not take.
Result<void> BatchAnswer::submit_more() {
  BatchTask& task = *prepared_.task;
  while (open_.size() < kOpenMax) {
    const std::optional<size_t> bytes = task.next_bytes();
    if (!bytes || open_bytes_ + *bytes > prepared_.lent_bytes) break;
    if (!take_place()) break;
    Open open{*bytes, task.next()};
    open.request->id = next_id_++;
    open.request->arrived = exchange_->arrived();
    open.request->priority = prepared_.priority;
    open.request->caller = exchange_->caller();
    open.request->adapter = prepared_.adapter.weights;
    open.request->adapter_scale = prepared_.adapter.scale;
    open.request->adapter_key = prepared_.adapter.key;
    if (Result<void> submitted = host_.engine->submit(open.request.get()); !submitted) {
      give_back(1);
      if (!open_.empty()) exchange_->give_back_places(1);
      return submitted;
    }
    open.number = task.take_next();
    open_bytes_ += *bytes;
    open_.push_back(std::move(open));
  }
  return {};
}

void BatchAnswer::poll() {
  if (ended_ || making_ || paused_) return;
  if (started_) return send_piece();  // The pool had no room for the next one.
  take_finished();
  if (ended_) return;
  // A full queue may have room when the next step is through, or at the latest with the next tick.
  if (const Result<void> more = submit_more(); !more && more.error().code != ErrorCode::kOverloaded)
    return fail(more.error());
  if (prepared_.task->has_work()) return do_work();
  const bool told = !prepared_.task->streams() || send_events();
  if (ended_ || !open_.empty() || prepared_.task->next_bytes()) return;
  if (prepared_.task->streams()) {
    if (!told) return;
    set_figures();
    exchange_->end_stream();
    return end();
  }
  prepared_.computing = {};
  make_piece();
}

void BatchAnswer::take_finished() {
  for (size_t i = 0; i < open_.size();) {
    sched::Request& request = *open_[i].request;
    const FinishReason reason = request.log.finish_reason();
    if (reason == FinishReason::kNone) {
      ++i;
      continue;
    }
    if (reason == FinishReason::kCancelled)
      return fail(Error{ErrorCode::kUnavailable, "The server is shutting down."});
    if (reason == FinishReason::kError) return fail(engine_error(request, "input"));
    prepared_.task->keep(open_[i].number, request);
    any_finished_ = true;
    computed_tokens_ += prepared_.task->prompt_tokens(request);
    figures_.cached_tokens += request.cached_tokens;
    figures_.queue_s = seconds(request.started - request.arrived);
    figures_.first_token_s = seconds(request.first_token - request.arrived);
    open_bytes_ -= open_[i].bytes;
    std::swap(open_[i], open_.back());
    open_.pop_back();
    if (!open_.empty()) exchange_->give_back_places(1);
    give_back(1);
  }
}

// Places in the queue. Answers that wait for some look again soon.
void BatchAnswer::give_back(size_t places) {
  if (places > 0 && host_.queue_share->give_back(exchange_->caller(), places)) host_.loop->wake();
}

// What there is to tell, if the client has taken what was told before; false: it has not.
bool BatchAnswer::send_events() {
  net::HttpResponder& responder = exchange_->responder();
  if (responder.queued_bytes() > host_.pause_bytes) {
    paused_ = true;
    responder.on_drained([weak = weak_from_this()] {
      const auto answer = weak.lock();
      if (!answer || answer->ended_) return;
      answer->paused_ = false;
      answer->poll();
    });
    return false;
  }
  piece_.clear();
  prepared_.task->append_events(piece_);
  if (piece_.empty()) return true;
  exchange_->start_stream(prepared_.task->content_type());
  responder.write(piece_);
  last_write_ = sched::Clock::now();
  if (responder.closed()) abandon();
  return true;
}

void BatchAnswer::keep_alive(sched::Clock::time_point now) {
  if (ended_ || paused_ || !prepared_.task->streams() || now - last_write_ < host_.keep_alive)
    return;
  last_write_ = now;
  exchange_->start_stream(prepared_.task->content_type());
  if (exchange_->responder().queued_bytes() == 0)
    exchange_->responder().write(": keep-alive\n\n");
}

// Of an answer whose requests have all finished.
void BatchAnswer::set_figures() {
  figures_.prompt_tokens = prepared_.prompt_tokens;
  figures_.output_tokens = prepared_.task->output_tokens();
  figures_.given_up_tokens = prepared_.task->given_up_tokens();
  host_.stats->prompt_tokens.add(static_cast<uint64_t>(figures_.prompt_tokens));
  host_.stats->cached_prompt_tokens.add(static_cast<uint64_t>(figures_.cached_tokens));
  host_.stats->output_tokens.add(static_cast<uint64_t>(figures_.output_tokens));
  exchange_->set_figures(figures_);
}

// Meanwhile the engine goes on with what it has.
void BatchAnswer::do_work() {
  making_ = host_.loop->run_in_pool([self = shared_from_this()] { self->prepared_.task->work(); },
                                    [self = shared_from_this()] {
                                      self->making_ = false;
                                      if (self->ended_) return self->release();
                                      self->poll();
                                    });
}

// All is computed. Millions of numbers take a while to write.
void BatchAnswer::make_piece() {
  making_ = host_.loop->run_in_pool([self = shared_from_this()] { self->write_piece(); },
                                    [self = shared_from_this()] {
                                      self->making_ = false;
                                      self->send();
                                    });
}

void BatchAnswer::write_piece() {
  const BatchTask& task = *prepared_.task;
  piece_.clear();
  if (!items_) {
    items_ = prepared_.task->finish();
    if (!*items_) return;
    task.append_head(piece_);
  }
  for (; next_item_ < **items_ && piece_.size() < kBatchPieceBytes; ++next_item_)
    task.append_item(piece_, next_item_);
  last_ = next_item_ == **items_;
  if (last_) task.append_tail(piece_, prepared_.prompt_tokens);
}

// The piece that was made. An answer of one is sent whole.
void BatchAnswer::send() {
  if (ended_) return release();
  if (!*items_) return fail(items_->error());
  piece_begin_ = 0;
  if (!started_) {
    set_figures();
    const std::string_view type = prepared_.task->content_type();
    if (last_) {
      exchange_->respond(200, type, piece_);
      return end();
    }
    exchange_->start_parts(type);
    started_ = true;
  }
  send_piece();
}

// As much as a connection may queue; the next piece is made when the client has taken this one.
void BatchAnswer::send_piece() {
  net::HttpResponder& responder = exchange_->responder();
  while (piece_begin_ < piece_.size()) {
    if (responder.queued_bytes() > host_.pause_bytes) return wait_for_client();
    const auto part = std::string_view(piece_).substr(piece_begin_, host_.pause_bytes);
    piece_begin_ += part.size();
    responder.write(part);
    if (responder.closed()) return abandon();
  }
  if (!last_) return make_piece();
  exchange_->end_stream();
  end();
}

void BatchAnswer::wait_for_client() {
  paused_ = true;
  exchange_->responder().on_drained([weak = weak_from_this()] {
    const auto answer = weak.lock();
    if (!answer || answer->ended_) return;
    answer->paused_ = false;
    answer->send_piece();
  });
}

void BatchAnswer::end() {
  ended_ = true;
  host_.stats->answer_time.observe(seconds(sched::Clock::now() - exchange_->arrived()));
  release();
}

// The client's next request may need the memory at once.
void BatchAnswer::release() {
  if (making_) return;
  prepared_ = {};
  std::string().swap(piece_);
}

double BatchAnswer::waiting_seconds(sched::Clock::time_point now) const {
  const auto begun = [](const Open& open) {
    return open.request->begun.load(std::memory_order_acquire);
  };
  if (ended_ || any_finished_ || std::ranges::any_of(open_, begun)) return 0;
  return seconds(now - exchange_->arrived());
}

void BatchAnswer::expire(sched::Clock::time_point now) {
  if (ended_ || making_ || started_) return;
  const double age_s = seconds(now - exchange_->arrived());
  if (auto expiry = check_deadlines(host_, age_s, waiting_seconds(now)))
    fail(expiry->error, std::move(expiry->headers));
}

void BatchAnswer::list_open(std::vector<OpenRequest>& list, sched::Clock::time_point now) const {
  for (const Open& open : open_) list.push_back(open_request(*open.request, 0, now));
}

// Of what the engine has begun: a request that was sent away from the queue, or left it, has used
// nothing.
AnswerFigures BatchAnswer::figures_so_far() const {
  AnswerFigures figures = figures_;
  figures.prompt_tokens = computed_tokens_;
  for (const Open& open : open_)
    if (open.request->begun.load(std::memory_order_acquire))
      figures.prompt_tokens += prepared_.task->prompt_tokens(*open.request);
  return figures;
}

void BatchAnswer::fail(const Error& error, net::HttpResponder::Headers headers) {
  if (ended_ || started_) return;
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
  for (Open& open : open_) {
    if (open.request->log.finished()) continue;
    host_.engine->cancel(open.request.get());
    host_.retired.push_back({prepared_.computing.part(open.bytes), std::move(open.request)});
  }
  give_back(open_.size());
  open_.clear();
  release();
}

}  // namespace weir::api
