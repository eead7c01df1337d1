// Decimals beside exact 128-bit integers: values in units of 10^-kScale.
#include "grammar/decimal.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "grammar/machine.h"

namespace weir::grammar {
namespace {

__extension__ typedef __int128 Int128;

constexpr int kScale = 18;

Int128 power_of_ten(int exponent) {
  Int128 power = 1;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

Decimal parsed(std::string_view text) {
  const auto decimal = Decimal::parse(text);
  EXPECT_TRUE(decimal.has_value()) << text;
  return decimal.value_or(Decimal{});
}

// REQUIRES: at most kScale decimals and 20 digits before them.
Int128 value_of(const Decimal& decimal) {
  Int128 value = 0;
  for (const char digit : decimal.whole + decimal.fraction) value = value * 10 + (digit - '0');
  value *= power_of_ten(kScale - static_cast<int>(decimal.fraction.size()));
  return decimal.negative ? -value : value;
}

void expect_normal(const Decimal& decimal, std::string_view text) {
  EXPECT_FALSE(decimal.whole.empty()) << text;
  EXPECT_TRUE(decimal.whole == "0" || decimal.whole[0] != '0') << text;
  EXPECT_TRUE(decimal.fraction.empty() || decimal.fraction.back() != '0') << text;
  EXPECT_FALSE(decimal.negative && decimal.is_zero()) << text;
}

struct Written {
  std::string text;
  Int128 value = 0;
};

// A number as JSON may spell it, with digits and exponent such that its value is known.
Written random_number(std::mt19937& random) {
  const auto pick = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  Written made;
  const bool negative = pick(2) == 0;
  if (negative) made.text += '-';
  Int128 mantissa = 0;
  const auto add_digit = [&](int digit) {
    made.text += static_cast<char>('0' + digit);
    mantissa = mantissa * 10 + digit;
  };
  const int whole = pick(3) == 0 ? 0 : 1 + pick(8);
  if (whole == 0) add_digit(0);
  for (int i = 0; i < whole; ++i) add_digit(i == 0 ? 1 + pick(9) : pick(3) == 0 ? 0 : pick(10));
  const int decimals = pick(2) == 0 ? 0 : 1 + pick(6);
  if (decimals > 0) made.text += '.';
  for (int i = 0; i < decimals; ++i) add_digit(pick(2) == 0 ? 0 : pick(10));
  int exponent = 0;
  if (pick(2) == 0) {
    exponent = pick(21) - 10;
    made.text += pick(2) == 0 ? 'e' : 'E';
    if (exponent >= 0 && pick(2) == 0) made.text += '+';
    made.text += std::to_string(exponent);
  }
  made.value = mantissa * power_of_ten(kScale + exponent - decimals);
  if (negative) made.value = -made.value;
  return made;
}

TEST(Decimal, ReadsEveryNumberAsItsExactValue) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const Written number = random_number(random);
    const Decimal decimal = parsed(number.text);
    expect_normal(decimal, number.text);
    ASSERT_TRUE(value_of(decimal) == number.value)
        << number.text << " became " << decimal.whole << "." << decimal.fraction;
    ASSERT_EQ(decimal.is_zero(), number.value == 0) << number.text;
    ASSERT_EQ(decimal.is_whole(), number.value % power_of_ten(kScale) == 0) << number.text;
  }
}

TEST(Decimal, ComparesAsValuesDo) {
  std::mt19937 random(2);
  const auto sign = [](auto x) { return (x > 0) - (x < 0); };
  const auto magnitude = [](Int128 x) { return x < 0 ? -x : x; };
  int equal = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Written a = random_number(random);
    Written b = random_number(random);
    if (i % 4 == 0)
      b = {a.text.find_first_of("eE.") == std::string::npos ? a.text + ".000" : a.text, a.value};
    const Decimal x = parsed(a.text), y = parsed(b.text);
    ASSERT_EQ(sign(x.compare(y)), sign(a.value - b.value)) << a.text << " and " << b.text;
    ASSERT_EQ(sign(x.compare_magnitude(y)), sign(magnitude(a.value) - magnitude(b.value)))
        << a.text << " and " << b.text;
    equal += a.value == b.value;
  }
  EXPECT_GT(equal, 4000);
}

