// Decimal: a JSON number as digits, and the languages of numbers at least, at most, and divisible
// by one. Numbers are spelled without exponent and without needless zeros in front.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "grammar/grammar.h"

namespace weir::grammar {

struct Decimal {
  bool negative = false;    // Never of zero.
  std::string whole = "0";  // No zeros in front but a single one.
  std::string fraction;     // Without zeros at its end.

  // As JSON spells numbers, exponents too; nothing if it has more than some 400 digits.
  static std::optional<Decimal> parse(std::string_view text);

  bool is_zero() const { return whole == "0" && fraction.empty(); }
  bool is_whole() const { return fraction.empty(); }
  // Less than 0, 0 or greater, as *this is less than, equal to or greater than `other`.
  int compare(const Decimal& other) const;
  // Compares magnitudes in the same way.
  int compare_magnitude(const Decimal& other) const;
};

struct Bound {
  Decimal value;
  bool strict = false;  // The value itself is excluded.
};

// A number's text with or without a fraction.
enum class NumberForm : uint8_t { kWhole, kFraction };

// Spellings of numbers that are not negative.
ExprId at_least(Grammar& grammar, const Decimal& magnitude, bool strict, NumberForm form);
ExprId at_most(Grammar& grammar, const Decimal& magnitude, bool strict, NumberForm form);
// Multiples of `step`, which is positive; nothing if `step` has too many digits.
std::optional<Dfa> multiples(const Decimal& step, NumberForm form);
// True if `value` is a multiple of `step`; nothing as above.
std::optional<bool> is_multiple(const Decimal& value, const Decimal& step);

// Spellings of all numbers within the bounds that are multiples of all `steps`; the error says that
// a step is not supported.
struct NumberRange {
  std::optional<Bound> min, max;
  std::vector<Decimal> steps;
  NumberForm form = NumberForm::kFraction;
};
Result<ExprId> number(Grammar& grammar, const NumberRange& range);

}  // namespace weir::grammar
