// What a grammar leaves no choice about, in tokens: found once, when a grammar is compiled, so that
// an engine appends a property's name at once instead of sampling it piece by piece.
//
// Threads: pure functions; pool threads only, for they tokenise.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/interrupt.h"
#include "grammar/token_trie.h"

namespace weir::grammar {

// The tokens that the tokenizer makes of a text.
using Tokenise = std::function<std::vector<int32_t>(std::string_view)>;

// Finds for each state of `automaton` from which one text alone leads on the first tokens of that
// text (Automaton::forced()). Only those that stay the same whatever follows the text, so that the
// output is tokenised as the model has learnt it; and only where there are two at least, for one
// token is sampled as fast as it is appended. Leaves the automaton as it is if `interrupt` has
// fired.
void add_forced_tokens(Automaton& automaton, const TokenTrie& trie, const Tokenise& tokenise,
                       Interrupt* interrupt = nullptr);

}  // namespace weir::grammar
