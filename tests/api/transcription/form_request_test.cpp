#include "api/transcription/form_request.h"

#include <gtest/gtest.h>

#include "api/transcription/speech.h"

namespace weir::api::transcription {
namespace {

Result<TranscriptionRequest> parse(const std::vector<std::pair<std::string, std::string>>& fields,
                                   Task task = Task::kTranscribe) {
  static std::string body;  // The request's file is a view of it.
  body = form("bytes", fields);
  return parse_transcription(task, kFormType, body);
}

TEST(TranscriptionForm, ReadsWhatClientsSend) {
  const auto request =
      parse({{"model", "whisper-1"},
             {"language", "German"},
             {"prompt", "Über Wörter."},
             {"response_format", "verbose_json"},
             {"temperature", "0.4"},
             {"timestamp_granularities[]", "word"},
             {"timestamp_granularities[]", "segment"},
             {"chunking_strategy", R"({"type":"server_vad"})"},
             {"seed", "-3"}});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->file, "bytes");
  EXPECT_EQ(request->model, "whisper-1");
  EXPECT_EQ(request->language->code, "de");
  EXPECT_EQ(request->prompt, "Über Wörter.");
  EXPECT_EQ(request->format, Format::kVerboseJson);
  EXPECT_DOUBLE_EQ(request->temperature, 0.4);
  EXPECT_TRUE(request->words && request->segments);
  EXPECT_EQ(request->seed, static_cast<uint64_t>(-3));
  EXPECT_TRUE(request->ignored.empty());
}

TEST(TranscriptionForm, ListsAreWrittenInThreeWays) {
  for (const char* name : {"include[]", "include", "include[0]"})
    EXPECT_TRUE(parse({{name, "logprobs"}})->logprobs) << name;
  const auto words =
      parse({{"response_format", "verbose_json"}, {"timestamp_granularities", "word"}});
  EXPECT_TRUE(words->words);
  EXPECT_FALSE(words->segments) << "only words were asked for";
  for (const char* name : {"include[x]", "include[", "include]", "include[]]", "includes"})
    EXPECT_EQ(parse({{name, "logprobs"}})->ignored.header(), name);
}

TEST(TranscriptionForm, NamesTheFieldThatIsWrong) {
  struct {
    const char *name, *value, *message;
  } const cases[] = {
      {"language", "klingon", "haw (hawaiian)"},
      {"response_format", "diarized_json", "expected json, text, srt, vtt or verbose_json"},
      {"temperature", "1.5", "1.5"},
      {"temperature", "warm", "expected a number, found \"warm\""},
      {"temperature", "nan", "expected a number"},
      {"temperature_inc", "-1", ""},
      {"seed", "1.5", "expected an integer"},
      {"stream", "yes", "expected true or false"},
      {"include[]", "words", "expected logprobs"},
      {"timestamp_granularities[]", "letter", "expected segment or word"},
      {"timestamp_granularities[]", "word", "expected response_format verbose_json"},
      {"known_speaker_names[]", "Ada", "speakers"},
      {"known_speaker_references[]", "data:", "speakers"},
      {"file", "again", "expected one part of that name"},
  };
  for (const auto& each : cases) {
    const auto request = parse({{each.name, each.value}});
    ASSERT_FALSE(request) << each.name << " " << each.value;
    EXPECT_EQ(request.error().param, each.name);
    EXPECT_NE(request.error().message.find(each.message), std::string::npos)
        << request.error().message;
  }
  EXPECT_EQ(parse({{"response_format", "srt"}, {"stream", "true"}}).error().param, "stream");
  EXPECT_EQ(parse({{"response_format", "vtt"}, {"include[]", "logprobs"}}).error().param,
            "include[]");
  EXPECT_EQ(parse_transcription(Task::kTranscribe, kFormType, form("")).error().param, "file");
  EXPECT_EQ(parse_transcription(Task::kTranscribe, kFormType, "--b0undary--").error().param, "file");
}

TEST(TranscriptionForm, TranslationsHaveFewerFields) {
  const auto request = parse({{"language", "de"}, {"stream", "true"}}, Task::kTranslate);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->language, nullptr);
  EXPECT_FALSE(request->stream);
  EXPECT_EQ(request->ignored.header(), "language, stream");
}

// As the page says: each field of the table is honoured, ignored or refused.
TEST(TranscriptionForm, DoesWithEachFieldWhatThePageSays) {
  for (const FieldDoc& field : transcription_fields()) {
    const std::string name(field.name);
    const auto request = parse({{name, "\x01?"}});
    const bool any_text = name == "model" || name == "prompt";
    EXPECT_EQ(request.has_value(), any_text || field.treatment == Treatment::kIgnored) << name;
    if (request) {
      EXPECT_TRUE(request->ignored.empty()) << name;
    } else {
      EXPECT_EQ(request.error().param, name);
    }
  }
}

TEST(Languages, AreFoundByCodeAndName) {
  EXPECT_EQ(find_language("EN")->name, "english");
  EXPECT_EQ(find_language("Haitian Creole")->code, "ht");
  EXPECT_EQ(find_language("castilian")->code, "es");
  EXPECT_EQ(find_language("jv")->code, "jw");
  EXPECT_EQ(find_language("xx"), nullptr);
  EXPECT_EQ(find_language(""), nullptr);
  EXPECT_EQ(languages().size(), 100u);
}

}  // namespace
}  // namespace weir::api::transcription
