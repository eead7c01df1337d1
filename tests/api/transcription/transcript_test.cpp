#include "api/transcription/transcript.h"

#include <gtest/gtest.h>

#include <random>

#include "api/transcription/speech.h"
#include "api/transcription/transcript_text.h"

namespace weir::api::transcription {
namespace {

class TranscriptTest : public testing::Test {
 protected:
  std::vector<Segment> segments(const std::vector<std::vector<TokenLogprob>>& parts,
                                Hearing hearing, bool spaced = true) const {
    std::vector<TokenLogprob> output;
    for (const auto& part : parts) output.insert(output.end(), part.begin(), part.end());
    return segments_of(*tokenizer_, vocabulary_, spaced, output, hearing);
  }

  const std::unique_ptr<text::Tokenizer> tokenizer_ = speech_tokenizer();
  const SpeechVocabulary vocabulary_ = *read_speech_vocabulary(*tokenizer_);
};

TEST_F(TranscriptTest, TheVocabularyNamesItsTokens) {
  EXPECT_EQ(vocabulary_.end_of_text, kEndOfText);
  EXPECT_EQ(vocabulary_.start, kStart);
  EXPECT_EQ(vocabulary_.timestamp_begin(), kTimestamps);
  ASSERT_EQ(vocabulary_.languages.size(), 2u);
  EXPECT_EQ(vocabulary_.find(find_language("german"))->token, kGerman);
  EXPECT_EQ(vocabulary_.find(kEnglish)->language->code, "en");
  EXPECT_EQ(vocabulary_.find(find_language("fr")), nullptr);
  const auto bytes = text::Tokenizer::load(byte_tokenizer_json());
  EXPECT_NE(read_speech_vocabulary(**bytes).error().message.find("<|endoftext|>"),
            std::string::npos);
}

TEST_F(TranscriptTest, TimestampsPartSegments) {
  const auto all = segments({said(0, " Hello there.", 1.5), said(1.5, " How are you?", 3)},
                            {.begin = 10, .end = 40});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].text(), " Hello there.");
  EXPECT_DOUBLE_EQ(all[0].start, 10);
  EXPECT_DOUBLE_EQ(all[0].end, 11.5);
  EXPECT_EQ(all[1].begin_token, timestamp(1.5));
  EXPECT_EQ(all[1].end_token, timestamp(3));
  ASSERT_EQ(all[1].words.size(), 3u);
  EXPECT_EQ(all[1].words[2].text, " you?");
  EXPECT_DOUBLE_EQ(all[1].words[2].end, 13);
  EXPECT_GT(all[1].words[2].start, all[1].words[1].start);
}

TEST_F(TranscriptTest, WhatHasNoTimestampsLastsAsLongAsTheWindow) {
  const auto all = segments({said(-1, " Hello.", -1)}, {.begin = 5, .end = 7});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_DOUBLE_EQ(all[0].start, 5);
  EXPECT_DOUBLE_EQ(all[0].end, 7);
  const auto open = segments({said(1, " Hello", -1)}, {.begin = 5, .end = 7});
  EXPECT_DOUBLE_EQ(open[0].start, 6);
  EXPECT_EQ(open[0].end_token, -1);
}

TEST_F(TranscriptTest, NothingLastsBeyondItsWindowOrIsBlank) {
  const auto all =
      segments({said(0, "  ", 1), said(4, " a", 20), said(30, "", 29)}, {.begin = 0, .end = 6});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_DOUBLE_EQ(all[0].end, 6);
  EXPECT_TRUE(segments({}, {.end = 6}).empty());
}

TEST_F(TranscriptTest, CharactersAreNeverParted) {
  const auto all = segments({said(0, "\xe6\x97\xa5\xe6\x9c\xac.", 1)}, {.end = 1}, false);
  ASSERT_EQ(all[0].words.size(), 2u);
  EXPECT_EQ(all[0].words[0].text, "\xe6\x97\xa5");
  EXPECT_EQ(all[0].words[1].text, "\xe6\x9c\xac.");
  const auto broken = segments({said(0, " a\xe6\x97 b", 1)}, {.end = 1});
  EXPECT_EQ(broken[0].text(), " a\xef\xbf\xbd b");
}

// Two windows of 30 s that share 5.
std::string joined(Transcript& transcript, std::vector<Segment> first, std::vector<Segment> second) {
  transcript.add(std::move(first), {.begin = 0, .end = 30}, 25);
  transcript.add(std::move(second), {.begin = 25, .end = 55}, 55);
  transcript.finish();
  double time = 0;
  for (const Segment& segment : transcript.certain()) {
    EXPECT_LE(time, segment.start);
    EXPECT_LE(segment.start, segment.end);
    time = segment.end;
  }
  return text_of(transcript.certain());
}

TEST_F(TranscriptTest, WindowsAreJoinedWhereTheySayTheSame) {
  Transcript transcript;
  const auto first = segments({said(0, " Once upon a time", 24), said(26, " the quick brown fax", 30)},
                              {.begin = 0, .end = 30});
  const auto second = segments({said(1, " a quick Brown fox", 5), said(5, " jumps.", 8)},
                               {.begin = 25, .end = 55});
  EXPECT_EQ(joined(transcript, first, second), "Once upon a time the quick Brown fox jumps.");
  ASSERT_EQ(transcript.certain().size(), 3u) << "the sentence that both had cut is one segment";
  EXPECT_DOUBLE_EQ(transcript.certain()[1].end, 30);
}

