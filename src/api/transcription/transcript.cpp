#include "api/transcription/transcript.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/utf8.h"

namespace weir::api::transcription {

namespace {

constexpr auto kUnspaced = std::to_array<std::string_view>({"zh", "ja", "th", "lo", "my", "yue"});

// Punctuation that is a part of the word before it.
bool is_closing(std::string_view text) {
  constexpr std::string_view kClosing = ".,!?:;)]}%\"'";
  return !text.empty() && text.find_first_not_of(kClosing) == std::string_view::npos;
}

// The text ends within a character.
bool ends_within(std::string_view text) {
  while (!text.empty()) {
    const Utf8Front front = utf8_front(text);
    if (front.kind == Utf8Front::Kind::kIncomplete) return true;
    text.remove_prefix(front.bytes);
  }
  return false;
}

// Groups tokens to words: one begins with a token that begins with a blank, or where words have none
// with each that begins a character.
class WordReader {
 public:
  WordReader(const text::Tokenizer& tokenizer, bool spaced)
      : tokenizer_(tokenizer), spaced_(spaced) {}

  void add(TokenLogprob said) {
    const std::string_view piece = tokenizer_.piece(said.token);
    if (words_.empty() || (begins_word(piece) && !ends_within(words_.back().text)))
      words_.emplace_back();
    words_.back().text += piece;
    words_.back().tokens.push_back(said);
  }
  std::vector<Word> take() {
    for (Word& word : words_) {
      if (valid_utf8(word.text)) continue;
      const std::string bytes = std::exchange(word.text, {});
      append_valid_utf8(word.text, bytes);
    }
    return std::exchange(words_, {});
  }

 private:
  bool begins_word(std::string_view piece) const {
    return piece.starts_with(' ') || (!spaced_ && !is_closing(piece));
  }