TEST(Decimal, ExponentsReachAsFarAsADoubleDoes) {
  EXPECT_EQ(parsed("1e308").whole, "1" + std::string(308, '0'));
  EXPECT_EQ(parsed("1e-300").fraction, std::string(299, '0') + "1");
  EXPECT_EQ(parsed("4.9406564584124654e-324").fraction.size(), 340u);
  EXPECT_EQ(parsed("0.0012e+3").whole, "1");
  EXPECT_EQ(parsed("0.0012e+3").fraction, "2");
  EXPECT_EQ(parsed("100e-2").compare(parsed("1")), 0);
  EXPECT_LT(parsed("1e-300").compare(parsed("1e-299")), 0);
  EXPECT_GT(parsed("-1e-300").compare(parsed("-1e-299")), 0);
  EXPECT_LT(parsed("-1e300").compare(parsed("1e-300")), 0);
}

TEST(Decimal, ZeroHasNoSign) {
  for (const char* text : {"0", "-0", "-0.0", "0e5", "-0e-5", "-0.000E+10"}) {
    EXPECT_TRUE(parsed(text).is_zero()) << text;
    EXPECT_FALSE(parsed(text).negative) << text;
    EXPECT_EQ(parsed(text).compare(Decimal{}), 0) << text;
  }
}

// Whatever the exponent: one that no integer holds must not count as none.
TEST(Decimal, NumbersOfTooManyDigitsAreRefused) {
  EXPECT_EQ(parsed("1e399").whole.size(), 400u);
  for (const char* text :
       {"1e400", "1e1000", "1e-1000", "1e9223372036854775807", "1e-9223372036854775808",
        "123e9223372036854775807", "1e9223372036854775808", "1e-99999999999999999999",
        "1.5e99999999999999999999999999"})
    EXPECT_FALSE(Decimal::parse(text).has_value()) << text;
  EXPECT_TRUE(Decimal::parse(std::string(400, '7')).has_value());
  EXPECT_FALSE(Decimal::parse(std::string(401, '7')).has_value());
}

// --- Languages of numbers.

// Spellings without a sign: whole parts around `around` and small ones, fractions of some digits.
struct Spelled {
  std::string text;
  Int128 value = 0;
  size_t decimals = 0;
};

const std::vector<Spelled>& spellings() {
  static const std::vector<Spelled> all = [] {
    std::vector<std::string> fractions{""};
    for (size_t i = 0; i < fractions.size(); ++i)
      if (fractions[i].size() < 3)
        for (const char digit : {'0', '2', '5', '9'}) fractions.push_back(fractions[i] + digit);
    std::vector<Spelled> made;
    for (int whole = 0; whole <= 130; ++whole)
      for (const std::string& fraction : fractions) {
        const std::string text = std::to_string(whole) + (fraction.empty() ? "" : "." + fraction);
        const Int128 units = std::stoll(std::to_string(whole) + fraction);
        made.push_back({text, units * power_of_ten(kScale - static_cast<int>(fraction.size())),
                        fraction.size()});
      }
    return made;
  }();
  return all;
}

constexpr std::array kNotSpelledSo = {"",    "-",   ".",    ".5",  "1.",   "00",   "01",
                                      "1e1", "1E0", "+1",   "1..", "1.5.", "0x1",  " 1",
                                      "1 ",  "--1", "00.5", "1a",  "-.5",  "-01.5"};

Dfa machine(Grammar& grammar, ExprId expr) {
  auto dfa = machine_of(grammar, expr);
  EXPECT_TRUE(dfa.has_value()) << dfa.error().message;
  return dfa ? std::move(*dfa) : Dfa{};
}

