// Automaton: a compiled grammar. Deterministic automata over bytes that call one another, flattened
// into arrays for speed: a pushdown automaton whose stack a Matcher keeps.
//
// Threads: immutable; shared by all requests with the same grammar.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "grammar/char_runs.h"

namespace weir::grammar {

class Automaton {
 public:
  struct Range {
    uint8_t first = 0, last = 0;
    uint32_t to = 0;
  };
  static constexpr uint32_t kNoRow = UINT32_MAX;
  static constexpr uint32_t kNowhere = UINT32_MAX;
  static constexpr uint32_t kNoLoops = UINT32_MAX;
  // An edge that is taken by running the called automaton from its start to a final state.
  struct CallEdge {
    uint32_t call = 0;
    uint32_t to = 0;
  };
  struct Call {
    uint32_t start = 0;  // kNowhere: what is called has no sentence; min is 0 then.
    int32_t min = 1, max = 1;
    bool counted = false;
  };
  struct State {
    uint32_t ranges = 0;
    uint32_t calls = 0;
    uint32_t row = kNoRow;  // All 256 bytes, for states with many ranges.
    uint32_t call_count = 0;
    uint16_t range_count = 0;
    bool final = false;
    uint32_t loops = kNoLoops;
    CharRuns runs{};

    // Nothing happens in it but by the next byte.
    bool plain() const { return !final && call_count == 0; }
    // A call that returns to it may as well return to where it would return to.
    bool only_final() const { return final && call_count == 0 && range_count == 0; }
  };

  uint32_t start() const { return start_; }
  const State& state(uint32_t id) const {
    assert(id < states_.size());
    return states_[id];
  }
  std::span<const Range> ranges(const State& s) const {
    return {ranges_.data() + s.ranges, s.range_count};
  }
  std::span<const CallEdge> calls(const State& s) const {
    return {call_edges_.data() + s.calls, s.call_count};
  }
  const Call& call(uint32_t id) const { return calls_[id]; }
  // REQUIRES: the state has loops.
  const CharLoops& loops(const State& s) const { return loops_[s.loops]; }

  uint32_t next(uint32_t id, uint8_t byte) const {
    const State& s = states_[id];
    if (s.row != kNoRow) return rows_[s.row * 256u + byte];
    for (const Range& range : ranges(s)) {
      if (byte < range.first) return kNowhere;
      if (byte <= range.last) return range.to;
    }
    return kNowhere;
  }

  // Tokens that must come next in a state, as far as their spelling does not depend on what follows
  // (forced_tokens.h); mostly none.
  std::span<const int32_t> forced(uint32_t id) const {
    if (forced_begins_.empty()) return {};
    return std::span(forced_).subspan(forced_begins_[id],
                                      forced_begins_[id + 1] - forced_begins_[id]);
  }
  // `begins`: by state, where its tokens begin; one more for the end of the last.
  void set_forced(std::vector<uint32_t> begins, std::vector<int32_t> tokens) {
    forced_begins_ = std::move(begins);
    forced_ = std::move(tokens);
    forced_.shrink_to_fit();
  }

  // What the outputs need not satisfy of what was asked, in words: keywords of schemas that could
  // not be enforced (loose_schemas.h).
  const std::vector<std::string>& left_out() const { return left_out_; }
  void set_left_out(std::vector<std::string> names) { left_out_ = std::move(names); }

  size_t state_count() const { return states_.size(); }
  size_t memory_bytes() const;

 private:
  friend class Compiler;

  // What arrays have grown by beyond their contents is as much again: it would not be counted.
  void shrink();

  uint32_t start_ = 0;
  std::vector<State> states_;
  std::vector<Range> ranges_;
  std::vector<CallEdge> call_edges_;
  std::vector<Call> calls_;
  std::vector<CharLoops> loops_;  // Distinct.
  std::vector<uint32_t> rows_;
  std::vector<uint32_t> forced_begins_;
  std::vector<int32_t> forced_;
  std::vector<std::string> left_out_;
};

}  // namespace weir::grammar
