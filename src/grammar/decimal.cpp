#include "grammar/decimal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "grammar/machine.h"

namespace weir::grammar {

namespace {

// A double has at most 309 digits before the point and 324 after it.
constexpr int64_t kDigitsMax = 400;
// No exponent beyond it leaves so few digits of a number that has so few itself.
constexpr int64_t kExponentMax = 2 * kDigitsMax;
// Digits that nothing asks for, before the point and after it: what a 64-bit integer and a double
// hold. More would be a model that has lost its way, and many parsers refuse them.
constexpr int32_t kFreeWholeMax = 18;
constexpr int32_t kFreeFractionMax = 17;
// Remainders that an automaton keeps apart.
constexpr int64_t kStepMax = 20'000;
constexpr size_t kStepFractionMax = 9;

ExprId digit_range(Grammar& g, char first, char last) {
  if (first > last) return g.nothing();
  return g.symbols(static_cast<uint16_t>(first), static_cast<uint16_t>(last));
}
ExprId any_digits(Grammar& g, int32_t min, int32_t max) {
  return g.repeat(digit_range(g, '0', '9'), min, max);
}
// What may follow a whole part that decides already.
ExprId any_fraction(Grammar& g, NumberForm form) {
  if (form == NumberForm::kWhole) return g.empty();
  return g.optional(g.concat({g.literal("."), any_digits(g, 1, kFreeFractionMax)}));
}

// A fraction that is at least `digits`.
ExprId fraction_at_least(Grammar& g, std::string_view digits, bool strict, NumberForm form) {
  if (form == NumberForm::kWhole) return digits.empty() && !strict ? g.empty() : g.nothing();
  const ExprId more = g.concat({g.repeat(g.literal("0"), 0, kFreeFractionMax),
                                digit_range(g, '1', '9'), any_digits(g, 0, kFreeFractionMax)});
  if (digits.empty()) return strict ? g.concat({g.literal("."), more}) : any_fraction(g, form);
  std::vector<ExprId> ways;
  for (size_t i = 0; i < digits.size(); ++i)
    ways.push_back(g.concat({g.literal(digits.substr(0, i)),
                             digit_range(g, static_cast<char>(digits[i] + 1), '9'),
                             any_digits(g, 0, kFreeFractionMax)}));
  ways.push_back(g.concat({g.literal(digits), strict ? more : any_digits(g, 0, kFreeFractionMax)}));
  return g.concat({g.literal("."), g.any(ways)});
}

// A fraction that is at most `digits`.
ExprId fraction_at_most(Grammar& g, std::string_view digits, bool strict, NumberForm form) {
  if (form == NumberForm::kWhole) return digits.empty() && strict ? g.nothing() : g.empty();
  const ExprId zeros = g.repeat(g.literal("0"), 0, kFreeFractionMax);
  if (digits.empty()) {
    if (strict) return g.nothing();
    return g.optional(g.concat({g.literal(".0"), zeros}));
  }
  std::vector<ExprId> ways;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0) ways.push_back(g.literal(digits.substr(0, i)));  // Less: it ends before a digit.
    ways.push_back(g.concat({g.literal(digits.substr(0, i)),
                             digit_range(g, '0', static_cast<char>(digits[i] - 1)),
                             any_digits(g, 0, kFreeFractionMax)}));
  }
  if (!strict) ways.push_back(g.concat({g.literal(digits), zeros}));
  return g.optional(g.concat({g.literal("."), g.any(ways)}));
}

// Whole parts with as many digits as `whole`, the first that differs on one side of its.
void add_deciding_digits(Grammar& g, std::string_view whole, bool above, NumberForm form,
                         std::vector<ExprId>& ways) {
  for (size_t i = 0; i < whole.size(); ++i) {
    const char least = i == 0 && whole.size() > 1 ? '1' : '0';
    const ExprId digit = above ? digit_range(g, static_cast<char>(whole[i] + 1), '9')
                               : digit_range(g, least, static_cast<char>(whole[i] - 1));
    const auto rest = static_cast<int32_t>(whole.size() - i - 1);
    ways.push_back(g.concat(
        {g.literal(whole.substr(0, i)), digit, any_digits(g, rest, rest), any_fraction(g, form)}));
  }
}

struct Step {
  int64_t units = 0;    // The step in units
  size_t decimals = 0;  // of the last of so many decimals.
};

std::optional<Step> step_of(const Decimal& step) {
  const std::string digits = step.whole + step.fraction;
  Step result{.decimals = step.fraction.size()};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), result.units);
  if (error != std::errc() || result.units <= 0 || result.units > kStepMax ||
      result.decimals > kStepFractionMax)
    return std::nullopt;
  return result;
}

