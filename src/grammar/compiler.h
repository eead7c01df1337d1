// compile(): a grammar to the automaton that a Matcher follows.
#pragma once

#include <memory>

#include "base/result.h"
#include "grammar/automaton.h"
#include "grammar/grammar.h"

namespace weir::grammar {

// An error says what is wrong with the grammar: a rule not defined, recursion without progress, no
// sentence at all, or more than the budget allows. `left`: what of the grammar's budget was not
// used. A pure function.
Result<std::unique_ptr<Automaton>> compile(Grammar grammar, Budget* left = nullptr);

}  // namespace weir::grammar
