// Lowers every rule that is called, determinises it, drops what leads nowhere, and lays
// all of it out as one Automaton.
#include "grammar/compiler.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "grammar/left_recursion.h"
#include "grammar/lowering.h"

namespace weir::grammar {

namespace {

// States with more ranges than this get a row of all bytes, while there is room.
constexpr uint32_t kScannedRangesMax = 3;
constexpr size_t kRowsMax = 4096;  // 4 MB.

}  // namespace

class Compiler {
 public:
  explicit Compiler(Grammar grammar) : grammar_(std::move(grammar)), lowering_(grammar_) {}

  const Budget& budget() const { return grammar_.budget; }

  Result<std::unique_ptr<Automaton>> run() {
    remove_left_recursion(grammar_);
    WEIR_TRY(lowering_.prepare());
    for (int32_t machine = 0; machine < lowering_.machine_count(); ++machine) {
      WEIR_ASSIGN(const Nfa nfa, lowering_.build(machine));
      WEIR_ASSIGN(Dfa dfa, determinise(nfa, grammar_.budget));
      machines_.push_back(std::move(dfa));
    }
    WEIR_TRY(trim_all());
    WEIR_TRY(check_progress());
    return lay_out();
  }

 private:
  size_t callee(const Dfa::Call& call) const {
    return static_cast<size_t>(lowering_.calls()[static_cast<size_t>(call.call)].machine);
  }
  bool may_skip(const Dfa::Call& call) const {
    return lowering_.calls()[static_cast<size_t>(call.call)].min == 0;
  }

  // Drops calls of machines without a sentence, and what is left without a way to the end. From
  // then on every state can be completed.
  Result<void> trim_all() {
    const std::vector<CallTarget>& calls = lowering_.calls();
    std::vector<std::vector<size_t>> calls_of(machines_.size());
    std::vector<bool> productive, has_sentence(machines_.size(), false);
    for (size_t i = 0; i < calls.size(); ++i) {
      calls_of[static_cast<size_t>(calls[i].machine)].push_back(i);
      productive.push_back(calls[i].min == 0);
    }
    bool changed = true;
    while (changed) {
      changed = false;
      for (size_t i = machines_.size(); i-- > 0;) {
        if (has_sentence[i]) continue;
        grammar_.budget.work -= static_cast<int64_t>(machines_[i].states.size()) + 1;
        if (grammar_.budget.exhausted()) return too_complex();
        if (trim(machines_[i], productive).empty()) continue;
        has_sentence[i] = changed = true;
        for (const size_t call : calls_of[i]) productive[call] = true;
      }
    }
    for (Dfa& machine : machines_) machine = trim(machine, productive);
    if (machines_[0].empty())
      return fail(ErrorCode::kInvalid,
                  "The grammar allows no output at all: its requirements contradict one another or "
                  "never end.");
    return {};
  }

  // A machine that calls itself before it has read a byte would do so for ever.
  Result<void> check_progress() {
    std::vector<bool> nullable(machines_.size(), false);
    std::vector<std::vector<int32_t>> first_calls(machines_.size());
    bool changed = true;
    while (changed) {
      changed = false;
      for (size_t i = 0; i < machines_.size(); ++i) {
        grammar_.budget.work -= 1;
        if (nullable[i] || machines_[i].empty()) continue;
        first_calls[i].clear();
        if (!walk_empty(machines_[i], nullable, first_calls[i])) continue;
        nullable[i] = changed = true;
      }
      if (grammar_.budget.exhausted()) return too_complex();
    }
    for (size_t i = 0; i < machines_.size(); ++i) {
      first_calls[i].clear();
      if (!machines_[i].empty()) walk_empty(machines_[i], nullable, first_calls[i]);
    }
    return find_cycle(first_calls);
  }

  // Follows edges that read nothing; true if a final state is among those reached. Collects the
  // machines called on the way.
  bool walk_empty(const Dfa& dfa, const std::vector<bool>& nullable, std::vector<int32_t>& called) {
    std::vector<int32_t> queue{0};
    bool final = false;
    for (size_t i = 0; i < queue.size(); ++i) {
      --grammar_.budget.work;
      final = final || dfa.states[static_cast<size_t>(queue[i])].final;
      for (const Dfa::Call& call : dfa.calls_of(queue[i])) {
        called.push_back(static_cast<int32_t>(callee(call)));
        if ((may_skip(call) || nullable[callee(call)]) &&
            std::ranges::find(queue, call.to) == queue.end())
          queue.push_back(call.to);
      }
    }
    return final;
  }

  Result<void> find_cycle(const std::vector<std::vector<int32_t>>& edges) {
    enum class Mark : uint8_t { kNew, kOpen, kDone };
    std::vector<Mark> marks(edges.size(), Mark::kNew);
    std::vector<std::pair<size_t, size_t>> path;
    for (size_t root = 0; root < edges.size(); ++root) {
      if (marks[root] == Mark::kNew) path.emplace_back(root, 0);
      while (!path.empty()) {
        auto& [at, next] = path.back();
        marks[at] = Mark::kOpen;
        if (next == edges[at].size()) {
          marks[at] = Mark::kDone;
          path.pop_back();
          continue;
        }
        const auto to = static_cast<size_t>(edges[at][next++]);
        if (marks[to] == Mark::kOpen)
          return fail(ErrorCode::kInvalid,
                      "The grammar's rule '" +
                          std::string(lowering_.machine_name(static_cast<int32_t>(to))) +
                          "' refers to itself before it has read anything (left recursion).");
        if (marks[to] == Mark::kNew) path.emplace_back(to, 0);
      }
    }
    return {};
  }

