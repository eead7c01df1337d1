// Transcript: what was said in a recording, as segments of words, with times. One of a window is made
// of the tokens that the model gave; those of windows that overlap are joined to one.
//
// Threads: pure functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/transcription/speech_vocabulary.h"
#include "base/token_log.h"
#include "text/tokenizer.h"

namespace weir::api::transcription {

// Times are in seconds from the beginning of the recording.
struct Word {
  std::string text{};  // With the blank before it.
  std::vector<TokenLogprob> tokens{};
  double start = 0, end = 0;

  double middle() const { return (start + end) / 2; }
};

// How a window was heard; each of its segments says it.
struct Hearing {
  double begin = 0, end = 0;  // Of the window.
  float temperature = 0;
  double mean_logprob = 0;
  double compression_ratio = 0;
  double no_speech = 0;  // How likely it is that no one spoke.
};

struct Segment {
  double start = 0, end = 0;
  // The timestamps around it; -1: there is none, or it is not as the model gave it.
  int32_t begin_token = -1, end_token = -1;
  std::vector<Word> words{};  // Not empty.
  Hearing hearing{};

  std::string text() const;
};

// The text tokens among the output's.
std::vector<int32_t> text_tokens(const SpeechVocabulary& vocabulary,
                                 std::span<const TokenLogprob> output);

// The segments that timestamps part; without any, all is one. `spaced`: words have blanks between
// them. `times`: when each token of text begins, and after these when the last one ends; empty:
// times of words are estimated, which are a segment's, shared out by the bytes of their texts.
std::vector<Segment> segments_of(const text::Tokenizer& tokenizer,
                                 const SpeechVocabulary& vocabulary, bool spaced,
                                 std::span<const TokenLogprob> output, const Hearing& hearing,
                                 std::span<const double> times = {});

// Words have blanks between them in its writing; also where it is not known.
bool is_spaced(const Language* language);

// The transcript of a recording whose windows come in their order and overlap.
//
// Two windows are joined where they say the same: the longest run of equal words, whatever their
// case and punctuation, that both have in what they share, at about the same time. The first half
// of the run is the earlier window's and the rest the later's, because a word is heard best far from
// a window's edge. Where they have no run, the middle of what they share parts them. So what comes of
// windows depends on nothing but their own transcripts.
class Transcript {
 public:
  // `next_begin`: of the window after it, or of nothing the end of the recording.
  void add(std::vector<Segment> segments, const Hearing& window, double next_begin);
  // No window comes any more.
  void finish();

  // What no later window changes, from the first segment on.
  std::span<const Segment> certain() const { return certain_; }

 private:
  void settle(double before);

  std::vector<Segment> certain_;
  std::vector<Segment> open_;  // Reach into what the next window shares.
  double heard_ = 0;           // The end of the last window.
};

}  // namespace weir::api::transcription
