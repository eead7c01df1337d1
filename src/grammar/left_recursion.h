// Rules that begin with themselves (`sum ::= sum "+" term | term`) say the same as a repetition
// (`sum ::= term ("+" term)*`), which an automaton without lookahead can follow.
#pragma once

#include "grammar/grammar.h"

namespace weir::grammar {

// Rewrites direct left recursion of every rule. What goes by way of other rules is left as it is;
// the compiler refuses it.
void remove_left_recursion(Grammar& grammar);

}  // namespace weir::grammar
