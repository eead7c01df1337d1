#include "suite/figure.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace weir::suite {

Verdict Figure::verdict() const {
  if (!skipped.empty()) return Verdict::kSkipped;
  if (!failure.empty()) return Verdict::kFail;
  if (!limit) return Verdict::kNone;
  return limit->kept_by(value) ? Verdict::kPass : Verdict::kFail;
}

std::string_view word_of(Verdict verdict) {
  constexpr std::array<std::string_view, 4> kWords = {"-", "pass", "FAIL", "skipped"};
  return kWords[static_cast<size_t>(verdict)];
}

std::string_view word_of(Better better) {
  constexpr std::array<std::string_view, 4> kWords = {"neither", "more", "less", "same"};
  return kWords[static_cast<size_t>(better)];
}

std::string number_text(double value) {
  char text[64];
  const bool large = std::abs(value) >= 100;
  std::snprintf(text, sizeof text, large ? "%.0f" : "%.3g", value);
  return text;
}

std::string value_text(const Figure& figure) {
  if (!figure.skipped.empty() || !figure.failure.empty()) return {};
  if (!figure.text.empty()) return figure.text;
  return number_text(figure.value) + (figure.unit.empty() ? "" : " " + figure.unit);
}

std::string limit_text(const Figure& figure) {
  if (!figure.limit) return {};
  return (figure.limit->kind == Limit::Kind::kAtMost ? "at most " : "at least ") +
         number_text(figure.limit->value);
}

std::string verdict_text(const Figure& figure) {
  std::string text(word_of(figure.verdict()));
  if (!figure.skipped.empty()) text += ": " + figure.skipped;
  if (!figure.failure.empty()) text += ": " + figure.failure;
  if (figure.verdict() == Verdict::kFail && !figure.note.empty()) text += ": " + figure.note;
  return text;
}

}  // namespace weir::suite
