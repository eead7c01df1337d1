// Regular expressions as ECMA-262 and Python write them, as far as they are regular: no
// backreferences, lookaround, word boundaries, \p classes or flags; those are errors. Matching is
// by automaton, so no pattern can make it slow.
//
// \d and \w are ASCII. \s is what both languages call white space, \S what neither does; likewise
// `.` leaves out every line end that one of them knows. So what is generated matches in both.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/grammar.h"
#include "grammar/json_text.h"

namespace weir::grammar {

enum class RegexMatch : uint8_t {
  kWhole,   // The pattern is the whole text.
  kSearch,  // It occurs somewhere in it, as JSON Schema's `pattern` means it.
};

// Texts that match, spelled as asked. The error says what is not understood, and where.
Result<ExprId> regex(Grammar& grammar, std::string_view pattern, Spelling spelling,
                     RegexMatch match);

}  // namespace weir::grammar
