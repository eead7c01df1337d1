// Transcriptions without an engine: what they ask of it, and what they make of its answers; and with
// a server, what it refuses.
#include "api/transcription/transcription.h"

#include <gtest/gtest.h>

#include <functional>

#include "api/transcription/form_request.h"
#include "api/transcription/recording.h"
#include "api/transcription/speech.h"

namespace weir::api::transcription {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

// What a model answers to a request, and how likely it finds that nobody spoke.
struct Answer {
  std::vector<TokenLogprob> tokens{};
  float no_speech = -5;  // A logarithm.
};
using Speaker = std::function<Answer(const sched::Request&)>;

ApiConfig speech_config(const text::Tokenizer& tokenizer) {
  ApiConfig config;
  config.model_id = "whisper";
  config.tokenizer = &tokenizer;
  config.vocab_size = kSpeechVocab;
  config.speech = SpeechConfig{.front_end = second_long(), .rules = {}};
  config.speech->rules.suppressed = {'#', kTranslateToken};
  return config;
}

class TranscriptionTest : public testing::Test {
 protected:
  Result<PreparedBatch> prepare(double seconds, const Fields& fields = {},
                                Task task = Task::kTranscribe) {
    body_ = form(wav(seconds), fields);
    PrepareInput in;
    in.body = body_;
    in.content_type = kFormType;
    in.tokens_max = 64;
    in.random_seed = 5;
    in.media_budget = &media_;
    return task == Task::kTranscribe ? prepare_transcription(serving_, budget_, in)
                                     : prepare_translation(serving_, budget_, in);
  }

  // Answers each request in turn; the whole answer, or its events.
  std::string run(Result<PreparedBatch>& batch, const Speaker& speaker) {
    EXPECT_TRUE(batch) << batch.error().message;
    if (!batch) return {};
    BatchTask& task = *batch->task;
    std::string out;
    while (const auto bytes = task.next_bytes()) {
      EXPECT_LE(*bytes, batch->lent_bytes) << "a batch would wait for room for ever";
      const std::unique_ptr<sched::Request> request = task.next();
      prompts_.push_back(request->prompt);
      temperatures_.push_back(request->sampling.temperature);
      const size_t number = task.take_next();
      const Answer answer = speaker(*request);
      if (request->attended) {
        attend(*request);
        request->log.finish(FinishReason::kLength);
        task.keep(number, *request);
        while (task.has_work()) task.work();
        continue;
      }
      for (const TokenLogprob& said : answer.tokens) request->log.append(said, {});
      request->probed = answer.no_speech;
      request->log.finish(FinishReason::kStop);
      task.keep(number, *request);
      while (task.has_work()) task.work();
      if (task.streams()) task.append_events(out);
    }
    if (!task.streams()) {
      EXPECT_TRUE(task.finish());
      task.append_head(out);
      task.append_tail(out, batch->prompt_tokens);
    }
    return out;
  }
  // From <|notimestamps|> on each token attends to five rows, 0.1 s, after those of the one before.
  static void attend(sched::Request& request) {
    sched::AttendedSound& attended = *request.attended;
    const auto tokens = std::ssize(request.prompt), rows = int64_t{attended.rows};
    constexpr int64_t kControl = 3, kRows = 5;
    for (int64_t i = 0; i < std::ssize(attended.weights); ++i) {
      const int64_t token = i / rows % tokens - kControl;
      attended.weights[static_cast<size_t>(i)] = i % rows / kRows == token ? 1.0f : 0.0f;
    }
  }
  std::string transcribe(double seconds, const Fields& fields, const Speaker& speaker) {
    auto batch = prepare(seconds, fields);
    return run(batch, speaker);
  }

