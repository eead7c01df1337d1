// From expressions to single automata, where a front end needs more than the grammar's own
// operators: intersection, difference, anchors.
#pragma once

#include "grammar/grammar.h"

namespace weir::grammar {

// The automaton of an expression without recursion; every repetition is written out.
Result<Dfa> machine_of(Grammar& grammar, ExprId expr);

// Texts t for which the automaton accepts kBegin t kEnd.
Dfa without_ends(const Dfa& dfa);

}  // namespace weir::grammar
