// Classes of characters that make up most of a vocabulary, and how many of them an automaton's
// state takes in a row, whatever they are. Where a state takes n, every token of at most n such
// characters is allowed without looking at it: the trie of the vocabulary keeps those tokens ready
// as a bitset. Beside it, sets of characters of which a state takes any number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::grammar {

struct Dfa;

// Each is a part of the one before.
enum class CharClass : uint8_t {
  // What stands for itself inside a JSON string and is no line end to anybody: no quote, backslash,
  // control character, U+2028 or U+2029.
  kText,
  kWord,    // ASCII letters, digits, underscore.
  kLetter,  // ASCII letters.
  kLower,   // a to z.
};
inline constexpr size_t kCharClasses = 4;

bool in_class(CharClass which, uint8_t ascii);
// A character above ASCII.
constexpr bool in_class(CharClass which, char32_t character) {
  return which == CharClass::kText && character != 0x2028 && character != 0x2029;
}

inline constexpr uint8_t kEndlessRun = 255;

// The run of one state and one class.
struct CharRun {
  uint8_t length = 0;   // The longest run within this automaton and its calls; kEndlessRun: any.
  bool to_end = false;  // Every text of that length ends in a final state.
};
using CharRuns = std::array<CharRun, kCharClasses>;

// Characters of which a state takes any number, in any order.
struct CharLoops {
  std::array<uint64_t, 2> ascii{};  // Bits by character.
  bool wide = false;                // All of kText above ASCII.

  bool none() const { return ascii[0] == 0 && ascii[1] == 0; }
  friend auto operator<=>(const CharLoops&, const CharLoops&) = default;
};

// By state: those that lead back to it, or to one other state and from there back to that.
std::vector<CharLoops> char_loops(const Dfa& dfa);

// By state. `called`: by number of a call, the run at the beginning of what it calls; empty: not
// known, which makes runs shorter.
std::vector<CharRuns> char_runs(const Dfa& dfa, const std::vector<CharRuns>& called);

}  // namespace weir::grammar