  const std::unique_ptr<text::Tokenizer> tokenizer_ = speech_tokenizer();
  ApiConfig config_ = speech_config(*tokenizer_);
  const ServingContext serving_{config_};
  MemoryBudget budget_{64 << 20}, media_{64 << 20};
  std::string body_;
  std::vector<std::vector<int32_t>> prompts_;
  std::vector<float> temperatures_;
};

Answer hello(const sched::Request&) { return {said(0, " Hello.", 0.5)}; }

TEST_F(TranscriptionTest, AsksForOneWindowInTheLanguageThatTheClientNames) {
  const std::string text =
      transcribe(0.8, {{"language", "de"}, {"response_format", "text"}, {"prompt", " Hi "}},
                 [](const sched::Request& request) {
                   EXPECT_EQ(request.sampling.temperature, 0);
                   EXPECT_EQ(request.sampling.stop_token_ids, std::vector{kEndOfText});
                   EXPECT_TRUE(request.want_logprobs);
                   EXPECT_EQ(request.max_tokens, 32);
                   EXPECT_EQ(request.heard->features->frames, 100);
                   EXPECT_EQ(request.prompt[static_cast<size_t>(request.probe->after)], kStart);
                   EXPECT_EQ(request.probe->token, kNoSpeech);
                   const sample::TranscriptRules& rules = *request.sampling.transcript;
                   EXPECT_EQ(rules.timestamp_begin, kTimestamps);
                   EXPECT_EQ(rules.suppressed.front(), '#');
                   EXPECT_EQ(rules.suppressed.size(), 1u + kTimestamps - kStart)
                       << "all that is neither text nor a time, once";
                   return hello(request);
                 });
  EXPECT_EQ(text, "Hello.\n");
  ASSERT_EQ(prompts_.size(), 1u);
  EXPECT_EQ(prompts_[0],
            (std::vector<int32_t>{kPrevious, ' ', 'H', 'i', kStart, kGerman, kTranscribeToken}));
}

TEST_F(TranscriptionTest, HearsTheLanguageFirst) {
  const std::string text = transcribe(
      0.8, {{"response_format", "verbose_json"}}, [](const sched::Request& request) {
        if (request.max_tokens > 1) return hello(request);
        EXPECT_TRUE(request.sampling.bounds->has_allowed());
        return Answer{{{kGerman, -0.5f}}};
      });
  ASSERT_EQ(prompts_.size(), 2u);
  EXPECT_EQ(prompts_[0], std::vector{kStart});
  EXPECT_EQ(prompts_[1], (std::vector{kStart, kGerman, kTranscribeToken}));
  EXPECT_NE(text.find(R"("language":"german","duration":0.8,"text":"Hello.")"), std::string::npos)
      << text;
}

TEST_F(TranscriptionTest, Translates) {
  auto batch = prepare(0.8, {{"response_format", "verbose_json"}}, Task::kTranslate);
  const std::string text = run(batch, [](const sched::Request& request) {
    return request.max_tokens > 1 ? hello(request) : Answer{{{kGerman, -0.5f}}};
  });
  EXPECT_EQ(prompts_[1], (std::vector{kStart, kGerman, kTranslateToken}));
  EXPECT_TRUE(text.starts_with(R"({"task":"translate","language":"english")")) << text;
}

TEST_F(TranscriptionTest, WindowsOverlapAndAreJoined) {
  const std::vector<WindowSamples> windows = cut_windows(second_long(), 40'000);
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_EQ(windows[1].begin, 13'440) << "a sixth, in whole timestamps";
  EXPECT_EQ(windows[2].end, 40'000);
  EXPECT_EQ(cut_windows(second_long(), 16'000).size(), 1u);
  EXPECT_EQ(cut_windows(second_long(), 16'001).size(), 2u);

  int window = 0;
  const std::string json =
      transcribe(2.5, {{"language", "en"}}, [&](const sched::Request&) -> Answer {
        Answer answer{said(0, window == 0 ? " one" : " two three", window == 0 ? 0.8 : 0.16)};
        if (++window == 3) return {said(0.5, " five", 0.8)};
        const auto more = window == 1 ? said(0.84, " two three", 1) : said(0.2, " four", 1);
        answer.tokens.insert(answer.tokens.end(), more.begin(), more.end());
        return answer;
      });
  EXPECT_TRUE(json.starts_with(R"({"text":"one two three four five")")) << json;
  EXPECT_NE(json.find(R"("audio_tokens":150)"), std::string::npos) << json;
}

TEST_F(TranscriptionTest, WhatIsUnlikelyOrRepeatsItselfIsTriedAgain) {
  const auto unlikely = [](const sched::Request& request) {
    Answer answer{said(0, " Hello.", 0.5)};
    if (request.sampling.temperature < 0.3f)
      for (TokenLogprob& each : answer.tokens) each.logprob = -2;
    return answer;
  };
  EXPECT_EQ(transcribe(0.5, {{"language", "en"}, {"response_format", "text"}}, unlikely), "Hello.\n");
  ASSERT_EQ(temperatures_.size(), 3u);
  EXPECT_FLOAT_EQ(temperatures_[2], 0.4f);

  temperatures_.clear();
  transcribe(0.5, {{"language", "en"}}, [](const sched::Request&) {
    return Answer{said(0, std::string(30, 'a'), 0.5)};
  });
  ASSERT_EQ(temperatures_.size(), 6u);
  EXPECT_FLOAT_EQ(temperatures_.back(), 1);

  temperatures_.clear();
  transcribe(0.5, {{"language", "en"}, {"temperature_inc", "0"}}, unlikely);
  transcribe(0.5, {{"language", "en"}, {"temperature", "0.1"}}, unlikely);
  EXPECT_EQ(temperatures_.size(), 2u) << "where the client says so, there is one attempt";
}

// The usage is the last attempt's; the caller's key pays for all.
TEST_F(TranscriptionTest, AttemptsThatWereGivenUpAreCounted) {
  auto batch = prepare(0.5, {{"language", "en"}});
  run(batch, [](const sched::Request& request) {
    Answer answer{said(0, " Hello.", 0.5)};
    if (request.sampling.temperature < 0.3f)
      for (TokenLogprob& each : answer.tokens) each.logprob = -2;
    return answer;
  });
  const auto said_tokens = std::ssize(said(0, " Hello.", 0.5));
  constexpr int64_t kRows = 50;
  EXPECT_EQ(batch->task->output_tokens(), said_tokens);
  EXPECT_EQ(batch->task->given_up_tokens(),
            2 * (std::ssize(prompts_.front()) + kRows + said_tokens));
}

// An hour needs 230 MB and not three times as much, which a vector that grows would take.
TEST_F(TranscriptionTest, ARecordingNeedsTheMemoryOfItsSamplesOnce) {
  constexpr double kSeconds = 200;
  const std::string file = wav(kSeconds);
  const auto samples = static_cast<size_t>(kSeconds * 16000) * sizeof(float);
  const media::FrontEnd front_end = second_long();
  // Windows of a second overlap by a sixth; each has 100 frames of as many numbers as there are bands.
  const size_t windows = static_cast<size_t>(kSeconds * 1.25) * 100 *
                         static_cast<size_t>(front_end.mels) * sizeof(float);
  MemoryBudget enough((samples + windows) * 5 / 4), less(samples);
  const auto recording = hear_recording(front_end, file, enough, 0, nullptr);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_NEAR(recording->seconds, kSeconds, 0.001);
  EXPECT_LE(enough.used(), windows) << "the samples are kept";
  const auto refused = hear_recording(front_end, file, less, 0, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(std::to_string(samples) + " bytes of memory"),
            std::string::npos)
      << refused.error().message;
}

TEST_F(TranscriptionTest, WordsHaveTheTimesOfWhatTheirTokensAttendTo) {
  const Fields fields = {{"language", "en"},
                         {"response_format", "verbose_json"},
                         {"timestamp_granularities[]", "word"}};
  EXPECT_NE(prepare(0.8, fields).error().message.find("alignment_heads"), std::string::npos);
  config_.speech->rules.alignment_heads = {{1, 0}, {1, 2}};
  const std::string json = transcribe(0.8, fields, [](const sched::Request& request) {
    if (!request.attended) return Answer{said(0, " Hi you", 0.5)};
    EXPECT_EQ(request.attended->rows, 40);
    EXPECT_EQ(request.max_tokens, 0);
    EXPECT_NE(request.heard, nullptr);
    return Answer{};
  });
  EXPECT_EQ(prompts_.back(), (std::vector<int32_t>{kStart, kEnglish, kTranscribeToken, kTimestamps - 1,
                                                   ' ', 'H', 'i', ' ', 'y', 'o', 'u', kEndOfText}));
  EXPECT_NE(json.find(R"("words":[{"word":"Hi","start":0,"end":0.3},)"
                      R"({"word":"you","start":0.3,"end":0.7}])"),
            std::string::npos)
      << json;
  EXPECT_EQ(json.find("segments"), std::string::npos);
}

TEST_F(TranscriptionTest, SilenceIsNoText) {
  const std::string json = transcribe(0.5, {{"language", "en"}}, [](const sched::Request&) {
    Answer answer{said(0, " Thank you.", 0.5), -0.1f};
    for (TokenLogprob& each : answer.tokens) each.logprob = -2;
    return answer;
  });
  EXPECT_TRUE(json.starts_with(R"({"text":"")")) << json;
  EXPECT_EQ(temperatures_.size(), 1u);
}

TEST_F(TranscriptionTest, EventsTellWhatIsCertain) {
  int window = 0;
  const std::string events = transcribe(
      2.5, {{"language", "en"}, {"stream", "true"}}, [&](const sched::Request&) -> Answer {
        if (++window == 1) return {said(0, " one", 0.5)};
        if (window == 2) return {said(0.3, " two", 0.7)};
        return {said(0.5, " three", 0.8)};
      });
  EXPECT_TRUE(events.starts_with("event: transcript.text.delta\ndata: "
                                 R"({"type":"transcript.text.delta","delta":"one"})"
                                 "\n\nevent: transcript.text.delta\ndata: "
                                 R"({"type":"transcript.text.delta","delta":" two"})"
                                 "\n\n"))
      << events;
  EXPECT_NE(events.find(R"({"type":"transcript.text.done","text":"one two three","usage":{)"),
            std::string::npos)
      << events;
  EXPECT_TRUE(events.ends_with("}\n\n"));
}

TEST_F(TranscriptionTest, SaysWhatIsWrongWithASound) {
  const auto error_of = [&](std::string_view file) {
    body_ = form(file);
    PrepareInput in;
    in.body = body_;
    in.content_type = kFormType;
    in.tokens_max = 64;
    in.media_budget = &media_;
    const auto batch = prepare_transcription(serving_, budget_, in);
    return batch ? Error{} : batch.error();
  };
  const std::string whole = wav(1);
  for (const std::string& file :
       {whole.substr(0, 20), whole.substr(0, 1000), std::string("not a sound"), wav(0)}) {
    const Error error = error_of(file);
    EXPECT_EQ(error.param, "file") << error.message;
    EXPECT_TRUE(error.message.starts_with("Invalid audio in 'file': ")) << error.message;
  }
  EXPECT_TRUE(prepare(1.0 / 16000)) << "one sample is a sound";
  EXPECT_EQ(media_.used(), 0u) << "what is refused gives its memory back";
}

TEST_F(TranscriptionTest, ManyMinutesTakeMemoryWithinTheBudget) {
  const auto batch = prepare(70, {{"language", "en"}});
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_GT(media_.used(), 80u * 100 * 80 * 4);
  MemoryBudget small(8 << 20);
  PrepareInput in;
  in.body = body_;
  in.content_type = kFormType;
  in.tokens_max = 64;
  in.media_budget = &small;
  EXPECT_EQ(prepare_transcription(serving_, budget_, in).error().kind, "audio_too_large");
  EXPECT_EQ(small.used(), 0u);
}

TEST(Transcriptions, OfAModelThatHearsNothingAreRefused) {
  TestApi server;
  const std::string type = "Content-Type: " + std::string(kFormType) + "\r\n";
  for (const char* path : {"/v1/audio/transcriptions", "/v1/audio/translations"}) {
    const auto answer = server.post(path, form(wav(0.1), {{"model", "m"}}), type);
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(error_code(answer.body), "unsupported_endpoint");
    EXPECT_NE(answer.body.find("this model transcribes nothing"), std::string::npos);
    EXPECT_EQ(server.post(path, form(wav(0.1), {{"model", "none"}}), type).status, 404);
    const auto json =
        server.post(path, R"({"model":"m"})", "Content-Type: application/json\r\n");
    EXPECT_EQ(json.status, 415);
    EXPECT_NE(json.body.find("expected multipart/form-data"), std::string::npos);
  }
  const auto speech = server.post("/v1/audio/speech", R"({"model":"m","input":"Hi"})",
                                  "Content-Type: application/json\r\n");
  EXPECT_EQ(speech.status, 404);
  EXPECT_NE(speech.body.find("speaks no text"), std::string::npos) << speech.body;
}

TEST(Transcriptions, RefuseTenThousandParts) {
  TestApi server;
  const Fields fields(10'000, {"include[]", "logprobs"});
  const auto answer = server.post("/v1/audio/transcriptions", form("x", fields),
                                  "Content-Type: " + std::string(kFormType) + "\r\n");
  EXPECT_EQ(answer.status, 413);
  EXPECT_NE(answer.body.find("too many parts"), std::string::npos) << answer.body;
}

}  // namespace
}  // namespace weir::api::transcription
