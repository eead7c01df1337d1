#include "grammar/dfa.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace weir::grammar {

namespace {

constexpr size_t kSymbolCount = 258;  // Bytes and the two ends.

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  return hash * 0xbf58476d1ce4e5b9;
}

// Sets of NFA states, numbered in the order in which they were first seen. A table of its own, with
// open addressing: half of the time of a large grammar would go into a node for each set.
class SubsetTable {
 public:
  // REQUIRES: `set` is sorted.
  int32_t number(const std::vector<int32_t>& set) {
    uint64_t hash = set.size();
    for (const int32_t state : set) hash = mix(hash, static_cast<uint64_t>(state));
    if (2 * hashes_.size() >= slots_.size()) grow();
    size_t at = slot_of(hash);
    for (; slots_[at] != kFree; at = (at + 1) % slots_.size())
      if (hashes_[static_cast<size_t>(slots_[at])] == hash &&
          std::ranges::equal(this->set(slots_[at]), set))
        return slots_[at];
    const int32_t id = count();
    slots_[at] = id;
    hashes_.push_back(hash);
    members_.insert(members_.end(), set.begin(), set.end());
    ends_.push_back(members_.size());
    return id;
  }
  std::span<const int32_t> set(int32_t id) const {
    const size_t begin = id == 0 ? 0 : ends_[static_cast<size_t>(id) - 1];
    return std::span(members_).subspan(begin, ends_[static_cast<size_t>(id)] - begin);
  }
  int32_t count() const { return static_cast<int32_t>(ends_.size()); }

 private:
  static constexpr int32_t kFree = -1;

  // The slots are a power of two; the hash's upper half is mixed best.
  size_t slot_of(uint64_t hash) const { return static_cast<size_t>(hash >> 32) % slots_.size(); }
  void grow() {
    slots_.assign(std::max<size_t>(16, 2 * slots_.size()), kFree);
    for (size_t id = 0; id < hashes_.size(); ++id) {
      size_t at = slot_of(hashes_[id]);
      while (slots_[at] != kFree) at = (at + 1) % slots_.size();
      slots_[at] = static_cast<int32_t>(id);
    }
  }

  std::vector<int32_t> members_;
  std::vector<size_t> ends_;
  std::vector<uint64_t> hashes_;  // By number.
  std::vector<int32_t> slots_;    // Numbers; at most half of them are taken.
};

class Determiniser {
 public:
  Determiniser(const Nfa& nfa, Budget& budget)
      : nfa_(nfa), budget_(budget), marks_(nfa.first_edge.size(), 0) {}

  Result<Dfa> run() {
    target_.assign(1, nfa_.start);
    close();
    subsets_.number(target_);
    for (int32_t id = 0; id < subsets_.count(); ++id) {
      if (--budget_.states < 0 || budget_.exhausted()) return too_complex();
      expand(id);
    }
    if (budget_.interrupted()) return too_complex();
    return std::move(dfa_);
  }

 private:
  // Completes target_ by empty edges, sorts it.
  void close() {
    ++mark_;
    for (const int32_t state : target_) marks_[static_cast<size_t>(state)] = mark_;
    for (size_t i = 0; i < target_.size(); ++i) {
      --budget_.work;
      for_edges(target_[i], [&](const Nfa::Edge& edge) {
        if (edge.call != Nfa::kEmpty || marks_[static_cast<size_t>(edge.to)] == mark_) return;
        marks_[static_cast<size_t>(edge.to)] = mark_;
        target_.push_back(edge.to);
      });
    }
    std::ranges::sort(target_);
  }

  template <class F>
  void for_edges(int32_t state, F visit) {
    for (int32_t e = nfa_.first_edge[static_cast<size_t>(state)]; e >= 0;
         e = nfa_.edges[static_cast<size_t>(e)].next)
      visit(nfa_.edges[static_cast<size_t>(e)]);
  }

  int32_t number_of_target() {
    close();
    return subsets_.number(target_);
  }

  // The edges of one state of the result.
  void expand(int32_t id) {
    symbol_edges_.clear();
    call_edges_.clear();
    Dfa::State state;
    for (const int32_t member : subsets_.set(id)) {
      state.final = state.final || member == nfa_.final;
      for_edges(member, [&](const Nfa::Edge& edge) {
        --budget_.work;
        if (edge.call == Nfa::kSymbols) symbol_edges_.push_back(edge);
        if (edge.call >= 0) call_edges_.push_back(edge);
      });
    }
    state.ranges_begin = static_cast<int32_t>(dfa_.ranges.size());
    add_ranges(static_cast<size_t>(state.ranges_begin));
    state.ranges_end = static_cast<int32_t>(dfa_.ranges.size());
    state.calls_begin = static_cast<int32_t>(dfa_.calls.size());
    add_calls();
    state.calls_end = static_cast<int32_t>(dfa_.calls.size());
    dfa_.states.push_back(state);
  }

