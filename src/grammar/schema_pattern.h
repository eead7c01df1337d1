// JSON Schema's `pattern`: a regular expression that occurs somewhere in a text. Beyond what
// regex.h reads: lookaheads at the beginning of a pattern that begins with ^, as people write "has
// a digit and is not blank": ^(?=.*[0-9])(?!\s*$).+
#pragma once

#include <span>
#include <string_view>

#include "grammar/grammar.h"
#include "grammar/json_text.h"

namespace weir::grammar {

// The texts that match.
Result<ExprId> pattern_text(Grammar& grammar, std::string_view pattern, Spelling spelling);

// What all of `demands`, at least one, and none of `exclusions` describe. Both are expressions
// without recursion, of one spelling.
Result<ExprId> all_but(Grammar& grammar, std::span<const ExprId> demands,
                       std::span<const ExprId> exclusions);

}  // namespace weir::grammar
