#include "api/transcription/transcription.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <utility>

#include "api/media/media_memory.h"
#include "api/memory/memory_cost.h"
#include "api/memory/request_memory.h"
#include "api/request/json_fields.h"
#include "api/serving/model_name.h"
#include "api/transcription/form_request.h"
#include "api/transcription/recording.h"
#include "api/transcription/speech_vocabulary.h"
#include "api/transcription/transcript.h"
#include "api/transcription/transcript_text.h"
#include "base/check.h"
#include "base/compressed_size.h"
#include "base/concat.h"
#include "media/features/token_times.h"

namespace weir::api::transcription {

namespace {

// When a window's transcript is not believed, and when it is silence: as the reference has it
// (transcribe.py of openai/whisper; Radford et al. 2022, section 4.5).
constexpr double kCompressionMax = 2.4, kMeanLogprobMin = -1.0, kNoSpeechMin = 0.6;
constexpr double kTemperatureMax = 1.0;
// Of a window: steps of 0.1. With smaller ones a window would be tried nearly without end.
constexpr int32_t kAttemptsMax = 11;
// In the whole recording's memory: a token with its word, and what is written of it.
constexpr size_t kBytesPerToken = 512;

// What all windows' requests have in common.
struct Plan {
  SpeechVocabulary vocabulary;
  std::shared_ptr<const sample::TranscriptRules> rules;
  std::vector<int32_t> before;  // Tokens of the prompt, with what announces them; or none.
  int32_t tokens_max = 0;       // Of one transcript.
  int64_t rows = 0;             // Of the encoder, for each window.
  double temperature = 0, temperature_step = 0;
  uint64_t seed = 0;
  bool stream = false;
  std::vector<sched::AttentionHead> heads;  // That tell when words are said; empty: it is not asked.
};

// Of the prompt that asks when words are said, beside the text: what is to be done, that timestamps
// are not written, and the end.
constexpr int64_t kTokensBesideText = 5;

// What the times of one window's words take: each head's weights, and while these become times two
// matrices of double and the way through them.
size_t attended_bytes(const Plan& plan) {
  const size_t one = plan.heads.size() * sizeof(float) + 2 * sizeof(double) + 1;
  return one * static_cast<size_t>((plan.tokens_max + kTokensBesideText) * plan.rows);
}

// The probability of a text's tokens, and how it repeats itself.
Hearing judge(const text::Tokenizer& tokenizer, const SpeechVocabulary& vocabulary,
              std::span<const TokenLogprob> output, const sched::Request& finished) {
  Hearing hearing;
  double sum = 0;
  for (const TokenLogprob& said : output) sum += said.logprob;
  // The reference counts the end too, which is nearly certain where it comes.
  hearing.mean_logprob = sum / static_cast<double>(output.size() + 1);
  const std::string text = tokenizer.decode(text_tokens(vocabulary, output), /*skip_special=*/true);
  hearing.compression_ratio =
      static_cast<double>(text.size()) / static_cast<double>(compressed_size(text));
  hearing.no_speech = std::exp(double{finished.probed});
  hearing.temperature = finished.sampling.temperature;
  return hearing;
}

bool is_silence(const Hearing& hearing) {
  return hearing.no_speech > kNoSpeechMin && hearing.mean_logprob < kMeanLogprobMin;
}

bool is_believed(const Hearing& hearing) {
  return is_silence(hearing) || (hearing.compression_ratio <= kCompressionMax &&
                                 hearing.mean_logprob >= kMeanLogprobMin);
}

class TranscriptionTask final : public BatchTask {
 public:
  TranscriptionTask(const text::Tokenizer& tokenizer, Plan plan, TranscriptFacts facts,
                    std::vector<Window> windows, const SpokenLanguage* language,
                    MemoryLease attended_memory)
      : attended_memory_(std::move(attended_memory)),
        tokenizer_(tokenizer),
        plan_(std::move(plan)),
        facts_(facts),
        windows_(std::move(windows)),
        attempts_(windows_.size()),
        heard_(windows_.size()) {
    if (plan_.vocabulary.is_multilingual() && language == nullptr)
      waiting_.push_back({.kind = Kind::kLanguage});
    else
      speak(language);
  }