  std::unique_ptr<Automaton> lay_out() {
    auto result = std::make_unique<Automaton>();
    const std::vector<CharRuns> called = runs_of_calls();
    std::vector<uint32_t> bases;
    for (const Dfa& machine : machines_) {
      bases.push_back(machine.empty() ? Automaton::kNowhere
                                      : static_cast<uint32_t>(result->states_.size()));
      lay_out(machine, called, *result);
    }
    for (const CallTarget& call : lowering_.calls())
      result->calls_.push_back({.start = bases[static_cast<size_t>(call.machine)],
                                .min = call.min,
                                .max = call.max,
                                .counted = call.counted()});
    result->start_ = 0;
    fill_rows(*result);
    result->shrink();
    return result;
  }

  // Of what is called, at its beginning. Two rounds: calls within calls are seen one level deep.
  std::vector<CharRuns> runs_of_calls() const {
    std::vector<CharRuns> called;
    for (int round = 0; round < 2; ++round) {
      std::vector<CharRuns> first;  // By machine.
      for (const Dfa& machine : machines_)
        first.push_back(machine.empty() ? CharRuns{} : char_runs(machine, called).front());
      called.assign(lowering_.calls().size(), CharRuns{});
      for (size_t i = 0; i < called.size(); ++i) {
        const CallTarget& call = lowering_.calls()[i];
        called[i] = first[static_cast<size_t>(call.machine)];
        for (CharRun& run : called[i]) {
          const int64_t all = int64_t{run.length} * (run.to_end ? call.max : 1);
          if (run.length != kEndlessRun)
            run.length = static_cast<uint8_t>(std::min<int64_t>(all, kEndlessRun - 1));
        }
      }
    }
    return called;
  }

  void lay_out(const Dfa& machine, const std::vector<CharRuns>& called, Automaton& out) {
    const auto base = static_cast<uint32_t>(out.states_.size());
    const std::vector<CharRuns> runs = char_runs(machine, called);
    const std::vector<CharLoops> loops = char_loops(machine);
    for (size_t i = 0; i < machine.states.size(); ++i) {
      const auto ranges = machine.ranges_of(static_cast<int32_t>(i));
      const auto calls = machine.calls_of(static_cast<int32_t>(i));
      out.states_.push_back({.ranges = static_cast<uint32_t>(out.ranges_.size()),
                             .calls = static_cast<uint32_t>(out.call_edges_.size()),
                             .call_count = static_cast<uint32_t>(calls.size()),
                             .range_count = static_cast<uint16_t>(ranges.size()),
                             .final = machine.states[i].final,
                             .loops = number_of(loops[i], out),
                             .runs = runs[i]});
      for (const Dfa::Range& range : ranges)
        out.ranges_.push_back({.first = static_cast<uint8_t>(range.first),
                               .last = static_cast<uint8_t>(range.last),
                               .to = base + static_cast<uint32_t>(range.to)});
      for (const Dfa::Call& call : calls)
        out.call_edges_.push_back({.call = static_cast<uint32_t>(call.call),
                                   .to = base + static_cast<uint32_t>(call.to)});
    }
  }

  uint32_t number_of(const CharLoops& loops, Automaton& out) {
    if (loops.none()) return Automaton::kNoLoops;
    const auto [found, fresh] =
        loop_numbers_.try_emplace(loops, static_cast<uint32_t>(out.loops_.size()));
    if (fresh) out.loops_.push_back(loops);
    return found->second;
  }

  static void fill_rows(Automaton& out) {
    size_t rows = 0;
    for (Automaton::State& state : out.states_) {
      if (state.range_count <= kScannedRangesMax || rows == kRowsMax) continue;
      state.row = static_cast<uint32_t>(rows++);
      out.rows_.resize(rows * 256, Automaton::kNowhere);
      for (const Automaton::Range& range : out.ranges(state))
        for (uint32_t byte = range.first; byte <= range.last; ++byte)
          out.rows_[state.row * 256u + byte] = range.to;
    }
  }

  Grammar grammar_;
  Lowering lowering_;
  std::vector<Dfa> machines_;  // By number.
  std::map<CharLoops, uint32_t> loop_numbers_;
};

void Automaton::shrink() {
  states_.shrink_to_fit();
  ranges_.shrink_to_fit();
  call_edges_.shrink_to_fit();
  calls_.shrink_to_fit();
  loops_.shrink_to_fit();
  rows_.shrink_to_fit();
}

size_t Automaton::memory_bytes() const {
  size_t texts = 0;
  for (const std::string& name : left_out_) texts += name.capacity() + sizeof name;
  return texts + states_.size() * sizeof(State) + ranges_.size() * sizeof(Range) +
         call_edges_.size() * sizeof(CallEdge) + calls_.size() * sizeof(Call) +
         loops_.size() * sizeof(CharLoops) +
         (rows_.size() + forced_begins_.size() + forced_.size()) * sizeof(uint32_t);
}

Result<std::unique_ptr<Automaton>> compile(Grammar grammar, Budget* left) {
  Compiler compiler(std::move(grammar));
  auto automaton = compiler.run();
  if (left) *left = compiler.budget();
  return automaton;
}

}  // namespace weir::grammar
