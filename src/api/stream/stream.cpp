#include "api/stream/stream.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "api/answer/timings.h"
#include "api/exchange/api_error.h"
#include "api/stream/deadline.h"
#include "base/check.h"
#include "base/prefetch.h"

namespace weir::api {

namespace {

// Of a choice and of a shape, what every token looks at.
constexpr size_t kHotChoiceBytes = 256;
constexpr size_t kHotShapeBytes = 128;

}  // namespace

Stream::Stream(StreamHost& host, ExchangePtr exchange, PreparedAnswer prepared,
               std::unique_ptr<AnswerShape> shape)
    : host_(host),
      exchange_(std::move(exchange)),
      responder_(exchange_->responder()),
      options_(std::move(prepared.options)),
      whole_(std::move(prepared.whole)),
      shape_(std::move(shape)),
      last_write_(exchange_->arrived()) {
  choices_.reserve(prepared.requests.size());
  for (OwnedRequest& request : prepared.requests)
    choices_.emplace_back(*host_.tokenizer, options_, std::move(request));
  if (!options_.prompt_logprobs) return;
  // The choices of one prompt share those of the first.
  const auto per_prompt = static_cast<size_t>(options_.choices_per_prompt);
  for (size_t i = 0; i < choices_.size(); i += per_prompt)
    choices_[i].prompt_logprobs =
        std::make_unique<PromptLogprobs>(*host_.tokenizer, *options_.prompt_logprobs);
}

Result<void> Stream::submit() {
  for (size_t i = 0; i < choices_.size(); ++i) {
    Result<void> submitted = host_.engine->submit(choices_[i].owned.request.get());
    if (submitted) continue;
    for (size_t k = 0; k < i; ++k) retire(choices_[k]);
    for (size_t k = i; k < choices_.size(); ++k) choices_[k].owned = {};  // Never lent.
    done_ = true;
    return submitted;
  }
  responder_.on_closed([weak = weak_from_this()] {
    if (const auto stream = weak.lock()) stream->abandon();
  });
  return {};
}

void Stream::prefetch(size_t step) const {
  if (step == 0) return weir::prefetch(this, sizeof *this);
  const Choice& choice = choices_.front();  // Most streams have no other.
  if (step == 1) {
    weir::prefetch(&choice, kHotChoiceBytes);
    weir::prefetch(shape_.get(), kHotShapeBytes);
    weir::prefetch(&responder_);
  } else if (const sched::Request* const request = choice.owned.request.get()) {
    if (step == 2) {
      weir::prefetch(&request->log, sizeof request->log);
      responder_.prefetch();
    } else {
      request->log.prefetch_entry(choice.read);
    }
  }
}

void Stream::poll(sched::Clock::time_point now) {
  now_ = now;
  made_ = 0;
  size_t sent = 0;
  while (!done_ && !paused_) {
    if (ending_ && !unsent_ && !shape_->has_more()) return end();
    if (started_ && responder_.queued_bytes() > host_.pause_bytes) return wait_for_client();
    if (made_ >= kMadePerPoll || sent >= kSentPerPoll) return host_.loop->wake();
    if (unsent_) {
      send_part(now);
      sent += host_.pause_bytes;
      continue;
    }
    if (ending_) {
      shape_->append_more(host_.out.text());
      flush(now);
      continue;
    }
    bool all_taken = true;
    for (size_t i = 0; i < choices_.size() && all_taken; ++i)
      if (!choices_[i].ended) all_taken = advance(choices_[i], static_cast<int32_t>(i), now);
    if (done_) return;  // It failed.
    if (ending_) continue;
    if (std::all_of(choices_.begin(), choices_.end(), [](const Choice& c) { return c.ended; })) {
      complete(now);
      continue;
    }
    sent += host_.out.size();
    flush(now);
    was_paused_ = false;
    if (all_taken && !unsent_) return;
  }
}

void Stream::flush(sched::Clock::time_point now) {
  if (host_.out.empty()) return;
  if (host_.out.size() > 2 * host_.pause_bytes) {
    unsent_ = std::make_unique<net::StreamBuffer>(std::exchange(host_.out, net::StreamBuffer()));
    unsent_begin_ = 0;
    return send_part(now);
  }
  if (!std::exchange(started_, true)) exchange_->start_stream(shape_->content_type());
  responder_.write(host_.out);
  last_write_ = now;
  if (responder_.closed()) abandon();
}

// Of what waits, as much as a connection may queue. Where an event is cut means nothing to clients.
void Stream::send_part(sched::Clock::time_point now) {
  const std::string_view part = unsent_->view().substr(unsent_begin_, host_.pause_bytes);
  host_.out.text().append(part);
  unsent_begin_ += part.size();
  if (unsent_begin_ == unsent_->size()) unsent_.reset();
  flush(now);
}

void Stream::wait_for_client() {
  paused_ = was_paused_ = true;
  responder_.on_drained([weak = weak_from_this()] {
    const auto stream = weak.lock();
    if (!stream || stream->done_) return;
    stream->paused_ = false;
    stream->poll(sched::Clock::now());
  });
}

void Stream::complete(sched::Clock::time_point now) {
  CHECK(!done_ && !ending_);
  set_figures();
  host_.stats->answer_time.observe(seconds(sched::Clock::now() - exchange_->arrived()));
  if (options_.shown_per_prompt < options_.choices_per_prompt) shape_->keep(likeliest_choices());
  if (!options_.stream) {
    auto body = std::make_unique<net::StreamBuffer>();
    shape_->end(body->text(), usage());
    if (body->size() <= kAnswerPartBytes && !shape_->has_more()) {
      done_ = true;
      exchange_->respond_json(body->view());
      return release();
    }
    exchange_->start_parts("application/json");
    started_ = ending_ = true;
    unsent_ = std::move(body);
    unsent_begin_ = 0;
    return;
  }
  ending_ = true;
  shape_->end(host_.out.text(), usage());
  flush(now);
}

// All is written.
void Stream::end() {
  done_ = true;
  if (!std::exchange(started_, true)) exchange_->start_stream(shape_->content_type());
  exchange_->end_stream();
  release();
}

// The client's next request may need the memory at once.
void Stream::release() {
  shape_.reset();
  whole_ = {};
}

// Of each prompt, by token, the likeliest first.
std::vector<int32_t> Stream::likeliest_choices() const {
  const auto mean = [&](int32_t i) {
    const Choice& choice = choices_[static_cast<size_t>(i)];
    return choice.read > 0 ? choice.logprob_sum / choice.read : -HUGE_VAL;
  };
  std::vector<int32_t> likeliest;
  for (int32_t first = 0; first < std::ssize(choices_); first += options_.choices_per_prompt) {
    std::vector<int32_t> group(static_cast<size_t>(options_.choices_per_prompt));
    std::iota(group.begin(), group.end(), first);
    std::ranges::stable_sort(group, std::greater<>(), mean);
    likeliest.insert(likeliest.end(), group.begin(), group.begin() + options_.shown_per_prompt);
  }
  return likeliest;
}

Usage Stream::usage() const {
  Usage usage;
  const auto per_prompt = static_cast<size_t>(options_.choices_per_prompt);
  for (size_t i = 0; i < choices_.size(); ++i) {
    usage.completion_tokens += choices_[i].read;
    if (choices_[i].parts) usage.reasoning_tokens += choices_[i].parts->reasoning_tokens;
    const Timings& timings = choices_[i].timings;
    usage.timings.predicted += timings.predicted;
    usage.timings.drafted += timings.drafted;
    usage.timings.draft_right += timings.draft_right;
    usage.predicted_right += choices_[i].predicted_right;
    usage.predicted_wrong += choices_[i].predicted_wrong;
    // Choices are computed side by side.
    usage.timings.prompt_ms = std::max(usage.timings.prompt_ms, timings.prompt_ms);
    usage.timings.predicted_ms = std::max(usage.timings.predicted_ms, timings.predicted_ms);
    if (i % per_prompt != 0) continue;  // The choices of one prompt share its tokens.
    usage.prompt_tokens += choices_[i].prompt_tokens;
    usage.cached_tokens += choices_[i].cached_tokens;
    usage.image_tokens += choices_[i].image_tokens;
    usage.audio_tokens += choices_[i].audio_tokens;
    usage.timings.cached += timings.cached;
    usage.timings.prompt += timings.prompt;
  }
  return usage;
}

// What the engine has begun. A choice that was sent away from the queue, or left it, has used
// nothing.
int64_t Stream::begun_prompt_tokens() const {
  int64_t tokens = 0;
  const auto per_prompt = options_.choices_per_prompt;
  for (auto first = choices_.begin(); first != choices_.end(); first += per_prompt)
    if (std::any_of(first, first + per_prompt, std::mem_fn(&Choice::computed)))
      tokens += first->prompt_tokens;
  return tokens;
}

// Before the choices part with their requests.
void Stream::set_figures() {
  const Usage total = usage();
  figures_.prompt_tokens = begun_prompt_tokens();
  figures_.cached_tokens = total.cached_tokens;
  figures_.output_tokens = total.completion_tokens;
  host_.stats->prompt_tokens.add(static_cast<uint64_t>(figures_.prompt_tokens));
  host_.stats->cached_prompt_tokens.add(static_cast<uint64_t>(total.cached_tokens));
  exchange_->set_figures(figures_);
}

void Stream::keep_alive(sched::Clock::time_point now) {
  if (done_ || ending_ || !options_.stream || now - last_write_ < host_.keep_alive) return;
  if (unsent_ || (started_ && responder_.queued_bytes() > 0)) return;
  host_.out.text() += shape_->keep_alive();
  flush(now);
}

double Stream::waiting_seconds(sched::Clock::time_point now) const {
  if (done_ || std::ranges::any_of(choices_, &Choice::computed)) return 0;
  return seconds(now - exchange_->arrived());
}

void Stream::expire(sched::Clock::time_point now) {
  if (done_ || ending_) return;
  const double age_s = seconds(now - exchange_->arrived());
  if (auto expiry = check_deadlines(host_, age_s, waiting_seconds(now)))
    fail(expiry->error, std::move(expiry->headers));
}

void Stream::list_open(std::vector<OpenRequest>& list, sched::Clock::time_point now) const {
  for (const Choice& choice : choices_)
    if (!choice.ended) list.push_back(open_request(*choice.owned.request, choice.read, now));
}

void Stream::fail(const Error& error, net::HttpResponder::Headers headers) {
  if (done_ || ending_) return;
  host_.stats->failures.add();
  set_figures();
  for (Choice& choice : choices_) retire(choice);
  if (!started_) {
    done_ = true;
    host_.out.clear();
    return exchange_->respond_error(error, std::move(headers));
  }
  ending_ = true;
  if (unsent_) return shape_->fail(unsent_->text(), error);  // After what waits.
  shape_->fail(host_.out.text(), error);
  const sched::Clock::time_point now = sched::Clock::now();
  flush(now);
  if (done_) return;  // The client is gone.
  if (!unsent_) return end();
  poll(now);
}

void Stream::abandon() {
  if (done_) return;
  done_ = true;
  unsent_.reset();
  if (!ending_) set_figures();
  for (Choice& choice : choices_) retire(choice);
  exchange_->abandon();
  release();
}

}  // namespace weir::api
