// Pattern: what a tokenizer.json splits or replaces by: a literal or a regular expression
// (Oniguruma syntax, run by PCRE2 with JIT). The only file of src/text that knows PCRE2.
//
// Threads: immutable; find_matches() may be called from any thread at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace weir::text {

struct Match {
  size_t begin = 0, end = 0;
};

class Pattern {
 public:
  static Pattern literal(std::string text);
  static Result<Pattern> regex(std::string_view oniguruma);
  // {"String": "..."} or {"Regex": "..."}. `where` names the object that has it in messages.
  static Result<Pattern> parse(std::optional<JsonValue> json, const std::string& where);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  // All matches from left to right, none overlapping; empty ones too, but not right after a match.
  // A match that would cost more than the limits, for itself or with those before it, ends the
  // search: the rest counts as unmatched, and the result is false. REQUIRES: `subject` is valid
  // UTF-8.
  bool find_matches(std::string_view subject, std::vector<Match>& matches) const;

 private:
  struct Compiled;
  Pattern();
  enum class Outcome : uint8_t { kFound, kNone, kTooCostly };
  // `budget`: bytes that searches may still look at.
  Outcome next(std::string_view subject, size_t from, size_t& budget, Match& match) const;
  Outcome next_literal(std::string_view subject, size_t from, Match& match) const;

  std::string literal_;
  std::unique_ptr<Compiled> compiled_;  // Null: a literal.
};

}  // namespace weir::text
