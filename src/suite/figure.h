// Figure: one line of a report: what was measured, the limit that it has to keep, and the verdict.
//
// Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::suite {

struct Limit {
  enum class Kind : uint8_t { kAtMost, kAtLeast };
  Kind kind = Kind::kAtMost;
  double value = 0;

  bool kept_by(double found) const {
    return kind == Kind::kAtMost ? found <= value : found >= value;
  }
};
inline Limit at_most(double value) { return {Limit::Kind::kAtMost, value}; }
inline Limit at_least(double value) { return {Limit::Kind::kAtLeast, value}; }

// How a figure is compared with that of an older report.
enum class Better : uint8_t {
  kNeither,  // Not at all.
  kMore,
  kLess,
  kSame,  // The text has to be equal: a hash of bits.
};

enum class Verdict : uint8_t {
  kNone,  // There is no limit.
  kPass,
  kFail,
  kSkipped,
};

struct Figure {
  std::string part = {};
  std::string name = {};  // Of its part, one of a kind.
  double value = 0;
  std::string text = {};  // What was found where that is no number.
  std::string unit = {};
  std::optional<Limit> limit = {};
  Better better = Better::kNeither;
  double tolerance = 0;      // The share by which it may be worse than an older report's.
  std::string skipped = {};  // Why it was not measured; empty: it was.
  std::string note = {};     // Where it fails: what the first fault was.
  std::string failure = {};  // Why it could not be measured; empty: it could.

  Verdict verdict() const;
};

std::string_view word_of(Verdict verdict);
std::string_view word_of(Better better);

// "5708", "0.31": three digits, and all of those before the point.
std::string number_text(double value);
// "5708 tokens/s"; a text as it is; empty where nothing was measured.
std::string value_text(const Figure& figure);
// "at most 5"; empty: there is none.
std::string limit_text(const Figure& figure);
// "pass", "FAIL", "-"; "skipped: why".
std::string verdict_text(const Figure& figure);

}  // namespace weir::suite