  std::optional<size_t> next_bytes() const override;
  std::unique_ptr<sched::Request> next() override;
  size_t take_next() override;
  void keep(size_t number, sched::Request& finished) override;
  bool has_work() const override { return attended_.has_value(); }
  void work() override;

  int64_t prompt_tokens(const sched::Request& request) const override {
    return std::ssize(request.prompt) + plan_.rows;
  }
  int64_t output_tokens() const override { return facts_.output_tokens; }
  int64_t given_up_tokens() const override { return given_up_tokens_; }

  std::string_view content_type() const override {
    return plan_.stream ? "text/event-stream; charset=utf-8" : content_type_of(facts_.format);
  }
  void append_head(std::string& out) const override {
    append_transcript(out, tokenizer_, facts_, transcript_.certain());
  }
  bool streams() const override { return plan_.stream; }
  void append_events(std::string& out) override;

 private:
  enum class Kind : uint8_t { kLanguage, kWindow, kWords };
  struct Job {
    Kind kind = Kind::kWindow;
    size_t window = 0;
  };

  std::optional<Job> next_job() const;
  void speak(const SpokenLanguage* language);
  std::vector<int32_t> control() const;
  std::vector<int32_t> prompt(const Job& job) const;
  int64_t rows_of(size_t window) const;
  std::unique_ptr<sched::Request> words_request(const Job& job) const;
  void close_window(size_t index, std::span<const TokenLogprob> output,
                    std::span<const double> times = {});
  void keep_window(size_t index, const sched::Request& finished);
  void join_windows();

  MemoryLease attended_memory_;  // Of one window; given back after all else.
  const text::Tokenizer& tokenizer_;
  const Plan plan_;
  TranscriptFacts facts_;
  std::vector<Window> windows_;
  std::vector<int32_t> attempts_;  // That have been kept, by window.
  int64_t given_up_tokens_ = 0;    // Of attempts before the last one.
  std::deque<Job> waiting_;
  std::vector<Job> lent_;  // By number.
  // Windows of which it is not known when their words were said; one at a time is asked.
  std::deque<size_t> untimed_;
  bool attends_ = false;  // The engine has it, or work() will.
  bool spaced_ = true;     // Words have blanks between them.
  int32_t language_token_ = -1;