int64_t scaled(int64_t remainder, size_t decimals, int64_t units) {
  for (; decimals > 0; --decimals) remainder = remainder * 10 % units;
  return remainder;
}

Result<ExprId> intersection(Grammar& g, std::span<const ExprId> exprs, std::span<const Dfa> also) {
  if (exprs.size() == 1 && also.empty()) return exprs[0];
  std::optional<Dfa> all;
  const auto meet = [&](const Dfa& dfa) -> Result<void> {
    if (!all) {
      all = dfa;
      return {};
    }
    WEIR_ASSIGN(all, intersect(*all, dfa, g.budget));
    return {};
  };
  for (const ExprId expr : exprs) {
    WEIR_ASSIGN(const Dfa dfa, machine_of(g, expr));
    WEIR_TRY(meet(dfa));
  }
  for (const Dfa& dfa : also) WEIR_TRY(meet(dfa));
  return g.machine(std::move(*all));
}

}  // namespace

std::optional<Decimal> Decimal::parse(std::string_view text) {
  Decimal result;
  if (text.starts_with('-')) {
    result.negative = true;
    text.remove_prefix(1);
  }
  int64_t exponent = 0;
  if (const size_t e = text.find_first_of("eE"); e != std::string_view::npos) {
    std::string_view digits = text.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (error != std::errc() || exponent < -kExponentMax || exponent > kExponentMax)
      return std::nullopt;
    text = text.substr(0, e);
  }
  const size_t point = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, point));
  if (point < text.size()) digits += text.substr(point + 1);
  const int64_t whole_digits = static_cast<int64_t>(point) + exponent;
  if (std::abs(whole_digits) > kDigitsMax || static_cast<int64_t>(digits.size()) > kDigitsMax)
    return std::nullopt;
  if (whole_digits < 0) digits.insert(0, static_cast<size_t>(-whole_digits), '0');
  const auto split = static_cast<size_t>(std::max<int64_t>(whole_digits, 0));
  if (digits.size() < split) digits.append(split - digits.size(), '0');
  result.whole = digits.substr(0, split);
  result.fraction = digits.substr(split);
  result.whole.erase(0, std::min(result.whole.find_first_not_of('0'), result.whole.size()));
  if (result.whole.empty()) result.whole.assign(1, '0');
  result.fraction.erase(result.fraction.find_last_not_of('0') + 1);
  if (result.is_zero()) result.negative = false;
  return result;
}

int Decimal::compare_magnitude(const Decimal& other) const {
  if (whole.size() != other.whole.size()) return whole.size() < other.whole.size() ? -1 : 1;
  if (const int order = whole.compare(other.whole); order != 0) return order;
  return fraction.compare(other.fraction);
}

int Decimal::compare(const Decimal& other) const {
  if (negative != other.negative) return negative ? -1 : 1;
  return negative ? other.compare_magnitude(*this) : compare_magnitude(other);
}

ExprId at_least(Grammar& g, const Decimal& magnitude, bool strict, NumberForm form) {
  const std::string& whole = magnitude.whole;
  const auto digits = static_cast<int32_t>(whole.size());
  std::vector<ExprId> ways{g.concat({digit_range(g, '1', '9'),
                                     any_digits(g, digits, std::max(digits, kFreeWholeMax - 1)),
                                     any_fraction(g, form)})};
  add_deciding_digits(g, whole, true, form, ways);
  ways.push_back(
      g.concat({g.literal(whole), fraction_at_least(g, magnitude.fraction, strict, form)}));
  return g.any(ways);
}

ExprId at_most(Grammar& g, const Decimal& magnitude, bool strict, NumberForm form) {
  const std::string& whole = magnitude.whole;
  const auto digits = static_cast<int32_t>(whole.size());
  std::vector<ExprId> ways;
  if (digits > 1)
    ways.push_back(g.concat({g.any({g.literal("0"), g.concat({digit_range(g, '1', '9'),
                                                              any_digits(g, 0, digits - 2)})}),
                             any_fraction(g, form)}));
  add_deciding_digits(g, whole, false, form, ways);
  ways.push_back(
      g.concat({g.literal(whole), fraction_at_most(g, magnitude.fraction, strict, form)}));
  return g.any(ways);
}

