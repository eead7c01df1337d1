// GBNF, llama.cpp's grammar notation: `name ::= alternatives`, "literals", [classes], `.`, groups,
// * + ? {m,n}, # comments; the rule `root` is the whole output. As XGrammar reads it, a rule may go
// on over several lines until the next `name ::=`.
//
// Refused: token references (<think>, <[1000]>), lookahead.
#pragma once

#include <string_view>

#include "grammar/grammar.h"

namespace weir::grammar {

// Fills the grammar and sets its root.
Result<void> gbnf(Grammar& grammar, std::string_view text);

}  // namespace weir::grammar
