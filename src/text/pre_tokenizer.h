// PreTokenizer: tokenizer.json's `pre_tokenizer`: a normalised text cut into words, which the model
// encodes one by one.
//
// Threads: immutable after parse(); run() may be called from any thread at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/regex.h"

namespace weir::text {

// A text in the course of being cut: the words are ranges of `text`, in order, none empty.
struct Words {
  struct Word {
    size_t begin = 0, end = 0;
    bool at_start = false;  // Begins where the whole input begins.
  };
  std::string text;
  std::vector<Word> words;

  std::string_view view(const Word& word) const {
    return std::string_view(text).substr(word.begin, word.end - word.begin);
  }
};

class PreTokenizer {
 public:
  // Nothing to cut.
  PreTokenizer() = default;
  static Result<PreTokenizer> parse(std::optional<JsonValue> json);

  // REQUIRES: valid UTF-8.
  void run(Words& words) const;

 private:
  enum class Kind : uint8_t {
    kByteLevel,  // Space before, bytes to characters.
    kPattern,    // Split by `pattern`.
    kMetaspace,  // Spaces to `replacement`, one before, split before each.
    kDigits,
    kPunctuation,
    kWords,   // \w+|[^\w\s]+, the rest removed.
    kSpace,   // White space removed.
    kLength,  // `length` characters each.
  };
  // What becomes of the matches.
  enum class Behaviour : uint8_t {
    kRemoved,
    kIsolated,
    kMergedWithPrevious,
    kMergedWithNext,
    kContiguous,
  };
  enum class Prepend : uint8_t { kAlways, kFirst, kNever };
  struct Step {
    Kind kind = Kind::kPattern;
    Behaviour behaviour = Behaviour::kIsolated;
    bool invert = false;  // The matches are what lies between those of `pattern`.
    std::optional<Pattern> pattern = {};
    std::string replacement = {};  // kMetaspace, kByteLevel.
    Prepend prepend = Prepend::kNever;
    bool split = true;  // kMetaspace.
    size_t length = 0;  // kLength.
  };
  // A stretch of a word, matched or not; they cover it.
  struct Span {
    size_t begin = 0, end = 0;
    bool matched = false;
  };

  Result<void> add(JsonValue json, int depth);
  Result<void> add_byte_level(JsonValue json);
  Result<void> add_metaspace(JsonValue json);
  Result<void> add_split(JsonValue json);
  static Result<Behaviour> parse_behaviour(std::string_view name);
  static void find_spans(const Step& step, std::string_view word, std::vector<Match>& matches,
                         std::vector<Span>& spans);
  static void merge_spans(Behaviour behaviour, std::vector<Span>& spans);
  static void cut(const Step& step, Words& words);
  static void rewrite(const Step& step, Words& words);

  std::vector<Step> steps_;
};

}  // namespace weir::text