// State 0: nothing read. Then, by remainder: after "0", which takes no further digit before the
// point; after other whole parts; and after each number of decimals, the point being one of its
// own.
std::optional<Dfa> multiples(const Decimal& step, NumberForm form) {
  const std::optional<Step> parts = step_of(step);
  if (!parts) return std::nullopt;
  const int64_t units = parts->units;
  const size_t decimals = form == NumberForm::kWhole ? 0 : parts->decimals;
  const auto whole_state = [&](int64_t r) { return static_cast<int32_t>(2 + r); };
  const auto fraction_state = [&](size_t count, int64_t r) {
    return static_cast<int32_t>(2 + units * static_cast<int64_t>(1 + count) + r);
  };
  Dfa dfa;
  const auto finish = [&](Dfa::State state) {
    state.ranges_end = static_cast<int32_t>(dfa.ranges.size());
    dfa.states.push_back(state);
  };
  const auto begin = [&](bool final) {
    return Dfa::State{.ranges_begin = static_cast<int32_t>(dfa.ranges.size()), .final = final};
  };
  const auto add_digits = [&](int first, auto target) {
    for (int digit = first; digit <= 9; ++digit) {
      const auto symbol = static_cast<uint16_t>('0' + digit);
      dfa.ranges.push_back({symbol, symbol, target(digit)});
    }
  };
  const auto add_point = [&](int64_t r) {
    if (decimals > 0) dfa.ranges.push_back({'.', '.', fraction_state(0, r)});
  };
  Dfa::State state = begin(false);
  dfa.ranges.push_back({'0', '0', 1});
  add_digits(1, [&](int digit) { return whole_state(digit % units); });
  finish(state);
  state = begin(true);
  add_point(0);
  finish(state);
  for (int64_t r = 0; r < units; ++r) {
    state = begin(scaled(r, parts->decimals, units) == 0);
    add_point(r);
    add_digits(0, [&](int digit) { return whole_state((r * 10 + digit) % units); });
    finish(state);
  }
  for (size_t count = 0; count <= decimals && decimals > 0; ++count) {
    for (int64_t r = 0; r < units; ++r) {
      state = begin(count > 0 && scaled(r, decimals - count, units) == 0);
      if (count < decimals)
        add_digits(0,
                   [&](int digit) { return fraction_state(count + 1, (r * 10 + digit) % units); });
      finish(state);
    }
  }
  return trim(dfa);
}

std::optional<bool> is_multiple(const Decimal& value, const Decimal& step) {
  const std::optional<Step> parts = step_of(step);
  if (!parts) return std::nullopt;
  if (value.fraction.size() > parts->decimals) return false;
  int64_t remainder = 0;
  for (const char digit : value.whole + value.fraction)
    remainder = (remainder * 10 + (digit - '0')) % parts->units;
  return scaled(remainder, parts->decimals - value.fraction.size(), parts->units) == 0;
}

Result<ExprId> number(Grammar& g, const NumberRange& range) {
  std::vector<Dfa> steps;
  for (const Decimal& step : range.steps) {
    std::optional<Dfa> dfa = multiples(step, range.form);
    if (!dfa) return fail(ErrorCode::kUnsupported, "steps of more than a few digits");
    steps.push_back(std::move(*dfa));
  }
  if (!range.min && !range.max && steps.empty()) {
    const ExprId whole =
        g.any({g.literal("0"),
               g.concat({digit_range(g, '1', '9'), any_digits(g, 0, kFreeWholeMax - 1)})});
    const ExprId sign = g.optional(g.literal("-"));
    if (range.form == NumberForm::kWhole) return g.concat({sign, whole});
    // Two digits of exponent: more would soon be infinite.
    const ExprId exponent =
        g.concat({g.any({g.literal("e"), g.literal("E")}),
                  g.optional(g.any({g.literal("+"), g.literal("-")})), any_digits(g, 1, 2)});
    return g.concat({sign, whole, any_fraction(g, range.form), g.optional(exponent)});
  }
  const Decimal zero;
  std::vector<ExprId> up{at_least(g, zero, false, range.form)};
  std::vector<ExprId> down{at_least(g, zero, true, range.form)};
  bool has_up = true, has_down = true;
  if (range.min) {
    if (range.min->value.negative) {
      down.push_back(at_most(g, range.min->value, range.min->strict, range.form));
    } else {
      up[0] = at_least(g, range.min->value, range.min->strict, range.form);
      has_down = false;
    }
  }
  if (range.max) {
    if (range.max->value.negative) {
      down[0] = at_least(g, range.max->value, range.max->strict, range.form);
      has_up = false;
    } else {
      up.push_back(at_most(g, range.max->value, range.max->strict, range.form));
    }
  }
  std::vector<ExprId> parts;
  if (has_up) {
    WEIR_ASSIGN(const ExprId part, intersection(g, up, steps));
    parts.push_back(part);
  }
  if (has_down) {
    WEIR_ASSIGN(const ExprId part, intersection(g, down, steps));
    parts.push_back(g.concat({g.literal("-"), part}));
  }
  return g.any(parts);
}

}  // namespace weir::grammar