std::string random_bound(std::mt19937& random) {
  std::string text = std::to_string(random() % 125);
  const size_t decimals = random() % 4;
  if (decimals > 0) text += '.';
  for (size_t i = 0; i < decimals; ++i) text += "0125790"[random() % 7];
  return text;
}

TEST(Decimal, BoundsAcceptWhatIsOnTheirSide) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    const std::string bound = round == 0 ? "0" : round == 1 ? "100" : random_bound(random);
    const Decimal decimal = parsed(bound);
    const Int128 limit = value_of(decimal);
    for (const NumberForm form : {NumberForm::kWhole, NumberForm::kFraction})
      for (const bool strict : {false, true}) {
        Grammar grammar;
        const Dfa least = machine(grammar, at_least(grammar, decimal, strict, form));
        const Dfa most = machine(grammar, at_most(grammar, decimal, strict, form));
        for (const Spelled& number : spellings()) {
          const bool spelled = form == NumberForm::kFraction || number.decimals == 0;
          const bool equal = number.value == limit && !strict;
          ASSERT_EQ(least.accepts(number.text), spelled && (number.value > limit || equal))
              << number.text << " at least " << bound << (strict ? ", strictly" : "");
          ASSERT_EQ(most.accepts(number.text), spelled && (number.value < limit || equal))
              << number.text << " at most " << bound << (strict ? ", strictly" : "");
        }
        for (const char* text : kNotSpelledSo) {
          EXPECT_FALSE(least.accepts(text)) << text;
          EXPECT_FALSE(most.accepts(text)) << text;
        }
      }
  }
}

TEST(Decimal, MultiplesAreThoseWithoutARemainder) {
  for (const char* text : {"1", "2", "3", "7", "10", "12", "64", "0.5", "0.25", "0.01", "0.05",
                           "1.5", "2.05", "0.125", "0.007", "20"}) {
    const Decimal step = parsed(text);
    const Int128 units = value_of(step);
    const auto whole = multiples(step, NumberForm::kWhole);
    const auto fraction = multiples(step, NumberForm::kFraction);
    ASSERT_TRUE(whole && fraction) << text;
    for (const Spelled& number : spellings()) {
      const bool expected = number.value % units == 0;
      // No more decimals than the step has: of other multiples there is no spelling with more
      // that says anything more.
      EXPECT_EQ(fraction->accepts(number.text), expected && number.decimals <= step.fraction.size())
          << number.text << " of " << text;
      EXPECT_EQ(whole->accepts(number.text), expected && number.decimals == 0)
          << number.text << " of " << text;
      ASSERT_EQ(is_multiple(parsed(number.text), step), expected) << number.text << " of " << text;
    }
    for (const char* other : kNotSpelledSo) {
      EXPECT_FALSE(whole->accepts(other)) << other;
      EXPECT_FALSE(fraction->accepts(other)) << other;
    }
  }
}

TEST(Decimal, StepsHaveFewDigits) {
  EXPECT_TRUE(multiples(parsed("20000"), NumberForm::kWhole));
  EXPECT_TRUE(is_multiple(parsed("40000"), parsed("20000")).value_or(false));
  EXPECT_FALSE(is_multiple(parsed("30000"), parsed("20000")).value_or(true));
  EXPECT_TRUE(is_multiple(parsed("3e-9"), parsed("1e-9")).value_or(false));
  EXPECT_FALSE(is_multiple(parsed("1e-300"), parsed("0.01")).value_or(true));
  EXPECT_TRUE(is_multiple(parsed("1e300"), parsed("0.01")).value_or(false));
  EXPECT_TRUE(is_multiple(parsed("-0"), parsed("0.01")).value_or(false));
  for (const char* text :
       {"20001", "1e-10", "1e-300", "1e300", "0.20001", "99999999999999999999"}) {
    EXPECT_FALSE(multiples(parsed(text), NumberForm::kFraction)) << text;
    EXPECT_FALSE(is_multiple(parsed("1"), parsed(text)).has_value()) << text;
  }
}