  // Between two borders the same edges apply.
  void add_ranges(size_t begin) {
    std::array<bool, kSymbolCount + 1> border{};
    std::ranges::sort(symbol_edges_, {}, &Nfa::Edge::first);
    for (const Nfa::Edge& edge : symbol_edges_) border[edge.first] = border[edge.last + 1u] = true;
    size_t next = 0;
    active_.clear();
    for (size_t symbol = 0; symbol < kSymbolCount; ++symbol) {
      if (!border[symbol] && symbol != 0) continue;
      for (; next < symbol_edges_.size() && symbol_edges_[next].first <= symbol; ++next)
        active_.push_back(symbol_edges_[next]);
      std::erase_if(active_, [&](const Nfa::Edge& edge) { return edge.last < symbol; });
      if (active_.empty()) continue;
      if (budget_.interrupted()) return;  // One state may have a large part of all edges.
      size_t last = symbol;
      while (!border[last + 1]) ++last;
      target_.clear();
      for (const Nfa::Edge& edge : active_) target_.push_back(edge.to);
      budget_.work -= static_cast<int64_t>(target_.size());
      std::ranges::sort(target_);
      target_.erase(std::unique(target_.begin(), target_.end()), target_.end());
      const int32_t to = number_of_target();
      if (dfa_.ranges.size() > begin && dfa_.ranges.back().to == to &&
          dfa_.ranges.back().last + 1u == symbol)
        dfa_.ranges.back().last = static_cast<uint16_t>(last);
      else
        dfa_.ranges.push_back({static_cast<uint16_t>(symbol), static_cast<uint16_t>(last), to});
    }
  }

  void add_calls() {
    std::ranges::sort(call_edges_, {}, &Nfa::Edge::call);
    for (size_t i = 0; i < call_edges_.size();) {
      const int32_t call = call_edges_[i].call;
      target_.clear();
      for (; i < call_edges_.size() && call_edges_[i].call == call; ++i)
        target_.push_back(call_edges_[i].to);
      std::ranges::sort(target_);
      target_.erase(std::unique(target_.begin(), target_.end()), target_.end());
      dfa_.calls.push_back({call, number_of_target()});
    }
  }

  const Nfa& nfa_;
  Budget& budget_;
  Dfa dfa_;
  SubsetTable subsets_;
  std::vector<uint32_t> marks_;  // By NFA state: the last closure that it was in.
  uint32_t mark_ = 0;
  std::vector<int32_t> target_;
  std::vector<Nfa::Edge> symbol_edges_, call_edges_, active_;
};

// Copies the states with `keep`, renumbered in order; edges to others are dropped.
Dfa keep_states(const Dfa& dfa, const std::vector<bool>& keep,
                const std::vector<bool>& productive) {
  std::vector<int32_t> number(dfa.states.size(), -1);
  int32_t count = 0;
  for (size_t i = 0; i < dfa.states.size(); ++i)
    if (keep[i]) number[i] = count++;
  Dfa result;
  for (size_t i = 0; i < dfa.states.size(); ++i) {
    if (!keep[i]) continue;
    Dfa::State state{.final = dfa.states[i].final};
    state.ranges_begin = static_cast<int32_t>(result.ranges.size());
    for (const Dfa::Range& range : dfa.ranges_of(static_cast<int32_t>(i)))
      if (const int32_t to = number[static_cast<size_t>(range.to)]; to >= 0)
        result.ranges.push_back({range.first, range.last, to});
    state.ranges_end = static_cast<int32_t>(result.ranges.size());
    state.calls_begin = static_cast<int32_t>(result.calls.size());
    for (const Dfa::Call& call : dfa.calls_of(static_cast<int32_t>(i)))
      if (const int32_t to = number[static_cast<size_t>(call.to)];
          to >= 0 && (productive.empty() || productive[static_cast<size_t>(call.call)]))
        result.calls.push_back({call.call, to});
    state.calls_end = static_cast<int32_t>(result.calls.size());
    result.states.push_back(state);
  }
  return result;
}

template <class F>
void for_targets(const Dfa& dfa, int32_t state, const std::vector<bool>& productive, F visit) {
  for (const Dfa::Range& range : dfa.ranges_of(state)) visit(range.to);
  for (const Dfa::Call& call : dfa.calls_of(state))
    if (productive.empty() || productive[static_cast<size_t>(call.call)]) visit(call.to);
}

// A pair of states of two automata that run side by side; b == -1: the second one has failed.
struct Pair {
  int32_t a = 0, b = 0;
};

