// Dfa: a deterministic automaton over bytes whose edges may also be calls of other automata; the
// form in which the compiler keeps a rule. Nfa: its nondeterministic draft.
//
// Two symbols above the bytes, kBegin and kEnd, stand for the ends of a text while a regex with
// anchors is compiled; none is left afterwards.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/interrupt.h"

namespace weir::grammar {

inline constexpr uint16_t kBegin = 256;
inline constexpr uint16_t kEnd = 257;

// What compiling one grammar may cost. Counted in visited elements, never in seconds, so that a
// grammar is refused everywhere or nowhere.
struct Budget {
  int64_t work = 16'000'000;       // About half a second.
  int64_t states = 400'000;        // Of all automata together, drafts too: about 100 MB.
  Interrupt* interrupt = nullptr;  // May end the compilation, as if the budget were used up.
  bool interrupted() const { return interrupt && interrupt->fired(); }
  bool exhausted() const { return work < 0 || states < 0 || interrupted(); }
};

// The error of an exhausted budget.
tl::unexpected<Error> too_complex();

struct Nfa {
  struct Edge {
    uint16_t first = 0, last = 0;  // Symbols; of an empty edge or a call not used.
    int32_t call = kSymbols;       // kSymbols, kEmpty, or the number of a call.
    int32_t to = 0;
    int32_t next = -1;  // The same state's next edge.
  };
  static constexpr int32_t kSymbols = -1;
  static constexpr int32_t kEmpty = -2;

  int32_t add_state() {
    first_edge.push_back(-1);
    return static_cast<int32_t>(first_edge.size()) - 1;
  }
  void add(int32_t from, Edge edge) {
    edge.next = first_edge[static_cast<size_t>(from)];
    first_edge[static_cast<size_t>(from)] = static_cast<int32_t>(edges.size());
    edges.push_back(edge);
  }
  void add_symbols(int32_t from, int32_t to, uint16_t first, uint16_t last) {
    add(from, {.first = first, .last = last, .to = to});
  }
  void add_empty(int32_t from, int32_t to) {
    if (from != to) add(from, {.call = kEmpty, .to = to});
  }
  void add_call(int32_t from, int32_t to, int32_t call) { add(from, {.call = call, .to = to}); }

  int32_t start = 0;
  int32_t final = 0;
  std::vector<int32_t> first_edge;  // By state; -1: none.
  std::vector<Edge> edges;
};

// Invariants: state 0 is the start; ranges of a state are sorted and disjoint, its calls sorted.
struct Dfa {
  struct Range {
    uint16_t first = 0, last = 0;
    int32_t to = 0;
  };
  struct Call {
    int32_t call = 0;
    int32_t to = 0;
  };
  struct State {
    int32_t ranges_begin = 0, ranges_end = 0;
    int32_t calls_begin = 0, calls_end = 0;
    bool final = false;
  };

  std::span<const Range> ranges_of(int32_t state) const {
    const State& s = states[static_cast<size_t>(state)];
    return std::span(ranges).subspan(static_cast<size_t>(s.ranges_begin),
                                     static_cast<size_t>(s.ranges_end - s.ranges_begin));
  }
  std::span<const Call> calls_of(int32_t state) const {
    const State& s = states[static_cast<size_t>(state)];
    return std::span(calls).subspan(static_cast<size_t>(s.calls_begin),
                                    static_cast<size_t>(s.calls_end - s.calls_begin));
  }
  // The state after `symbol`, or -1.
  int32_t next(int32_t state, uint16_t symbol) const;
  // True if it is in the language. REQUIRES: no calls.
  bool accepts(std::string_view text) const;
  bool empty() const { return states.empty(); }  // The language is; otherwise every state is live.

  std::vector<State> states;
  std::vector<Range> ranges;
  std::vector<Call> calls;
};

// Subset construction. Nothing is trimmed.
Result<Dfa> determinise(const Nfa& nfa, Budget& budget);

// Drops states that no path from the start reaches or that reach no final state. `productive`: by
// call, whether what it calls has a sentence; empty: all have.
Dfa trim(const Dfa& dfa, const std::vector<bool>& productive = {});

// What both accept, and what `a` accepts but `b` does not; trimmed. REQUIRES: neither has calls.
Result<Dfa> intersect(const Dfa& a, const Dfa& b, Budget& budget);
Result<Dfa> subtract(const Dfa& a, const Dfa& b, Budget& budget);

}  // namespace weir::grammar
