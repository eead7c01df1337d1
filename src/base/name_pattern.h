// NamePattern: regular expressions over names of modules, as Python's re.match has them, for the
// rules in configs of quantised checkpoints. They come from files that are not trusted,
// so matching takes no more than (length of the pattern) x (length of the name) steps, without
// recursion: a program of states that are followed side by side. A lookahead is such a run of its
// own; what those add is bounded by kStepsMax.
//
// Read: literals, . [] \d \w \s \b and their opposites, ^ $, groups, |, * + ? {m,n} greedy or lazy
// (which makes no difference to whether there is a match), (?=...) and (?!...). Refused by name:
// backreferences, lookbehind, flags.
//
// Threads: immutable.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weir {

class NamePattern {
 public:
  static constexpr size_t kProgramMax = 4000;  // States; {m,n} repeats those it counts.
  static constexpr int64_t kStepsMax = 4'000'000;

  // The error says what of the pattern is not read.
  static Result<NamePattern> compile(std::string_view pattern);

  // Whether the pattern matches some beginning of `name`. After kStepsMax steps it does not.
  bool matches_begin(std::string_view name) const;

 private:
  friend class NamePatternCompiler;

  struct State {
    enum class Kind : uint8_t {
      kBytes,  // One byte of `bytes`.
      kSplit,  // Goes on at `next` and at `other`.
      kBegin,
      kEnd,
      kWordEdge,
      kNoWordEdge,
      kAhead,    // Goes on at `next` if the states from `other` on match here.
      kNoAhead,  // If they do not.
      kMatch,
    };
    Kind kind = Kind::kMatch;
    uint16_t bytes = 0;  // Index of a set.
    int32_t next = -1;
    int32_t other = -1;
  };
  struct Run {
    std::string_view name;
    int64_t steps = 0;
  };

  bool match(Run& run, int32_t state, size_t at) const;
  bool holds(Run& run, const State& state, size_t at) const;

  std::vector<State> states_;
  std::vector<std::bitset<256>> sets_;
  int32_t first_ = 0;
};

}  // namespace weir