// The product of two automata: what `a` accepts and, as `want_b` says, `b` does or does not.
Result<Dfa> product(const Dfa& a, const Dfa& b, bool want_b, Budget& budget) {
  if (a.empty()) return Dfa{};
  if (b.empty()) return want_b ? Dfa{} : trim(a);
  std::vector<Pair> pairs{{0, 0}};
  std::unordered_map<uint64_t, int32_t> numbers{{0, 0}};
  Dfa result;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Pair pair = pairs[i];
    if (--budget.states < 0 || budget.exhausted()) return too_complex();
    const bool b_final = pair.b >= 0 && b.states[static_cast<size_t>(pair.b)].final;
    Dfa::State state{.final = a.states[static_cast<size_t>(pair.a)].final && b_final == want_b};
    state.ranges_begin = static_cast<int32_t>(result.ranges.size());
    const auto add = [&](uint16_t first, uint16_t last, Pair to) {
      --budget.work;
      const uint64_t key = static_cast<uint64_t>(to.a) << 32 | static_cast<uint32_t>(to.b);
      const auto [found, fresh] = numbers.try_emplace(key, static_cast<int32_t>(pairs.size()));
      if (fresh) pairs.push_back(to);
      result.ranges.push_back({first, last, found->second});
    };
    const std::span<const Dfa::Range> none;
    const std::span<const Dfa::Range> b_ranges = pair.b >= 0 ? b.ranges_of(pair.b) : none;
    for (const Dfa::Range& ra : a.ranges_of(pair.a)) {
      uint32_t next = ra.first;  // The first symbol of `ra` not yet dealt with.
      for (const Dfa::Range& rb : b_ranges) {
        if (rb.last < next || rb.first > ra.last) continue;
        if (rb.first > next && !want_b)
          add(static_cast<uint16_t>(next), static_cast<uint16_t>(rb.first - 1), {ra.to, -1});
        const uint32_t first = std::max<uint32_t>(next, rb.first);
        const uint32_t last = std::min(ra.last, rb.last);
        add(static_cast<uint16_t>(first), static_cast<uint16_t>(last), {ra.to, rb.to});
        next = last + 1;
      }
      if (next <= ra.last && !want_b) add(static_cast<uint16_t>(next), ra.last, {ra.to, -1});
    }
    state.ranges_end = static_cast<int32_t>(result.ranges.size());
    result.states.push_back(state);
  }
  return trim(result);
}

}  // namespace

tl::unexpected<Error> too_complex() {
  return fail(ErrorCode::kInvalid,
              "The grammar is too complex: compiling it needs more states or work than this server "
              "allows; expected fewer or shorter repetitions, alternatives or patterns.");
}

int32_t Dfa::next(int32_t state, uint16_t symbol) const {
  for (const Range& range : ranges_of(state))
    if (symbol >= range.first && symbol <= range.last) return range.to;
  return -1;
}

bool Dfa::accepts(std::string_view text) const {
  if (states.empty()) return false;
  int32_t state = 0;
  for (const char c : text)
    if ((state = next(state, static_cast<uint8_t>(c))) < 0) return false;
  return states[static_cast<size_t>(state)].final;
}

Result<Dfa> determinise(const Nfa& nfa, Budget& budget) { return Determiniser(nfa, budget).run(); }

Dfa trim(const Dfa& dfa, const std::vector<bool>& productive) {
  const size_t count = dfa.states.size();
  if (count == 0) return {};
  // Reached from the start, and the edges backwards.
  std::vector<bool> reached(count, false);
  std::vector<int32_t> queue{0};
  reached[0] = true;
  std::vector<std::pair<int32_t, int32_t>> back;  // Target, source.
  for (size_t i = 0; i < queue.size(); ++i)
    for_targets(dfa, queue[i], productive, [&](int32_t to) {
      back.emplace_back(to, queue[i]);
      if (!reached[static_cast<size_t>(to)]) queue.push_back(to);
      reached[static_cast<size_t>(to)] = true;
    });
  std::ranges::sort(back);
  std::vector<bool> live(count, false);
  std::vector<int32_t> live_queue;
  for (const int32_t state : queue)
    if (dfa.states[static_cast<size_t>(state)].final) {
      live[static_cast<size_t>(state)] = true;
      live_queue.push_back(state);
    }
  for (size_t i = 0; i < live_queue.size(); ++i) {
    const auto begin = std::ranges::lower_bound(back, std::pair(live_queue[i], INT32_MIN));
    for (auto it = begin; it != back.end() && it->first == live_queue[i]; ++it) {
      if (live[static_cast<size_t>(it->second)]) continue;
      live[static_cast<size_t>(it->second)] = true;
      live_queue.push_back(it->second);
    }
  }
  if (!live[0]) return {};
  return keep_states(dfa, live, productive);
}

Result<Dfa> intersect(const Dfa& a, const Dfa& b, Budget& budget) {
  return product(a, b, true, budget);
}

Result<Dfa> subtract(const Dfa& a, const Dfa& b, Budget& budget) {
  return product(a, b, false, budget);
}

}  // namespace weir::grammar
