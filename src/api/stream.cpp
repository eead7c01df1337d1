#include "api/stream.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "api/api_error.h"
#include "api/deadline.h"
#include "base/check.h"
#include "base/prefetch.h"
#include "base/trace.h"

namespace weir::api {

namespace {

// Log-probabilities wait for the text of their tokens. Special tokens that are left out have none,
// so beyond this length an event without text carries them: far below what a connection may queue
// (HttpLimits::stream_queue_bytes_max), and more tokens than a stop string is likely to hold back.
constexpr size_t kWaitingLogprobBytesMax = 256 << 10;

// Of a token's id in JSON, with its comma.
constexpr size_t kTokenIdBytes = 8;

// What Mistral's templates ask of the id of a call.
constexpr size_t kShortIdBytes = 9;

// Text and JSON of a prompt that one event shows, about.
constexpr size_t kEchoBytes = 16 << 10;
// What one look at a stream may make of a prompt's JSON (less than a millisecond), and send: other
// streams, and connections, come in between.
constexpr size_t kMadePerPoll = 32 << 10;
constexpr size_t kSentPerPoll = 1 << 20;

// Of a choice and of a shape, what every token looks at.
constexpr size_t kHotChoiceBytes = 256;
constexpr size_t kHotShapeBytes = 128;

std::string_view name_of(FinishKind kind) {
  switch (kind) {
    case FinishKind::kStop:
      return "stop";
    case FinishKind::kLength:
      return "length";
    case FinishKind::kCalls:
      return "tool_calls";
  }
  return {};
}

double seconds(sched::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double milliseconds(sched::Clock::duration duration) { return 1000 * seconds(duration); }

text::Detokenizer::Options detokenizer_options(const AnswerOptions& options) {
  return {.stop = options.stop,
          .include_stop = options.include_stop,
          .skip_special = options.skip_special_tokens,
          .keep_special = options.markers,
          .strip_leading_space = options.begins_text};
}

}  // namespace

Stream::Choice::Choice(const text::Tokenizer& tokenizer, const AnswerOptions& options,
                       OwnedRequest request)
    : owned(std::move(request)),
      detokenizer(tokenizer, detokenizer_options(options)),
      prompt_tokens(static_cast<int64_t>(owned.request->prompt.size())) {
  if (options.logprobs)
    logprobs =
        std::make_unique<LogprobList>(options.logprob_style, tokenizer, options.top_logprobs);
  if (options.echo) echo = std::make_unique<Echo>(tokenizer);
  if (!options.parser) return;
  parts = std::make_unique<Parts>();
  parts->parser = output::make_parser(*options.parser);
}

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

bool Stream::advance(Choice& choice, int32_t index, sched::Clock::time_point now) {
  // The reason first: if it is there, the size read after it is final.
  const TokenLog& log = choice.owned.request->log;
  const FinishReason reason = log.finish_reason();
  const int32_t size = log.size();
  const int32_t before = choice.read;
  if (before == 0 && size > 0) choice.cached_tokens = choice.owned.request->cached_tokens;
  if (before == 0 && choice.owned.request->report_progress) show_progress(choice, index);
  if (choice.echo || choice.prompt_logprobs) {
    if (size == 0 && reason != FinishReason::kLength && reason != FinishReason::kStop) {
      if (reason != FinishReason::kNone) end_choice(choice, index, reason);
      return true;
    }
    if (!show_prompt(choice, index)) return false;
  }
  bool full = false;
  while (choice.read < size && !choice.detokenizer.stopped()) {
    full = host_.out.size() >= host_.pause_bytes;
    if (full) break;
    take_token(choice, index);
  }
  if (choice.read > before) observe(choice, before, now);
  if (full) return false;
  if (choice.detokenizer.stopped())
    end_choice(choice, index, FinishReason::kStop);
  else if (reason != FinishReason::kNone)
    end_choice(choice, index, reason);
  return true;
}

void Stream::show_progress(Choice& choice, int32_t index) {
  const sched::Request& request = *choice.owned.request;
  const int32_t done = request.prompt_done.load(std::memory_order_acquire);
  if (done <= choice.progress_shown) return;
  choice.progress_shown = done;
  std::string& out = begin(choice, index);
  shape_->progress(out, ref(choice, index),
                   {.total = choice.prompt_tokens,
                    .cached = request.prompt_cached.load(std::memory_order_relaxed),
                    .processed = done,
                    .time_ms = milliseconds(now_ - request.started)});
}

// REQUIRES: the engine has not parted with the request. Zeros before its prompt is computed.
Timings Stream::timings_of(const Choice& choice) const {
  const sched::Request& request = *choice.owned.request;
  if (choice.read == 0 && !request.log.finished()) return {};
  return {.cached = choice.cached_tokens,
          .prompt = choice.prompt_tokens - choice.cached_tokens,
          .prompt_ms = milliseconds(request.first_token - request.started),
          .predicted = choice.read,
          .predicted_ms = milliseconds(now_ - request.first_token)};
}

// The prompt's text and log-probabilities, which are known by now; false if it stopped because out_
// is full, or enough is made for now.
bool Stream::show_prompt(Choice& choice, int32_t index) {
  while (choice.prompt_logprobs && !choice.prompt_logprobs->done()) {
    if (made_ >= kMadePerPoll) return false;
    choice.prompt_logprobs->make(*choice.owned.request, kEchoBytes);
    made_ += kEchoBytes;
  }
  while (choice.echo && !choice.echo->done()) {
    if (host_.out.size() >= host_.pause_bytes || made_ >= kMadePerPoll) return false;
    made_ += kEchoBytes;
    const std::string text =
        choice.echo->take(*choice.owned.request, kEchoBytes, choice.logprobs.get());
    choice.text_bytes += static_cast<int64_t>(text.size());
    show(choice, index, text);
  }
  if (choice.echo) choice.answer_begin = choice.echo->end();
  choice.echo.reset();
  return true;
}

// Counts and times the tokens that have just been taken.
void Stream::observe(Choice& choice, int32_t before, sched::Clock::time_point now) {
  const sched::Request& request = *choice.owned.request;
  const int32_t taken = choice.read - before;
  host_.stats->output_tokens.add(static_cast<uint64_t>(taken));
  if (before == 0) {
    host_.stats->first_token.observe(seconds(request.first_token - request.arrived));
    figures_.queue_s = seconds(request.started - request.arrived);
    figures_.first_token_s = seconds(request.first_token - request.arrived);
  } else if (!was_paused_) {  // A client's pause is not ours.
    for (int32_t i = 0; i < taken; ++i)
      host_.stats->inter_token.observe(seconds(now - choice.last_token) / taken);
  }
  choice.last_token = now;
}

void Stream::take_token(Choice& choice, int32_t index) {
  const TokenLog& log = choice.owned.request->log;
  const TokenLogprob chosen = log[choice.read];
  const std::string_view text = [&] {
    const trace::Scope scope(trace::Kind::kNetwork, "detokenise");
    return choice.detokenizer.push(chosen.token);
  }();
  if (choice.logprobs) {
    text::Detokenizer::Place begin = choice.detokenizer.token_begin();
    begin.bytes += choice.answer_begin.bytes;
    begin.characters += choice.answer_begin.characters;
    choice.logprobs->add(chosen, log.top(choice.read), begin);
  }
  if (options_.return_token_ids) choice.tokens.push_back(chosen.token);
  choice.logprob_sum += double{chosen.logprob};
  ++choice.read;
  const bool reasoned = choice.parts && choice.parts->parser->in_reasoning();
  take_text(choice, index, text);
  if (reasoned || (choice.parts && choice.parts->parser->in_reasoning()))
    ++choice.parts->reasoning_tokens;
}

void Stream::take_text(Choice& choice, int32_t index, std::string_view text) {
  choice.text_bytes += static_cast<int64_t>(text.size());
  if (choice.parts) {
    Parts& parts = *choice.parts;
    parts.parser->push(text, parts.pieces);
    if (!parts.pieces.empty()) return show_parts(choice, index);
    text = {};
  }
  if (!text.empty() || waits_too_much(choice)) show(choice, index, text);
}

// What waits for text that is not coming.
bool Stream::waits_too_much(const Choice& choice) const {
  if (!options_.stream) return false;
  const size_t bytes = choice.logprobs ? choice.logprobs->json_bytes() : 0;
  return bytes + kTokenIdBytes * choice.tokens.size() > kWaitingLogprobBytesMax;
}

void Stream::drop_reasoning(Choice& choice, int32_t index) {
  if (waits_too_much(choice)) show(choice, index, {});
}

// Where what the choice says next is written; what precedes its first word is there already.
std::string& Stream::begin(Choice& choice, int32_t index) {
  std::string& out = host_.out.text();
  if (!std::exchange(begun_, true)) shape_->begin(out, usage());
  if (!std::exchange(choice.begun, true)) begin_choice(out, choice, index);
  return out;
}

ChoiceRef Stream::ref(Choice& choice, int32_t index) {
  if (options_.timings_per_token) timings_ = timings_of(choice);
  return {.index = index,
          .logprobs = choice.logprobs.get(),
          .tokens = options_.return_token_ids ? &choice.tokens : nullptr,
          .prompt_tokens = choice.prompt_tokens,
          .cached_tokens = choice.cached_tokens,
          .completion_tokens = choice.read,
          .timings = options_.timings_per_token ? &timings_ : nullptr};
}

void Stream::begin_choice(std::string& out, Choice& choice, int32_t index) {
  if (options_.shows_prompt) {
    PromptRef prompt{.tokens = choice.owned.request->prompt};
    if (const auto made = std::move(choice.prompt_logprobs)) prompt.logprobs = made->take();
    shape_->prompt(ref(choice, index), std::move(prompt));
  }
  shape_->begin_choice(out, ref(choice, index));
  if (!options_.preamble.empty())
    shape_->text(out, ref(choice, index).before_text(), options_.preamble);
}

void Stream::show(Choice& choice, int32_t index, std::string_view text) {
  std::string& out = begin(choice, index);
  shape_->text(out, ref(choice, index), text);
}

void Stream::show_parts(Choice& choice, int32_t index) {
  output::Pieces& pieces = choice.parts->pieces;
  for (size_t i = 0; i < pieces.size(); ++i) show_part(choice, index, pieces[i]);
  pieces.clear();
}

void Stream::show_part(Choice& choice, int32_t index, const output::Piece& piece) {
  std::string& out = begin(choice, index);
  const ChoiceRef ref = this->ref(choice, index);
  std::vector<std::string>& calls = choice.parts->calls;
  if (piece.kind == output::PieceKind::kCallBegin) calls.push_back(call_id(choice, piece.id));
  const int32_t call = static_cast<int32_t>(calls.size()) - 1;
  switch (piece.kind) {
    case output::PieceKind::kContent:
      return shape_->text(out, ref, piece.text);
    case output::PieceKind::kReasoning:
      if (options_.drop_reasoning) return drop_reasoning(choice, index);
      return shape_->reasoning(out, ref, piece.text);
    case output::PieceKind::kCallBegin:
      return shape_->begin_call(out, ref, {call, calls.back(), piece.text});
    case output::PieceKind::kCallArguments:
      return shape_->call_arguments(out, ref, call, piece.text);
    case output::PieceKind::kCallEnd:
      return shape_->end_call(out, ref, call);
  }
}

// The model's own, if it is the only one of its kind: templates write it back.
std::string Stream::call_id(const Choice& choice, std::string_view given) const {
  if (!given.empty() && std::ranges::find(choice.parts->calls, given) == choice.parts->calls.end())
    return std::string(given);
  if (options_.short_call_ids) return random_id({}).substr(0, kShortIdBytes);
  return random_id(options_.call_id_prefix);
}

// Of a choice that has ended as it should, before it parts with its request.
void Stream::observe_end(const Choice& choice) {
  ApiStats& stats = *host_.stats;
  const sched::Request& request = *choice.owned.request;
  stats.prompt_length.observe(static_cast<double>(choice.prompt_tokens));
  stats.answer_length.observe(choice.read);
  if (choice.read == 0) return;
  const double decode_s = seconds(choice.last_token - request.first_token);
  stats.prefill_time.observe(seconds(request.first_token - request.started));
  stats.decode_time.observe(decode_s);
  if (choice.read > 1) stats.mean_token_time.observe(decode_s / (choice.read - 1));
}

void Stream::end_choice(Choice& choice, int32_t index, FinishReason reason) {
  if (reason == FinishReason::kCancelled)
    return fail(Error{ErrorCode::kUnavailable, "The server is shutting down."});
  if (reason == FinishReason::kError) return fail(engine_error(*choice.owned.request, "answer"));
  if (choice.detokenizer.stopped()) {
    // The tokens of the stop string have no text, so they have no place beside it either.
    if (choice.logprobs && !options_.include_stop) choice.logprobs->drop_from(choice.text_bytes);
  } else if (const std::string_view rest = choice.detokenizer.finish(); !rest.empty()) {
    take_text(choice, index, rest);
  }
  if (choice.parts) {
    choice.parts->parser->finish(choice.parts->pieces);
    show_parts(choice, index);
  }
  choice.cached_tokens = choice.owned.request->cached_tokens;  // Also where no token came.
  // The token that ended it is one of the answer's, though it has no text.
  if (const int32_t end = choice.owned.request->end_token;
      options_.return_token_ids && reason == FinishReason::kStop && end >= 0 &&
      !choice.detokenizer.stopped())
    choice.tokens.push_back(end);
  const bool length = reason == FinishReason::kLength;
  (length ? host_.stats->finished_length : host_.stats->finished_stop).add();
  choice.timings = timings_of(choice);
  Finish finish{length ? FinishKind::kLength : FinishKind::kStop, choice.detokenizer.stop_string(),
                choice.timings};
  if (!length && choice.parts && !choice.parts->calls.empty()) finish.kind = FinishKind::kCalls;
  figures_.finish = name_of(finish.kind);
  shape_->finish(begin(choice, index), ref(choice, index), finish);
  choice.logprobs.reset();
  observe_end(choice);
  retire(choice);
}

// Parts with the choice's request: at once if the engine has finished it, else when it has.
void Stream::retire(Choice& choice) {
  choice.ended = true;
  OwnedRequest owned = std::move(choice.owned);
  if (!owned.request || owned.request->log.finished()) return;
  host_.engine->cancel(owned.request.get());
  host_.retired.push_back(std::move(owned));
}

void Stream::flush(sched::Clock::time_point now) {
  if (host_.out.empty()) return;
  if (host_.out.size() > 2 * host_.pause_bytes) {
    unsent_ = std::make_unique<net::StreamBuffer>(std::exchange(host_.out, net::StreamBuffer()));
    unsent_begin_ = 0;
    return send_part(now);
  }
  if (!std::exchange(started_, true)) exchange_->start_stream();
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
    exchange_->start_json();
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
  if (!std::exchange(started_, true)) exchange_->start_stream();
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
    // Choices are computed side by side.
    usage.timings.prompt_ms = std::max(usage.timings.prompt_ms, timings.prompt_ms);
    usage.timings.predicted_ms = std::max(usage.timings.predicted_ms, timings.predicted_ms);
    if (i % per_prompt != 0) continue;  // The choices of one prompt share its tokens.
    usage.prompt_tokens += choices_[i].prompt_tokens;
    usage.cached_tokens += choices_[i].cached_tokens;
    usage.timings.cached += timings.cached;
    usage.timings.prompt += timings.prompt;
  }
  return usage;
}

// What the engine has begun. Who was sent away from the queue, or left it, has used nothing.
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
  if (unsent_) return shape_->fail(unsent_->text(), error);  // Behind what waits.
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
