// A choice of a Stream: from the tokens of its log to what its AnswerShape is told. What is written
// where and when: stream.cpp.
#include <algorithm>
#include <utility>

#include "api/answer/timings.h"
#include "api/exchange/api_error.h"
#include "api/stream/stream.h"
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
  if (const auto& media = owned.request->media)
    for (const sched::Medium& medium : media->items)
      (medium.is_sound() ? audio_tokens : image_tokens) += medium.features();
  if (options.logprobs)
    logprobs =
        std::make_unique<LogprobList>(options.logprob_style, tokenizer, options.top_logprobs);
  if (options.echo) echo = std::make_unique<Echo>(tokenizer);
  if (!options.parser) return;
  parts = std::make_unique<Parts>();
  parts->parser = output::make_parser(*options.parser);
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
          .predicted_ms = milliseconds(now_ - request.first_token),
          .drafted = request.draft_counts.verified.load(std::memory_order_relaxed),
          .draft_right = request.draft_counts.right.load(std::memory_order_relaxed)};
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
    const double waited_s = seconds(request.first_token - request.arrived);
    host_.stats->first_token.observe(waited_s);
    host_.times.first_token.observe(waited_s);
    figures_.queue_s = seconds(request.started - request.arrived);
    figures_.first_token_s = waited_s;
  } else if (!was_paused_) {  // A client's pause is not ours.
    const double gap_s = seconds(now - choice.last_token) / taken;
    for (int32_t i = 0; i < taken; ++i) {
      host_.stats->inter_token.observe(gap_s);
      host_.times.inter_token.observe(gap_s);
    }
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
  const sched::DraftCounts& drafts = choice.owned.request->draft_counts;
  choice.predicted_right = drafts.predicted_right.load(std::memory_order_relaxed);
  choice.predicted_wrong =
      drafts.predicted.load(std::memory_order_relaxed) - choice.predicted_right;
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

}  // namespace weir::api
