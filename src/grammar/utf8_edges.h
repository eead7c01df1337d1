// Utf8Edges: adds the byte sequences of a set of characters to an automaton's draft.
#pragma once

#include <array>

#include "grammar/char_set.h"
#include "grammar/dfa.h"

namespace weir::grammar {

class Utf8Edges {
 public:
  // Characters end in state `to`; states for their last bytes are shared among them.
  Utf8Edges(Nfa& nfa, int32_t to) : nfa_(nfa), tails_{to, -1, -1, -1} {}

  void add(const CharSet& set, int32_t from);

 private:
  // A state from which any `count` continuation bytes lead to the end.
  int32_t tail(int count);
  // From `state`, the values `first` to `last` in a byte that adds its upper bits to `base`, and
  // `rest` continuation bytes of 6 bits.
  void add_values(int32_t state, char32_t base, char32_t first, char32_t last, int rest);

  Nfa& nfa_;
  std::array<int32_t, 4> tails_;
};

}  // namespace weir::grammar
