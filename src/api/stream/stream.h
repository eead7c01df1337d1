// Stream: one open answer, with one or more choices. Reads the tokens that the engine logs, turns
// them into text, and tells its AnswerShape, which writes events or a whole answer.
//
// Threads: the loop's.
//
// Invariants:
// (1) A request handed to the engine is owned by its choice, or by StreamHost::retired until its
//     log is finished; nowhere is it freed before.
// (2) After done() nothing is written and no choice owns a request.
// (3) StreamHost::out is empty outside of the public functions.
// (4) While there is something in unsent_, nothing is taken from the logs: a connection queues no
// more
//     than a few times StreamHost::pause_bytes of a stream, however long one of its events is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/access/queue_share.h"
#include "api/answer/answer_shape.h"
#include "api/answer/echo.h"
#include "api/answer/logprob_list.h"
#include "api/answer/prompt_logprobs.h"
#include "api/exchange/api_stats.h"
#include "api/exchange/exchange.h"
#include "api/output/output_parser.h"
#include "api/output/pieces.h"
#include "api/prompt/prepare.h"
#include "api/stream/open_request.h"
#include "net/loop.h"
#include "sched/engine_handle.h"
#include "text/detokenizer.h"

namespace weir::api {

// What all streams share.
struct StreamHost {
  const text::Tokenizer* tokenizer = nullptr;
  sched::EngineHandle* engine = nullptr;
  ApiStats* stats = nullptr;
  AnswerTimes times{};
  net::Loop* loop = nullptr;
  size_t pause_bytes = 64 << 10;
  std::chrono::milliseconds keep_alive{15'000};
  // 0: none.
  std::chrono::duration<double> queue_timeout{0};    // Until the engine begins.
  std::chrono::duration<double> request_timeout{0};  // Until the end.
  QueueShare* queue_share = nullptr;                 // Of the requests of batch answers.
  // Requests whose client needs no more of them, until the engine has finished them.
  std::vector<OwnedRequest> retired;
  // The events of the stream that is looked at, until they are written: one stream after the other
  // uses it, so it stays in the processor's nearest cache.
  net::StreamBuffer out;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(StreamHost& host, ExchangePtr exchange, PreparedAnswer prepared,
         std::unique_ptr<AnswerShape> shape);

  // Lends the requests to the engine. On error none stays with it, and the stream is done; the
  // caller answers. REQUIRES: a shared_ptr owns the stream.
  Result<void> submit();

  // Takes what is new and writes it, in one write if the client keeps up.
  void poll(sched::Clock::time_point now);
  // Sends a comment after a long silence.
  void keep_alive(sched::Clock::time_point now);
  // Ends the answer if it has waited or taken too long.
  void expire(sched::Clock::time_point now);
  // Since it arrived, if the engine has begun none of its choices; else 0.
  double waiting_seconds(sched::Clock::time_point now) const;
  void list_open(std::vector<OpenRequest>& list, sched::Clock::time_point now) const;
  // Ends the answer with an error: as a response, or as an event if the stream has begun.
  void fail(const Error& error, net::HttpResponder::Headers headers = {});
  // The client is gone.
  void abandon();

  uint64_t caller() const { return exchange_->caller(); }
  bool done() const { return done_; }
  // Nothing is left but to hand the client what is written: the engine has nothing of it.
  bool ending() const { return ending_; }

  // Hints that poll() comes soon. Where there are a thousand streams, none is in a near cache when
  // its turn comes; what it needs hangs on a chain of pointers. Step by step, with time between the
  // steps, each asks for what the one before has made readable.
  static constexpr size_t kPrefetchSteps = 4;
  void prefetch(size_t step) const;

 private:
  // What one look at a stream may make of a prompt's JSON (less than a millisecond), and send:
  // other streams, and connections, come in between.
  static constexpr size_t kMadePerPoll = 32 << 10;
  static constexpr size_t kSentPerPoll = 1 << 20;

  // What takes a choice's text apart that is not all content.
  struct Parts {
    std::unique_ptr<output::OutputParser> parser;
    output::Pieces pieces;           // Just found.
    std::vector<std::string> calls;  // Their ids.
    int64_t reasoning_tokens = 0;
  };

  struct Choice {
    Choice(const text::Tokenizer& tokenizer, const AnswerOptions& options, OwnedRequest request);

    // Waits in the engine's queue no more.
    bool computed() const { return ended || owned.request->begun.load(std::memory_order_acquire); }

    OwnedRequest owned;          // Empty once the choice has ended.
    int32_t read = 0;            // Tokens taken from the log.
    int32_t progress_shown = 0;  // Of the prompt.
    bool begun = false;          // Its shape knows of it.
    bool ended = false;
    int64_t text_bytes = 0;  // Markers included.
    sched::Clock::time_point last_token{};
    std::unique_ptr<LogprobList> logprobs;            // If asked for.
    std::vector<int32_t> tokens;                      // As they wait to be sent, if asked for.
    std::unique_ptr<Echo> echo;                       // Until the prompt is shown.
    std::unique_ptr<PromptLogprobs> prompt_logprobs;  // Until they are shown.
    text::Detokenizer::Place answer_begin;            // After the prompt, if that is shown.
    double logprob_sum = 0;                           // Of the tokens read.
    text::Detokenizer detokenizer;
    std::unique_ptr<Parts> parts;  // If there is anything to find.
    int64_t prompt_tokens = 0, cached_tokens = 0, image_tokens = 0, audio_tokens = 0;
    Timings timings;  // Once it has ended, as
    int64_t predicted_right = 0, predicted_wrong = 0;  // Usage has them.
  };

  // Takes tokens until there are none or out_ is full; false if it stopped because out_ is full.
  bool advance(Choice& choice, int32_t index, sched::Clock::time_point now);
  bool show_prompt(Choice& choice, int32_t index);
  void observe_end(const Choice& choice);
  void show_progress(Choice& choice, int32_t index);
  Timings timings_of(const Choice& choice) const;
  void observe(Choice& choice, int32_t before, sched::Clock::time_point now);
  void take_token(Choice& choice, int32_t index);
  void take_text(Choice& choice, int32_t index, std::string_view text);
  bool waits_too_much(const Choice& choice) const;
  ChoiceRef ref(Choice& choice, int32_t index);
  std::string& begin(Choice& choice, int32_t index);
  void begin_choice(std::string& out, Choice& choice, int32_t index);
  void show(Choice& choice, int32_t index, std::string_view text);
  void show_parts(Choice& choice, int32_t index);
  void show_part(Choice& choice, int32_t index, const output::Piece& piece);
  void drop_reasoning(Choice& choice, int32_t index);
  std::string call_id(const Choice& choice, std::string_view given) const;
  void end_choice(Choice& choice, int32_t index, FinishReason reason);
  void retire(Choice& choice);
  void flush(sched::Clock::time_point now);
  void send_part(sched::Clock::time_point now);
  void complete(sched::Clock::time_point now);
  void end();
  std::vector<int32_t> likeliest_choices() const;
  Usage usage() const;
  int64_t begun_prompt_tokens() const;
  void set_figures();
  void wait_for_client();
  void release();

  StreamHost& host_;
  const ExchangePtr exchange_;
  net::HttpResponder& responder_;  // The exchange's.
  const AnswerOptions options_;
  MemoryLease whole_;
  std::unique_ptr<AnswerShape> shape_;
  std::vector<Choice> choices_;
  size_t made_ = 0;  // JSON of prompts, by the last poll().
  AnswerFigures figures_;
  sched::Clock::time_point now_{};  // When poll() was called last.
  Timings timings_;                 // What a ChoiceRef shows.
  sched::Clock::time_point last_write_{};
  // Events that wait for the client, from unsent_begin_ on; null: none.
  std::unique_ptr<net::StreamBuffer> unsent_;
  size_t unsent_begin_ = 0;
  bool begun_ = false;    // The shape has begun.
  bool started_ = false;  // The response's headers are sent.
  bool paused_ = false;   // Waits for the client to take what is queued.
  bool was_paused_ = false;
  bool ending_ = false;  // The last events are made; they wait in unsent_, or are written.
  bool done_ = false;
};

}  // namespace weir::api
