#include "grammar/char_runs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>

#include "grammar/dfa.h"

namespace weir::grammar {

namespace {

struct ByteRange {
  uint8_t first, last;
};
// Well-formed characters above ASCII, byte by byte (Unicode 15, table 3-7), but for U+2028 and
// U+2029.
struct Multibyte {
  ByteRange bytes[4];
  size_t length;
};
constexpr Multibyte kMultibyte[] = {
    {{{0xc2, 0xdf}, {0x80, 0xbf}}, 2},
    {{{0xe0, 0xe0}, {0xa0, 0xbf}, {0x80, 0xbf}}, 3},
    {{{0xe1, 0xe1}, {0x80, 0xbf}, {0x80, 0xbf}}, 3},
    {{{0xe2, 0xe2}, {0x80, 0x80}, {0x80, 0xa7}}, 3},
    {{{0xe2, 0xe2}, {0x80, 0x80}, {0xaa, 0xbf}}, 3},
    {{{0xe2, 0xe2}, {0x81, 0xbf}, {0x80, 0xbf}}, 3},
    {{{0xe3, 0xec}, {0x80, 0xbf}, {0x80, 0xbf}}, 3},
    {{{0xed, 0xed}, {0x80, 0x9f}, {0x80, 0xbf}}, 3},
    {{{0xee, 0xef}, {0x80, 0xbf}, {0x80, 0xbf}}, 3},
    {{{0xf0, 0xf0}, {0x90, 0xbf}, {0x80, 0xbf}, {0x80, 0xbf}}, 4},
    {{{0xf1, 0xf3}, {0x80, 0xbf}, {0x80, 0xbf}, {0x80, 0xbf}}, 4},
    {{{0xf4, 0xf4}, {0x80, 0x8f}, {0x80, 0xbf}, {0x80, 0xbf}}, 4},
};

// Collects the states after every byte of a range; false if some byte leads nowhere.
bool add_targets(const Dfa& dfa, int32_t state, ByteRange bytes, std::vector<int32_t>& out) {
  uint32_t next = bytes.first;
  for (const Dfa::Range& range : dfa.ranges_of(state)) {
    if (range.last < next) continue;
    if (range.first > next) return false;
    if (std::ranges::find(out, range.to) == out.end()) out.push_back(range.to);
    next = range.last + 1u;
    if (next > bytes.last) return true;
  }
  return false;
}

bool add_multibyte(const Dfa& dfa, int32_t state, std::span<const ByteRange> bytes,
                   std::vector<int32_t>& out) {
  std::vector<int32_t> after;
  if (!add_targets(dfa, state, bytes.front(), after)) return false;
  if (bytes.size() > 1)
    return std::ranges::all_of(
        after, [&](int32_t next) { return add_multibyte(dfa, next, bytes.subspan(1), out); });
  for (const int32_t next : after)
    if (std::ranges::find(out, next) == out.end()) out.push_back(next);
  return true;
}

// The ASCII characters of a class, in runs: every state of a grammar asks for them.
std::span<const ByteRange> ascii_of(CharClass which) {
  static const auto runs_of_class = [] {
    std::array<std::vector<ByteRange>, kCharClasses> runs;
    for (size_t c = 0; c < runs.size(); ++c)
      for (uint8_t ascii = 0; ascii < 0x80; ++ascii) {
        if (!in_class(static_cast<CharClass>(c), ascii)) continue;
        if (runs[c].empty() || runs[c].back().last + 1 != ascii) runs[c].push_back({ascii, ascii});
        runs[c].back().last = ascii;
      }
    return runs;
  }();
  return runs_of_class[static_cast<size_t>(which)];
}

// The states after every character of the class; false if some character leads nowhere.
bool behind_class(const Dfa& dfa, int32_t state, CharClass which, std::vector<int32_t>& out) {
  out.clear();
  for (const ByteRange run : ascii_of(which))
    if (!add_targets(dfa, state, run, out)) return false;
  if (which != CharClass::kText) return true;
  return std::ranges::all_of(kMultibyte, [&](const Multibyte& form) {
    return add_multibyte(dfa, state, std::span(form.bytes).first(form.length), out);
  });
}

// In the order of their runs: all texts end in a final state if those after each character do,
// with a run one shorter. `back` is sorted; `queue` has every state with a finite run, shorter ones
// first.
void mark_ends(const std::vector<std::pair<int32_t, int32_t>>& back,
               const std::vector<int32_t>& queue, size_t c, std::vector<CharRuns>& runs) {
  std::vector<int32_t> after(runs.size(), 0), ending(runs.size(), 0);
  for (const auto& [target, source] : back) ++after[static_cast<size_t>(source)];
  for (const int32_t state : queue) {
    CharRun& run = runs[static_cast<size_t>(state)][c];
    if (after[static_cast<size_t>(state)] > 0)
      run.to_end = ending[static_cast<size_t>(state)] == after[static_cast<size_t>(state)];
    if (!run.to_end) continue;
    auto it = std::ranges::lower_bound(back, std::pair(state, INT32_MIN));
    for (; it != back.end() && it->first == state; ++it)
      if (runs[static_cast<size_t>(it->second)][c].length == run.length + 1)
        ++ending[static_cast<size_t>(it->second)];
  }
}

// The characters by which one state leads to another.
CharLoops between(const Dfa& dfa, int32_t from, int32_t to) {
  CharLoops set;
  for (const Dfa::Range& range : dfa.ranges_of(from)) {
    if (range.to != to) continue;
    for (uint32_t c = range.first; c <= range.last && c < 0x80; ++c)
      set.ascii[c / 64] |= uint64_t{1} << (c % 64);
  }
  if (set.none()) return set;
  std::vector<int32_t> targets;
  set.wide = std::ranges::all_of(kMultibyte, [&](const Multibyte& form) {
    return add_multibyte(dfa, from, std::span(form.bytes).first(form.length), targets);
  });
  set.wide = set.wide && targets == std::vector{to};
  return set;
}

}  // namespace

bool in_class(CharClass which, uint8_t ascii) {
  switch (which) {
    case CharClass::kText:
      return ascii >= 0x20 && ascii < 0x80 && ascii != '"' && ascii != '\\';
    case CharClass::kWord:
      return (ascii >= '0' && ascii <= '9') || (ascii >= 'A' && ascii <= 'Z') ||
             (ascii >= 'a' && ascii <= 'z') || ascii == '_';
    case CharClass::kLetter:
      return (ascii >= 'A' && ascii <= 'Z') || (ascii >= 'a' && ascii <= 'z');
    case CharClass::kLower:
      return ascii >= 'a' && ascii <= 'z';
  }
  return false;
}

// A state's run is one more than the shortest among the states after the class, or what one of its
// calls takes, whichever is longer; states that lack a character have only the latter, perhaps 0.
// So shortest distances along the edges backwards: runs in ascending order settle those before
// them.
std::vector<CharRuns> char_runs(const Dfa& dfa, const std::vector<CharRuns>& called) {
  const size_t count = dfa.states.size();
  std::vector<CharRuns> runs(count, CharRuns{});
  std::vector<int32_t> targets;
  for (size_t c = 0; c < kCharClasses; ++c) {
    const auto by_call = [&](int32_t state) {
      uint8_t longest = 0;
      for (const Dfa::Call& call : dfa.calls_of(state))
        if (!called.empty())
          longest = std::max(longest, called[static_cast<size_t>(call.call)][c].length);
      return longest;
    };
    std::vector<std::pair<int32_t, int32_t>> back;  // Target, source.
    std::vector<std::vector<int32_t>> by_length(kEndlessRun);
    for (int32_t state = 0; state < static_cast<int32_t>(count); ++state) {
      CharRun& run = runs[static_cast<size_t>(state)][c];
      if (behind_class(dfa, state, static_cast<CharClass>(c), targets)) {
        run.length = kEndlessRun;
        for (const int32_t target : targets) back.emplace_back(target, state);
        continue;
      }
      run.length = by_call(state);
      run.to_end = run.length == 0 && dfa.states[static_cast<size_t>(state)].final;
      if (run.length != kEndlessRun) by_length[run.length].push_back(state);
    }
    std::ranges::sort(back);
    std::vector<int32_t> settled;
    for (size_t length = 0; length < by_length.size(); ++length) {
      for (size_t i = 0; i < by_length[length].size(); ++i) {
        const int32_t state = by_length[length][i];
        settled.push_back(state);
        auto it = std::ranges::lower_bound(back, std::pair(state, INT32_MIN));
        for (; it != back.end() && it->first == state; ++it) {
          uint8_t& known = runs[static_cast<size_t>(it->second)][c].length;
          if (known != kEndlessRun) continue;
          const auto next = static_cast<uint8_t>(std::min<size_t>(length + 1, kEndlessRun - 1));
          const uint8_t called_run = by_call(it->second);
          if (called_run == kEndlessRun) continue;
          known = std::max(next, called_run);
          by_length[known].push_back(it->second);
        }
      }
    }
    mark_ends(back, settled, c, runs);
  }
  return runs;
}

std::vector<CharLoops> char_loops(const Dfa& dfa) {
  const auto count = static_cast<int32_t>(dfa.states.size());
  std::vector<CharLoops> own;  // Those that lead back to the state itself.
  for (int32_t state = 0; state < count; ++state) own.push_back(between(dfa, state, state));
  const auto size_of = [](const CharLoops& set) {
    return std::popcount(set.ascii[0]) + std::popcount(set.ascii[1]);
  };
  std::vector<CharLoops> loops = own;
  for (int32_t state = 0; state < count; ++state) {
    CharLoops& best = loops[static_cast<size_t>(state)];
    int32_t last = state;
    for (const Dfa::Range& range : dfa.ranges_of(state)) {
      const CharLoops& there = own[static_cast<size_t>(range.to)];
      if (range.to == std::exchange(last, range.to) || size_of(there) <= size_of(best)) continue;
      CharLoops both = between(dfa, state, range.to);
      for (size_t i = 0; i < 2; ++i) both.ascii[i] &= there.ascii[i];
      both.wide = both.wide && there.wide;
      if (size_of(both) > size_of(best)) best = both;
    }
  }
  return loops;
}

}  // namespace weir::grammar
