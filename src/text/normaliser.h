// Normaliser: tokenizer.json's `normalizer`: what happens to a text before it is split.
//
// Threads: immutable after parse(); apply() may be called from any thread at once.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/unicode.h"
#include "base/unicode.h"
#include "text/charsmap.h"
#include "text/regex.h"

namespace weir::text {

class Normaliser {
 public:
  // Nothing to do.
  Normaliser() = default;
  static Result<Normaliser> parse(std::optional<JsonValue> json);

  bool empty() const { return steps_.empty(); }
  // Changes `text` in place. False if the first character of the result no longer stems from the
  // first of `text` (Metaspace's `first` asks). A step that would make it more than
  // 64 times as long is left out. REQUIRES: valid UTF-8.
  bool apply(std::string& text) const;

 private:
  enum class Kind : uint8_t {
    kForm,
    kLowercase,
    kPrepend,
    kReplace,
    kStrip,
    kStripAccents,
    kCharsmap,
    kNmt,
    kByteLevel,
    kBertClean,
    kBertChinese,
    kBertAccents,
  };
  struct Step {
    Kind kind = Kind::kForm;
    NormalForm form = NormalForm::kNfc;
    std::string content = {};               // kPrepend, kReplace.
    std::optional<Pattern> pattern = {};    // kReplace.
    std::optional<Charsmap> charsmap = {};  // kCharsmap.
    bool strip_left = false, strip_right = false;
  };

  Result<void> add(JsonValue json, int depth);
  Result<void> add_bert(JsonValue json);
  // False as apply()'s. What may grow a text many times stops once `out` is longer than
  // `bytes_max`.
  static bool run(const Step& step, const std::string& text, size_t bytes_max, std::string& out);

  std::vector<Step> steps_;
};

}  // namespace weir::text