  // By window, until it is joined.
  struct Heard {
    bool done = false;
    Hearing hearing;
    std::vector<TokenLogprob> output;  // Until it is known when its words were said.
    std::vector<Segment> segments;
  };
  std::vector<Heard> heard_;
  // What work() makes times of.
  struct Attended {
    size_t window = 0;
    int32_t tokens = 0, rows = 0;
    std::vector<float> weights;  // [heads][tokens][rows]
  };
  std::optional<Attended> attended_;
  size_t joined_ = 0;  // Windows.
  Transcript transcript_;
  size_t told_ = 0;  // Segments of it.
  bool ended_ = false;
};

// The language is known; null: the model knows one.
void TranscriptionTask::speak(const SpokenLanguage* language) {
  if (language != nullptr) language_token_ = language->token;
  const bool translates = facts_.task == Task::kTranslate;
  facts_.language = translates || language == nullptr ? "english" : language->language->name;
  spaced_ = translates || language == nullptr || is_spaced(language->language);
  for (size_t i = 0; i < windows_.size(); ++i)
    waiting_.push_back({.kind = Kind::kWindow, .window = i});
}

// What the model is to do.
std::vector<int32_t> TranscriptionTask::control() const {
  std::vector<int32_t> ids = {plan_.vocabulary.start};
  if (language_token_ < 0) return ids;
  ids.push_back(language_token_);
  ids.push_back(facts_.task == Task::kTranslate ? plan_.vocabulary.translate
                                                : plan_.vocabulary.transcribe);
  return ids;
}

std::vector<int32_t> TranscriptionTask::prompt(const Job& job) const {
  std::vector<int32_t> ids = job.kind == Kind::kWords ? control() : plan_.before;
  if (job.kind == Kind::kWords) {
    ids.push_back(plan_.vocabulary.no_timestamps);
    std::ranges::copy(text_tokens(plan_.vocabulary, heard_[job.window].output),
                      std::back_inserter(ids));
    ids.push_back(plan_.vocabulary.end_of_text);
  } else {
    std::ranges::copy(control(), std::back_inserter(ids));
  }
  return ids;
}

// That were heard, of the encoder's.
int64_t TranscriptionTask::rows_of(size_t window) const {
  constexpr double kRounding = 1e-6;
  const double seconds = windows_[window].end - windows_[window].begin;
  return std::clamp<int64_t>(static_cast<int64_t>(seconds / kTimestampStep + kRounding), 1,
                             plan_.rows);
}

// What is begun comes to its end first.
std::optional<TranscriptionTask::Job> TranscriptionTask::next_job() const {
  if (!untimed_.empty() && !attends_) return Job{.kind = Kind::kWords, .window = untimed_.front()};
  if (waiting_.empty()) return std::nullopt;
  return waiting_.front();
}

std::optional<size_t> TranscriptionTask::next_bytes() const {
  const std::optional<Job> job = next_job();
  if (!job) return std::nullopt;
  if (job->kind == Kind::kLanguage) return request_bytes(sizeof(int32_t), 1, 0);
  return request_bytes(prompt(*job).size() * sizeof(int32_t), plan_.tokens_max, 0);
}

// sched/heard_sound.h has what it asks.
std::unique_ptr<sched::Request> TranscriptionTask::words_request(const Job& job) const {
  sample::SamplingParams params;
  params.temperature = 0;
  auto request = std::make_unique<sched::Request>(prompt(job), std::move(params), /*max_tokens=*/0,
                                                  /*logprobs=*/false);
  const int64_t rows = rows_of(job.window);
  request->attended = sched::AttendedSound{.heads = plan_.heads, .rows = static_cast<int32_t>(rows)};
  request->attended->weights.resize(plan_.heads.size() * request->prompt.size() *
                                    static_cast<size_t>(rows));
  return request;
}

std::unique_ptr<sched::Request> TranscriptionTask::next() {
  const Job job = *next_job();
  const SpeechVocabulary& vocabulary = plan_.vocabulary;
  sample::SamplingParams params;
  params.temperature = 0;
  std::unique_ptr<sched::Request> request;
  if (job.kind == Kind::kLanguage) {
    std::vector<int32_t> allowed;
    for (const SpokenLanguage& each : vocabulary.languages) allowed.push_back(each.token);
    params.bounds = std::make_shared<sample::TokenBounds>(std::move(allowed),
                                                          std::vector<std::vector<int32_t>>());
    request = std::make_unique<sched::Request>(std::vector<int32_t>{vocabulary.start},
                                               std::move(params), /*max_tokens=*/1,
                                               /*logprobs=*/false);
  } else if (job.kind == Kind::kWords) {
    request = words_request(job);
  } else {
    const int32_t attempt = attempts_[job.window];
    params.temperature =
        static_cast<float>(std::min(plan_.temperature + attempt * plan_.temperature_step,
                                    kTemperatureMax));
    // Each window and attempt has draws of its own.
    params.seed = plan_.seed + (uint64_t{job.window} << 8) + static_cast<uint64_t>(attempt);
    params.stop_token_ids = {vocabulary.end_of_text};
    params.transcript = plan_.rules;
    request = std::make_unique<sched::Request>(prompt(job), std::move(params), plan_.tokens_max,
                                               /*logprobs=*/true);
    request->probe = sched::Probe{.after = static_cast<int32_t>(plan_.before.size()),
                                  .token = vocabulary.no_speech};
  }
  request->heard = windows_[job.window].heard;
  return request;
}

size_t TranscriptionTask::take_next() {
  lent_.push_back(*next_job());
  if (lent_.back().kind == Kind::kWords) {
    untimed_.pop_front();
    attends_ = true;
  } else {
    waiting_.pop_front();
  }
  return lent_.size() - 1;
}

void TranscriptionTask::keep(size_t number, sched::Request& finished) {
  const Job job = lent_[number];
  if (job.kind == Kind::kWindow) return keep_window(job.window, finished);
  if (job.kind == Kind::kWords) {
    attended_ = Attended{.window = job.window,
                         .tokens = static_cast<int32_t>(std::ssize(finished.prompt)),
                         .rows = finished.attended->rows,
                         .weights = std::move(finished.attended->weights)};
    return;
  }
  const int32_t token = finished.log.size() > 0 ? finished.log[0].token : -1;
  const SpokenLanguage* const heard = plan_.vocabulary.find(token);
  speak(heard != nullptr ? heard : &plan_.vocabulary.languages.front());
}

void TranscriptionTask::keep_window(size_t index, const sched::Request& finished) {
  std::vector<TokenLogprob> output;
  for (int32_t i = 0; i < finished.log.size(); ++i) output.push_back(finished.log[i]);
  Hearing hearing = judge(tokenizer_, plan_.vocabulary, output, finished);
  ++attempts_[index];
  const bool may_retry = plan_.temperature == 0 && plan_.temperature_step > 0 &&
                         attempts_[index] < kAttemptsMax &&
                         hearing.temperature < static_cast<float>(kTemperatureMax);
  if (may_retry && !is_believed(hearing)) {
    given_up_tokens_ += prompt_tokens(finished) + finished.log.size();
    return waiting_.push_front({.kind = Kind::kWindow, .window = index});
  }
  hearing.begin = windows_[index].begin;
  hearing.end = windows_[index].end;
  facts_.output_tokens += finished.log.size();
  heard_[index].hearing = hearing;
  if (is_silence(hearing)) return close_window(index, {});
  if (plan_.heads.empty() || text_tokens(plan_.vocabulary, output).empty())
    return close_window(index, output);
  heard_[index].output = std::move(output);
  untimed_.push_back(index);
}

// When the words of one window were said: as its reference has it, of the rows at which tokens
// begin, the first of them after <|notimestamps|>.
void TranscriptionTask::work() {
  const Attended attended = *std::exchange(attended_, std::nullopt);
  attends_ = false;
  const std::vector<int32_t> rows =
      media::token_times({.weights = attended.weights,
                          .heads = static_cast<int32_t>(std::ssize(plan_.heads)),
                          .tokens = attended.tokens,
                          .rows = attended.rows,
                          .begin = static_cast<int32_t>(std::ssize(control())),
                          .end = attended.tokens - 1});
  std::vector<double> times;
  for (const int32_t row : rows)
    times.push_back(windows_[attended.window].begin + row * kTimestampStep);
  const std::vector<TokenLogprob> output = std::move(heard_[attended.window].output);
  close_window(attended.window, output, times);
}

void TranscriptionTask::close_window(size_t index, std::span<const TokenLogprob> output,
                                     std::span<const double> times) {
  windows_[index].heard.reset();
  Heard& heard = heard_[index];
  heard.done = true;
  heard.segments =
      segments_of(tokenizer_, plan_.vocabulary, spaced_, output, heard.hearing, times);
  join_windows();
}

// In their order, as they are there.
void TranscriptionTask::join_windows() {
  for (; joined_ < heard_.size() && heard_[joined_].done; ++joined_) {
    Heard heard = std::move(heard_[joined_]);
    const bool is_last = joined_ + 1 == windows_.size();
    transcript_.add(std::move(heard.segments), heard.hearing,
                    is_last ? heard.hearing.end : windows_[joined_ + 1].begin);
    if (is_last) transcript_.finish();
  }
}

void TranscriptionTask::append_events(std::string& out) {
  const std::span<const Segment> all = transcript_.certain();
  if (told_ < all.size())
    append_delta(out, tokenizer_, facts_, all.subspan(told_), told_ == 0);
  told_ = all.size();
  if (joined_ < windows_.size() || std::exchange(ended_, true)) return;
  append_done(out, tokenizer_, facts_, all);
}

// What a transcript may hold: text and timestamps. What else lies between the two in the vocabulary
// tells the model what to do.
std::shared_ptr<const sample::TranscriptRules> rules_of(const SpeechVocabulary& vocabulary,
                                                        const card::SpeechSettings& settings) {
  sample::TranscriptRules rules;
  rules.suppressed = settings.suppressed;
  for (int32_t id = vocabulary.end_of_text + 1; id < vocabulary.timestamp_begin(); ++id)
    rules.suppressed.push_back(id);
  std::ranges::sort(rules.suppressed);
  const auto again = std::ranges::unique(rules.suppressed);
  rules.suppressed.erase(again.begin(), again.end());
  rules.suppressed_first = settings.suppressed_first;
  rules.timestamp_begin = vocabulary.timestamp_begin();
  rules.no_timestamps = vocabulary.no_timestamps;
  rules.end_of_text = vocabulary.end_of_text;
  rules.initial_max = settings.initial_timestamp_max;
  return std::make_shared<const sample::TranscriptRules>(std::move(rules));
}

// The last tokens of the client's text, as many as half of the context has room for.
std::vector<int32_t> tokens_before(const text::Tokenizer& tokenizer,
                                   const SpeechVocabulary& vocabulary, std::string_view text,
                                   int32_t room) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return {};
  text.remove_prefix(text.find_first_not_of(" \t\r\n"));
  text.remove_suffix(text.size() - (text.find_last_not_of(" \t\r\n") + 1));
  // No token is so long on average; what is before them is not looked at.
  constexpr size_t kTokenBytesMax = 64;
  const size_t seen = static_cast<size_t>(std::max(room, 0)) * kTokenBytesMax;
  if (text.size() > seen) text.remove_prefix(text.size() - seen);
  std::vector<int32_t> ids = tokenizer.encode(concat({" ", text}), {.parse_special = false});
  std::erase_if(ids, [&](int32_t id) { return id >= vocabulary.end_of_text; });
  if (std::ssize(ids) > room) ids.erase(ids.begin(), ids.end() - room);
  if (!ids.empty()) ids.insert(ids.begin(), vocabulary.previous);
  return ids;
}

// The request's language among the model's; null: it is to be heard, or the model knows but one.
Result<const SpokenLanguage*> language_of(const SpeechVocabulary& vocabulary,
                                          const TranscriptionRequest& request) {
  if (!vocabulary.is_multilingual()) {
    if (request.task == Task::kTranslate)
      return unsupported("model", "this model knows English alone, and translates nothing");
    if (request.language != nullptr && request.language->code != "en")
      return out_of_range("language", "expected en, all that this model knows, found " +
                                          std::string(request.language->code));
    return nullptr;
  }
  if (request.task == Task::kTranslate && vocabulary.translate < 0)
    return unsupported("model", "this model translates nothing: its vocabulary has no <|translate|>");
  if (request.language == nullptr) return nullptr;
  const SpokenLanguage* const found = vocabulary.find(request.language);
  if (found == nullptr)
    return out_of_range("language", "expected one of " + vocabulary.language_list() + ", found " +
                                        std::string(request.language->code));
  return found;
}

Result<SpeechVocabulary> vocabulary_of(const ApiConfig& config) {
  const auto refuse = [](const std::string& why) {
    return weir::fail(ErrorCode::kUnsupported,
                      "Unsupported: this model transcribes nothing (" + why +
                          "). Expected a speech model such as Whisper; what this one answers "
                          "is in /openapi.json.",
                      "model", "unsupported_endpoint");
  };
  if (!config.speech) return refuse(config.speech_refusal);
  Result<SpeechVocabulary> vocabulary = read_speech_vocabulary(*config.tokenizer);
  if (!vocabulary) return refuse(vocabulary.error().message);
  if (vocabulary->timestamp_begin() >= config.vocab_size)
    return refuse("its vocabulary has no timestamps");
  return vocabulary;
}

Result<std::vector<sched::AttentionHead>> alignment_heads(const card::SpeechSettings& settings) {
  std::vector<sched::AttentionHead> heads;
  for (const auto& [layer, head] : settings.alignment_heads) heads.push_back({layer, head});
  if (heads.empty() || std::ssize(heads) > sched::kAttendedHeadsMax)
    return unsupported("timestamp_granularities[]",
                       "times of words need 1 to " + std::to_string(sched::kAttendedHeadsMax) +
                           " alignment_heads in this model's generation_config.json, which has " +
                           std::to_string(heads.size()) + "; expected segment");
  return heads;
}

// For the times of words.
Result<MemoryLease> lease_attended(MemoryBudget& budget, uint64_t caller, size_t bytes) {
  MemoryLease taken;
  const Result<void> leased = lease_medium(budget, caller, taken, bytes);
  if (leased) return taken;
  if (leased.error().code == ErrorCode::kOverloaded) return tl::unexpected<Error>(leased.error());
  return unsupported("timestamp_granularities[]",
                     "times of words cannot be told: " + leased.error().message);
}

Result<PreparedBatch> prepare(Task task, const ServingContext& serving, MemoryBudget& budget,
                              const PrepareInput& in) {
  const ApiConfig& config = serving.config;
  WEIR_ASSIGN(const TranscriptionRequest request,
              parse_transcription(task, in.content_type, in.body));
  PreparedBatch batch;
  WEIR_ASSIGN(batch.adapter, choose_model(config, request.model));
  WEIR_ASSIGN(SpeechVocabulary vocabulary, vocabulary_of(config));
  WEIR_ASSIGN(const SpokenLanguage* const language, language_of(vocabulary, request));

  // Half of the context is the transcript's, as the reference has it; the rest is what comes before.
  Plan plan;
  plan.tokens_max = std::max(in.tokens_max / 2, 1);
  constexpr int32_t kControlTokens = 4;
  const int32_t room = in.tokens_max - plan.tokens_max - kControlTokens;
  plan.before = tokens_before(*config.tokenizer, vocabulary, request.prompt, room);
  plan.rules = rules_of(vocabulary, config.speech->rules);
  plan.rows = config.speech->front_end.rows_max;
  plan.temperature = request.temperature;
  plan.temperature_step = request.temperature_step;
  plan.seed = request.seed.value_or(in.random_seed);
  plan.stream = request.stream;
  if (request.words) {
    WEIR_ASSIGN(plan.heads, alignment_heads(config.speech->rules));
  }
  plan.vocabulary = std::move(vocabulary);

  CHECK(in.media_budget != nullptr);
  WEIR_ASSIGN(Recording recording,
              hear_recording(config.speech->front_end, request.file, *in.media_budget, in.caller,
                             in.interrupt.get()));
  const size_t windows = recording.windows.size();
  const auto token_count = windows * static_cast<size_t>(plan.tokens_max);
  const auto prompt_max = std::max<size_t>(plan.before.size() + kControlTokens,
                                           plan.tokens_max + kTokensBesideText);
  const size_t one = request_bytes(prompt_max * sizeof(int32_t), plan.tokens_max, 0);
  batch.lent_bytes = std::max(one, std::min({windows * one, kLentBytes,
                                             budget.bytes_max() / kLentShare}));
  const size_t results = token_count * kBytesPerToken;
  WEIR_TRY(check_memory(budget, "file", batch.lent_bytes + results, "a shorter recording"));
  WEIR_ASSIGN(batch.whole, lease(budget, in.caller, batch.lent_bytes + results));
  batch.computing = batch.whole.part(batch.lent_bytes);
  batch.priority = in.priority_min;
  batch.ignored = request.ignored;

  TranscriptFacts facts{.task = task,
                        .format = request.format,
                        .segments = request.segments,
                        .words = request.words,
                        .logprobs = request.logprobs,
                        .seconds = recording.seconds};
  facts.audio_tokens = static_cast<int64_t>(windows) * plan.rows;
  facts.text_tokens = static_cast<int64_t>(windows * plan.before.size());
  batch.prompt_tokens = facts.audio_tokens + facts.text_tokens;
  MemoryLease attended_memory;
  if (!plan.heads.empty()) {
    WEIR_ASSIGN(attended_memory,
                lease_attended(*in.media_budget, in.caller, attended_bytes(plan)));
  }
  // The language is a part of the vocabulary that the task takes with it.
  std::optional<SpokenLanguage> chosen;
  if (language != nullptr) chosen = *language;
  batch.task = std::make_unique<TranscriptionTask>(*config.tokenizer, std::move(plan), facts,
                                                   std::move(recording.windows),
                                                   chosen ? &*chosen : nullptr,
                                                   std::move(attended_memory));
  return batch;
}

}  // namespace

Result<PreparedBatch> prepare_transcription(const ServingContext& serving, MemoryBudget& budget,
                                            const PrepareInput& in) {
  return prepare(Task::kTranscribe, serving, budget, in);
}

Result<PreparedBatch> prepare_translation(const ServingContext& serving, MemoryBudget& budget,
                                          const PrepareInput& in) {
  return prepare(Task::kTranslate, serving, budget, in);
}

}  // namespace weir::api::transcription
