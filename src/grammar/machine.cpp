#include "grammar/machine.h"

#include "grammar/lowering.h"

namespace weir::grammar {

Result<Dfa> machine_of(Grammar& grammar, ExprId expr) {
  Lowering lowering(grammar, Lowering::Style::kWrittenOut);
  WEIR_ASSIGN(const Nfa nfa, lowering.build_single(expr));
  WEIR_ASSIGN(const Dfa dfa, determinise(nfa, grammar.budget));
  return trim(dfa);
}

Dfa without_ends(const Dfa& dfa) {
  if (dfa.empty()) return {};
  const int32_t start = dfa.next(0, kBegin);
  if (start < 0) return {};
  // A copy whose first state is the one after kBegin; the old first state becomes a copy too.
  Dfa result;
  const auto add = [&](int32_t state) {
    Dfa::State copy;
    const int32_t end = dfa.next(state, kEnd);
    copy.final = end >= 0 && dfa.states[static_cast<size_t>(end)].final;
    copy.ranges_begin = static_cast<int32_t>(result.ranges.size());
    for (Dfa::Range range : dfa.ranges_of(state)) {
      if (range.first >= kBegin) continue;
      range.last = range.last < kBegin ? range.last : kBegin - 1;
      ++range.to;
      result.ranges.push_back(range);
    }
    copy.ranges_end = static_cast<int32_t>(result.ranges.size());
    result.states.push_back(copy);
  };
  add(start);
  for (int32_t state = 0; state < static_cast<int32_t>(dfa.states.size()); ++state) add(state);
  return trim(result);
}

}  // namespace weir::grammar
