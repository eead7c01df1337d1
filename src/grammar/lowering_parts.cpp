// The parts of Lowering that make more than one edge of an expression: characters, repetitions,
// lists, automata, calls.
#include <algorithm>

#include "base/check.h"
#include "grammar/lowering.h"
#include "grammar/utf8_edges.h"

namespace weir::grammar {

namespace {

// Rules copied into rules copied into ...; bounds the recursion of lower().
constexpr int32_t kCopyDepthMax = 24;
// A repetition up to this size (in NFA states) is written out.
constexpr int64_t kWrittenOutMax = 2048;
// Longer ones of small things are counted in blocks of this size, so that the counter moves once a
// block (some 30 characters of a string) and the rest runs as a plain automaton.
constexpr int64_t kBlockSize = 1024;
constexpr int64_t kBlockCopiesMin = 8;

}  // namespace

void Lowering::lower_characters(const CharSet& set, int32_t from, int32_t to) {
  Utf8Edges(nfa_, to).add(set, from);
}

void Lowering::lower_repeat(const Grammar::Expr& expr, int32_t from, int32_t to) {
  if (style_ == Style::kWrittenOut) {
    lower_copies(expr.a, expr.min, expr.max, from, to);
    return;
  }
  const int64_t once = size(expr.a);
  const int64_t copies = expr.max == kUnbounded ? expr.min : expr.max;
  if (once * copies <= kWrittenOutMax)
    lower_copies(expr.a, expr.min, expr.max, from, to);
  else
    lower_many(expr.a, expr.min, expr.max, from, to);
}

// Written out: copies one after the other, and ways out between those that may be missing.
void Lowering::lower_copies(ExprId id, int32_t min, int32_t max, int32_t from, int32_t to) {
  int32_t at = from;
  for (int32_t i = 0; i < min && !grammar_.budget.exhausted(); ++i) {
    const int32_t next = nfa_.add_state();
    lower(id, at, next);
    at = next;
  }
  if (max == kUnbounded) {
    const int32_t loop = nfa_.add_state(), end = nfa_.add_state();
    nfa_.add_empty(at, loop);
    lower(id, loop, end);
    nfa_.add_empty(end, loop);
    nfa_.add_empty(loop, to);
    return;
  }
  for (int32_t i = min; i < max && !grammar_.budget.exhausted(); ++i) {
    nfa_.add_empty(at, to);
    const int32_t next = nfa_.add_state();
    lower(id, at, next);
    at = next;
  }
  nfa_.add_empty(at, to);
}

// Counted by calls. x{m,n} of something small is, with blocks b = x{B}: first b{m/B} x{m%B}, then
// of the n-m = c*B + d left either b{0,c-1} x{0,B-1} or b{c} x{0,d}. Only blocks are called: a
// called x{0,d} could end, and return, after every character.
void Lowering::lower_many(ExprId id, int32_t min, int32_t max, int32_t from, int32_t to) {
  const int64_t block_copies = kBlockSize / std::max<int64_t>(1, size(id));
  const auto call_repeat = [&](ExprId body, int32_t least, int32_t most, int32_t a, int32_t b) {
    if (most == 0)
      nfa_.add_empty(a, b);
    else
      add_call({.machine = machine_of(body, -1), .min = least, .max = most}, a, b);
  };
  const int32_t middle = nfa_.add_state();
  if (block_copies < kBlockCopiesMin) {
    call_repeat(id, min, min, from, middle);
    if (max == kUnbounded)
      lower_copies(id, 0, kUnbounded, middle, to);
    else
      call_repeat(id, 0, max - min, middle, to);
    return;
  }
  const auto copies = static_cast<int32_t>(block_copies);
  const ExprId block = block_of(id, copies);
  const int32_t counted = nfa_.add_state();
  call_repeat(block, min / copies, min / copies, from, counted);
  lower_copies(id, min % copies, min % copies, counted, middle);
  if (max == kUnbounded) {
    lower_copies(id, 0, kUnbounded, middle, to);
    return;
  }
  const int32_t blocks = (max - min) / copies, rest = (max - min) % copies;
  if (blocks > 0) {
    const int32_t some = nfa_.add_state(), all = nfa_.add_state();
    call_repeat(block, 0, blocks - 1, middle, some);
    lower_copies(id, 0, copies - 1, some, to);
    call_repeat(block, blocks, blocks, middle, all);
    lower_copies(id, 0, rest, all, to);
  } else {
    lower_copies(id, 0, rest, middle, to);
  }
}

ExprId Lowering::block_of(ExprId id, int32_t copies) {
  const auto [found, fresh] = blocks_.try_emplace(id, kNoExpr);
  if (fresh) {
    found->second = grammar_.repeat(id, copies, copies);
    expr_size_.resize(grammar_.expr_count(), -1);
  }
  return found->second;
}

// before[i]: no item yet, and item i is the next that may come; after[i]: likewise after some
// item. An item is lowered once, whichever of the two leads to it.
void Lowering::lower_list(const List& list, int32_t from, int32_t to) {
  if (list.min > 0 || list.max != kUnbounded) {
    lower_counted_list(list, from, to);
    return;
  }
  int32_t before = from, after = -1;
  for (const ListItem& item : list.items) {
    const int32_t begin = nfa_.add_state(), end = nfa_.add_state();
    lower(item.expr, begin, end);
    if (before >= 0) nfa_.add_empty(before, begin);
    if (after >= 0) {
      lower(list.separator, after, begin);
      if (!item.required) nfa_.add_empty(after, end);
    }
    if (item.required) before = -1;
    after = end;
  }
  if (list.rest != kNoExpr) {
    const int32_t begin = nfa_.add_state(), end = nfa_.add_state();
    lower(list.rest, begin, end);
    if (before >= 0) nfa_.add_empty(before, begin);
    if (after >= 0) lower(list.separator, after, begin);
    lower(list.separator, end, begin);
    nfa_.add_empty(end, to);
  }
  if (before >= 0 && !list.not_empty) nfa_.add_empty(before, to);
  if (after >= 0) nfa_.add_empty(after, to);
}

// The same with a state for each number of items so far. after[n]: n items are there.
void Lowering::lower_counted_list(const List& list, int32_t from, int32_t to) {
  const auto items = static_cast<int32_t>(list.items.size());
  const int32_t most = std::min(list.max, items);
  std::vector<int32_t> after(static_cast<size_t>(most) + 1, -1);
  after[0] = from;
  for (const ListItem& item : list.items) {
    std::vector<int32_t> next(after.size(), -1);
    for (size_t n = 0; n < after.size(); ++n) {
      if (after[n] < 0) continue;
      if (n + 1 < after.size()) {
        const int32_t begin = n == 0 ? after[0] : nfa_.add_state();
        if (n > 0) lower(list.separator, after[n], begin);
        if (next[n + 1] < 0) next[n + 1] = nfa_.add_state();
        lower(item.expr, begin, next[n + 1]);
      }
      if (item.required) continue;
      if (next[n] < 0) next[n] = nfa_.add_state();
      nfa_.add_empty(after[n], next[n]);
    }
    after = std::move(next);
    if (grammar_.budget.exhausted()) return;
  }
  for (size_t n = 0; n < after.size(); ++n) {
    if (after[n] < 0) continue;
    const auto count = static_cast<int32_t>(n);
    if (count >= list.min && (count > 0 || !list.not_empty)) nfa_.add_empty(after[n], to);
    if (list.rest == kNoExpr || list.max == count || count + 1 < list.min) continue;
    // One more, then pairs of a separator and one more.
    const int32_t more = list.max == kUnbounded ? kUnbounded : list.max - count - 1;
    const ExprId next = grammar_.concat({list.separator, list.rest});
    const ExprId tail =
        grammar_.concat({n == 0 ? list.rest : next, grammar_.repeat(next, 0, more)});
    expr_size_.resize(grammar_.expr_count(), -1);
    lower(tail, after[n], to);
  }
}

void Lowering::lower_machine(const Dfa& dfa, int32_t from, int32_t to) {
  const auto base = static_cast<int32_t>(nfa_.first_edge.size());
  const auto count = static_cast<int32_t>(dfa.states.size());
  for (int32_t i = 0; i < count; ++i) nfa_.add_state();
  grammar_.budget.work -= count + static_cast<int64_t>(dfa.ranges.size());
  nfa_.add_empty(from, base);
  for (int32_t i = 0; i < count; ++i) {
    for (const Dfa::Range& range : dfa.ranges_of(i))
      nfa_.add_symbols(base + i, base + range.to, range.first, range.last);
    if (dfa.states[static_cast<size_t>(i)].final) nfa_.add_empty(base + i, to);
  }
}

void Lowering::lower_rule(RuleId rule, int32_t from, int32_t to) {
  const ExprId body = grammar_.rules()[static_cast<size_t>(rule)].body;
  const bool copied = style_ == Style::kWrittenOut || copied_[static_cast<size_t>(rule)];
  if (copied && (copy_depth_ < kCopyDepthMax || style_ == Style::kWrittenOut)) {
    ++copy_depth_;
    lower(body, from, to);
    --copy_depth_;
  } else {
    add_call({.machine = machine_of(body, rule)}, from, to);
  }
}

void Lowering::add_call(CallTarget target, int32_t from, int32_t to) {
  const auto [found, fresh] = call_numbers_.try_emplace({target.machine, target.min, target.max},
                                                        static_cast<int32_t>(calls_.size()));
  if (fresh) calls_.push_back(target);
  nfa_.add_call(from, to, found->second);
}

int32_t Lowering::machine_of(ExprId body, RuleId rule) {
  const auto [found, fresh] =
      machine_numbers_.try_emplace({body, rule}, static_cast<int32_t>(machines_.size()));
  if (fresh) machines_.push_back({body, rule});
  return found->second;
}

}  // namespace weir::grammar