TEST(Decimal, RangesAcceptWhatSatisfiesAllOfThem) {
  std::mt19937 random(4);
  const auto signed_bound = [&] {
    return (random() % 2 == 0 ? "-" : "") + (random() % 6 == 0 ? "0" : random_bound(random));
  };
  int accepted = 0;
  for (int round = 0; round < 120; ++round) {
    NumberRange range;
    range.form = random() % 3 == 0 ? NumberForm::kWhole : NumberForm::kFraction;
    std::string told;
    if (random() % 3 != 0) {
      const std::string bound = signed_bound();
      range.min = Bound{parsed(bound), random() % 2 == 0};
      told += (range.min->strict ? "> " : ">= ") + bound + " ";
    }
    if (random() % 3 != 0) {
      const std::string bound = signed_bound();
      range.max = Bound{parsed(bound), random() % 2 == 0};
      told += (range.max->strict ? "< " : "<= ") + bound + " ";
    }
    if (!range.min && !range.max) range.steps.push_back(parsed("2"));
    if (random() % 3 == 0) range.steps.push_back(parsed(random() % 2 == 0 ? "0.5" : "3"));
    for (const Decimal& step : range.steps) told += "step " + step.whole + "." + step.fraction;
    Grammar grammar;
    const auto expr = number(grammar, range);
    ASSERT_TRUE(expr.has_value()) << expr.error().message;
    const Dfa dfa = machine(grammar, *expr);
    for (const Spelled& magnitude : spellings())
      for (const char* sign : {"", "-"}) {
        const std::string text = sign + magnitude.text;
        const Int128 value = *sign ? -magnitude.value : magnitude.value;
        bool expected = (range.form == NumberForm::kFraction || magnitude.decimals == 0) &&
                        !(*sign && value == 0);
        if (range.min) {
          const Int128 least = value_of(range.min->value);
          expected = expected && (value > least || (value == least && !range.min->strict));
        }
        if (range.max) {
          const Int128 most = value_of(range.max->value);
          expected = expected && (value < most || (value == most && !range.max->strict));
        }
        for (const Decimal& step : range.steps)
          expected =
              expected && value % value_of(step) == 0 && magnitude.decimals <= step.fraction.size();
        ASSERT_EQ(dfa.accepts(text), expected) << text << ": " << told;
        accepted += expected;
      }
    for (const char* text : kNotSpelledSo) EXPECT_FALSE(dfa.accepts(text)) << text;
  }
  EXPECT_GT(accepted, 10'000);
}

TEST(Decimal, ANumberWithoutBoundsMayHaveAnExponent) {
  Grammar grammar;
  const auto any = number(grammar, {});
  NumberRange whole_numbers;
  whole_numbers.form = NumberForm::kWhole;
  const auto whole = number(grammar, whole_numbers);
  ASSERT_TRUE(any && whole);
  const Dfa any_dfa = machine(grammar, *any), whole_dfa = machine(grammar, *whole);
  for (const char* text : {"0", "-0", "7", "-12", "123456789012345678"}) {
    EXPECT_TRUE(any_dfa.accepts(text)) << text;
    EXPECT_TRUE(whole_dfa.accepts(text)) << text;
  }
  for (const char* text : {"0.5", "-1.25e9", "1E+10", "2e-07", "0.12345678901234567"}) {
    EXPECT_TRUE(any_dfa.accepts(text)) << text;
    EXPECT_FALSE(whole_dfa.accepts(text)) << text;
  }
  for (const char* text : {"", "-", "01", "1.", ".5", "1e", "1e+", "1e123", "1234567890123456789",
                           "0.123456789012345678", "1.e5", "--1", "+1"}) {
    EXPECT_FALSE(any_dfa.accepts(text)) << text;
    EXPECT_FALSE(whole_dfa.accepts(text)) << text;
  }
}

}  // namespace
}  // namespace weir::grammar