TEST_F(TranscriptTest, WithoutCommonWordsTheMiddleParts) {
  Transcript transcript;
  const auto first = segments({said(20, " one", 26), said(26, " two", 30)}, {.begin = 0, .end = 30});
  const auto second =
      segments({said(0, " three", 2), said(3, " four", 8)}, {.begin = 25, .end = 55});
  EXPECT_EQ(joined(transcript, first, second), "one four");
}

TEST_F(TranscriptTest, TheSameWordsFarApartAreNotTheSame) {
  Transcript transcript;
  const auto first =
      segments({said(25, " thank you", 25.5), said(29, " now", 30)}, {.begin = 0, .end = 30});
  const auto second =
      segments({said(4, " thank you", 5), said(6, " all", 7)}, {.begin = 25, .end = 55});
  EXPECT_EQ(joined(transcript, first, second), "thank you thank you all");
}

TEST_F(TranscriptTest, ASilentWindowTakesNothingFromTheOther) {
  Transcript transcript;
  const auto first = segments({said(20, " early", 22)}, {.begin = 0, .end = 30});
  EXPECT_EQ(joined(transcript, first, {}), "early");
  Transcript other;
  const auto second = segments({said(10, " late", 12)}, {.begin = 25, .end = 55});
  EXPECT_EQ(joined(other, {}, second), "late");
}

TEST_F(TranscriptTest, WhatIsCertainStaysAsItIs) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Transcript transcript;
    std::vector<std::string> certain;
    for (int window = 0; window < 5; ++window) {
      std::vector<std::vector<TokenLogprob>> parts;
      double time = 0;
      for (int i = 0; i < 8; ++i) {
        const double next = time + static_cast<double>(random() % 8);
        std::string text;
        for (size_t w = 0; w < random() % 4; ++w) text += std::string(" ") + "abc"[random() % 3];
        parts.push_back(said(time, text, next));
        time = random() % 5 == 0 ? next / 2 : next;  // A model may go back.
      }
      const Hearing hearing{.begin = 25.0 * window, .end = 25.0 * window + 30};
      transcript.add(segments(parts, hearing), hearing, 25.0 * (window + 1));
      if (window == 4) transcript.finish();
      ASSERT_LE(certain.size(), transcript.certain().size());
      for (size_t i = 0; i < certain.size(); ++i)
        ASSERT_EQ(transcript.certain()[i].text(), certain[i]);
      certain.clear();
      for (const Segment& segment : transcript.certain()) certain.push_back(segment.text());
    }
    double last = 0;
    for (const Segment& segment : transcript.certain()) {
      ASSERT_FALSE(segment.words.empty());
      ASSERT_GE(segment.start, last);
      ASSERT_GE(segment.end, segment.start);
      last = segment.end;
    }
  }
}

TEST_F(TranscriptTest, Subtitles) {
  const auto all = segments({said(0, " Hello --> there.", 1.5), said(2, " Bye.", 3.04)},
                            {.begin = 3599, .end = 3629});
  TranscriptFacts facts{.format = Format::kSrt};
  std::string srt, vtt, text;
  append_transcript(srt, *tokenizer_, facts, all);
  EXPECT_EQ(srt,
            "1\n00:59:59,000 --> 01:00:00,500\nHello --> there.\n\n"
            "2\n01:00:01,000 --> 01:00:02,040\nBye.\n\n");
  facts.format = Format::kVtt;
  append_transcript(vtt, *tokenizer_, facts, all);
  EXPECT_EQ(vtt,
            "WEBVTT\n\n59:59.000 --> 01:00:00.500\nHello -> there.\n\n"
            "01:00:01.000 --> 01:00:02.040\nBye.\n\n");
  facts.format = Format::kText;
  append_transcript(text, *tokenizer_, facts, all);
  EXPECT_EQ(text, "Hello --> there. Bye.\n");
}

TEST_F(TranscriptTest, Json) {
  const auto all = segments({said(0, " Hi.", 0.5)}, {.begin = 0,
                                                     .end = 1,
                                                     .temperature = 0,
                                                     .mean_logprob = -0.25,
                                                     .compression_ratio = 0.5,
                                                     .no_speech = 0.125});
  TranscriptFacts facts{.logprobs = true, .language = "english", .seconds = 0.75};
  facts.audio_tokens = 50;
  facts.text_tokens = 3;
  facts.output_tokens = 6;
  std::string json;
  append_transcript(json, *tokenizer_, facts, all);
  EXPECT_TRUE(json.starts_with(R"({"text":"Hi.","logprobs":[{"token":" ","logprob":-0.1,)"
                               R"("bytes":[32]},)"))
      << json;
  EXPECT_TRUE(json.ends_with(R"("usage":{"type":"tokens","input_tokens":53,"input_token_details":)"
                             R"({"text_tokens":3,"audio_tokens":50},"output_tokens":6,)"
                             R"("total_tokens":59}})"))
      << json;
  facts.format = Format::kVerboseJson;
  facts.words = true;
  std::string verbose;
  append_transcript(verbose, *tokenizer_, facts, all);
  EXPECT_EQ(verbose,
            R"({"task":"transcribe","language":"english","duration":0.75,"text":"Hi.","segments":[)"
            R"({"id":0,"seek":0,"start":0,"end":0.5,"text":" Hi.","tokens":[265,32,72,105,46,290],)"
            R"("temperature":0,"avg_logprob":-0.25,"compression_ratio":0.5,)"
            R"("no_speech_prob":0.125}],"words":[{"word":"Hi.","start":0,"end":0.5}],)"
            R"("usage":{"type":"duration","seconds":1}})");
}

}  // namespace
}  // namespace weir::api::transcription