  const text::Tokenizer& tokenizer_;
  const bool spaced_;
  std::vector<Word> words_;
};

void share_out_time(Segment& segment) {
  size_t bytes = 0;
  for (const Word& word : segment.words) bytes += word.text.size();
  const double length = segment.end - segment.start;
  size_t before = 0;
  for (Word& word : segment.words) {
    const auto at = [&](size_t byte) {
      if (bytes == 0) return segment.start;
      return segment.start + length * static_cast<double>(byte) / static_cast<double>(bytes);
    };
    word.start = at(before);
    word.end = at(before += word.text.size());
  }
}

// `times`: from the segment's first token of text on.
void set_times(Segment& segment, std::span<const double> times) {
  for (Word& word : segment.words) {
    word.start = times.front();
    times = times.subspan(word.tokens.size());
    word.end = times.front();
  }
}

// A word as two windows may have it in common.
std::string plain(std::string_view text) {
  std::string plain;
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0x80 || (c >= '0' && c <= '9') ||
        (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z'))
      plain += ascii_lower(c);
  return plain;
}

// A word of a list of segments.
struct Place {
  size_t segment = 0, word = 0;
  std::string text;
  double middle = 0;
};

std::vector<Place> places_within(std::span<const Segment> segments, double begin, double end) {
  std::vector<Place> places;
  for (size_t s = 0; s < segments.size(); ++s)
    for (size_t w = 0; w < segments[s].words.size(); ++w) {
      const Word& word = segments[s].words[w];
      if (word.middle() < begin || word.middle() > end) continue;
      if (std::string text = plain(word.text); !text.empty())
        places.push_back({s, w, std::move(text), word.middle()});
    }
  return places;
}

struct Run {
  size_t left = 0, right = 0, words = 0;  // Where it begins in either list.
};

// The longest; of equally long ones the first.
Run common_run(std::span<const Place> left, std::span<const Place> right, double apart_max) {
  Run best;
  std::vector<size_t> above(right.size() + 1), row(right.size() + 1);
  for (size_t i = 0; i < left.size(); ++i) {
    for (size_t j = 0; j < right.size(); ++j) {
      const bool same = left[i].text == right[j].text &&
                        std::abs(left[i].middle - right[j].middle) <= apart_max;
      row[j + 1] = same ? above[j] + 1 : 0;
      if (row[j + 1] > best.words) best = {i + 1 - row[j + 1], j + 1 - row[j + 1], row[j + 1]};
    }
    std::swap(row, above);
  }
  return best;
}

// Drops the words for which `keeps` is false, and segments without any; those that lost some have
// the times of what is left. True: the segment at that end lost words.
template <class Keeps>
bool keep_words(std::vector<Segment>& segments, const Keeps& keeps) {
  bool cut = false;
  for (size_t s = 0; s < segments.size(); ++s) {
    Segment& segment = segments[s];
    const size_t before = segment.words.size();
    std::vector<Word> kept;
    for (size_t w = 0; w < before; ++w)
      if (keeps(s, w)) kept.push_back(std::move(segment.words[w]));
    segment.words = std::move(kept);
    if (segment.words.size() == before || segment.words.empty()) continue;
    cut = true;
    segment.start = segment.words.front().start;
    segment.end = segment.words.back().end;
    segment.begin_token = segment.end_token = -1;
  }
  std::erase_if(segments, [](const Segment& segment) { return segment.words.empty(); });
  return cut;
}

// What two windows say of [begin, end], which they share: cuts both where the later takes over.
void cut_overlap(std::vector<Segment>& left, std::vector<Segment>& right, double begin, double end) {
  const double slack = (end - begin) / 2;
  const std::vector<Place> of_left = places_within(left, begin - slack, end);
  const std::vector<Place> of_right = places_within(right, begin, end + slack);
  const Run run = common_run(of_left, of_right, slack);
  constexpr size_t kWordsMin = 2;  // One word is soon the same by chance.
  if (run.words >= std::min({kWordsMin, of_left.size(), of_right.size()}) && run.words > 0) {
    const size_t kept = (run.words + 1) / 2;
    const Place& last = of_left[run.left + kept - 1];
    const Place& gone = of_right[run.right + kept - 1];
    const bool left_cut = keep_words(left, [&](size_t s, size_t w) {
      return s < last.segment || (s == last.segment && w <= last.word);
    });
    const bool right_cut = keep_words(right, [&](size_t s, size_t w) {
      return s > gone.segment || (s == gone.segment && w > gone.word);
    });
    if (!left_cut || !right_cut || left.empty() || right.empty()) return;
    // Both were cut within a segment: it is one.
    Segment& first = left.back();
    first.end = right.front().end;
    std::ranges::move(right.front().words, std::back_inserter(first.words));
    right.erase(right.begin());
    return;
  }
  const double middle = (begin + end) / 2;
  keep_words(left, [&](size_t s, size_t w) { return left[s].words[w].middle() < middle; });
  keep_words(right, [&](size_t s, size_t w) { return right[s].words[w].middle() >= middle; });
}

}  // namespace

std::string Segment::text() const {
  std::string text;
  for (const Word& word : words) text += word.text;
  return text;
}

bool is_spaced(const Language* language) {
  return language == nullptr || std::ranges::find(kUnspaced, language->code) == kUnspaced.end();
}

std::vector<int32_t> text_tokens(const SpeechVocabulary& vocabulary,
                                 std::span<const TokenLogprob> output) {
  std::vector<int32_t> ids;
  for (const TokenLogprob& said : output)
    if (said.token < vocabulary.end_of_text) ids.push_back(said.token);
  return ids;
}

std::vector<Segment> segments_of(const text::Tokenizer& tokenizer,
                                 const SpeechVocabulary& vocabulary, bool spaced,
                                 std::span<const TokenLogprob> output, const Hearing& hearing,
                                 std::span<const double> times) {
  std::vector<Segment> segments;
  WordReader words(tokenizer, spaced);
  Segment segment;
  segment.start = hearing.begin;
  size_t tokens = 0;  // Of text, in this segment.
  const auto close = [&](double end, int32_t token) {
    segment.words = words.take();
    segment.end = std::max(end, segment.start);
    segment.end_token = token;
    segment.hearing = hearing;
    if (times.empty()) {
      share_out_time(segment);
    } else {
      set_times(segment, times);
      times = times.subspan(std::exchange(tokens, 0));
    }
    const bool blank = segment.text().find_first_not_of(' ') == std::string::npos;
    if (!segment.words.empty() && !blank) segments.push_back(std::move(segment));
    segment = {};
  };
  bool has_text = false;
  for (const TokenLogprob& said : output) {
    if (said.token < vocabulary.end_of_text) {
      words.add(said);
      ++tokens;
      has_text = true;
    } else if (said.token >= vocabulary.timestamp_begin()) {
      const int32_t steps = said.token - vocabulary.timestamp_begin();
      const double time = std::min(hearing.begin + steps * kTimestampStep, hearing.end);
      if (std::exchange(has_text, false)) close(time, said.token);
      segment.start = time;
      segment.begin_token = said.token;
    }
  }
  if (has_text) close(hearing.end, -1);
  return segments;
}

void Transcript::add(std::vector<Segment> segments, const Hearing& window, double next_begin) {
  if (heard_ > window.begin) cut_overlap(open_, segments, window.begin, heard_);
  std::ranges::move(segments, std::back_inserter(open_));
  // Times never go back, whatever the model says.
  double time = certain_.empty() ? 0 : certain_.back().end;
  for (Segment& segment : open_) {
    segment.start = std::max(segment.start, time);
    time = segment.end = std::max(segment.end, segment.start);
  }
  heard_ = window.end;
  settle(next_begin);
}

void Transcript::finish() { settle(heard_ + 1); }

void Transcript::settle(double before) {
  const auto open = std::ranges::find_if(
      open_, [&](const Segment& segment) { return segment.end > before; });
  std::move(open_.begin(), open, std::back_inserter(certain_));
  open_.erase(open_.begin(), open);
}

}  // namespace weir::api::transcription
