// The part of Matcher that makes masks.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "grammar/matcher.h"

namespace weir::grammar {

namespace {

// Where nothing has been allowed by then: for each configuration alone, and for all of them.
constexpr int64_t kReserveWorkEach = 8192;
constexpr int64_t kReserveWork = 65'536;
// A node that is passed or a bush that is judged, for each configuration: mostly somewhere else in
// memory than the last one.
constexpr int64_t kNodeWork = 2;
// So many of a bush's tokens are allowed at the price of one unit.
constexpr uint32_t kTokensPerWork = 4;
// Up to so many configurations are moved on without ado.
constexpr uint32_t kFewConfigurations = 4;

// -1: no token. Without a branch, which no processor could predict.
void allow(int32_t token, std::span<uint64_t> mask) {
  const auto place = static_cast<uint32_t>(std::max(token, 0));
  mask[place / 64] |= static_cast<uint64_t>(token >= 0) << (place % 64);
}

}  // namespace

bool Matcher::step_plainly(const MatchScratch::Level& above, uint8_t byte,
                           MatchScratch::Level& level, MatchScratch& s) const {
  if (above.end - above.begin > kFewConfigurations) return false;
  constexpr uint32_t kMost = kFewConfigurations * MatchScratch::kReturnedMax;
  if (s.configurations_.size() < above.end + kMost)
    s.configurations_.resize(2 * (above.end + kMost));
  Configuration* const out = s.configurations_.data() + above.end;
  uint32_t count = 0;
  const auto add = [&](Configuration to) {
    for (uint32_t k = 0; k < count; ++k)
      if (out[k].state == to.state && out[k].stack == to.stack) return;
    out[count++] = to;
  };
  for (uint32_t i = above.begin; i < above.end; ++i) {
    const Configuration at = s.configurations_[i];
    const Configuration to{automaton_->next(at.state, byte), at.stack};
    if (to.state == Automaton::kNowhere) continue;
    const Automaton::State& state = automaton_->state(to.state);
    if (state.plain() || (state.call_count == 0 && to.stack < 0)) {
      add(to);
      continue;
    }
    const MatchScratch::Returned& known = s.returned_[to.state % MatchScratch::kReturnedSlots];
    if (known.from.state != to.state || known.from.stack != to.stack) return false;
    for (uint32_t k = 0; k < known.count; ++k) add(known.to[k]);
  }
  s.work_left_ -= kNodeWork * (above.end - above.begin);
  level = {above.end, above.end + count, above.nodes, above.edges};
  return true;
}

// Where a configuration leads without a byte, if it only returns: for step_plainly, which will meet
// it again under many paths of the trie.
void Matcher::remember_return(Configuration from, MatchScratch& s) {
  const size_t nodes = nodes_.size(), edges = edges_.size();
  const uint32_t used = s.used_;
  begin_level(s);
  enter(from.state, from.stack, s);
  close(s);
  const uint32_t count = s.used_ - used;
  if (nodes_.size() == nodes && count <= MatchScratch::kReturnedMax) {
    MatchScratch::Returned& slot = s.returned_[from.state % MatchScratch::kReturnedSlots];
    slot.from = from;
    slot.count = count;
    std::copy_n(s.configurations_.begin() + used, count, slot.to.begin());
  }
  nodes_.resize(nodes);
  edges_.resize(edges);
  s.used_ = used;
}

void Matcher::load_top(MatchScratch& s) const {
  load(s);
  s.levels_[0] = {.begin = 0,
                  .end = s.used_,
                  .nodes = static_cast<uint32_t>(nodes_.size()),
                  .edges = static_cast<uint32_t>(edges_.size())};
  for (MatchScratch::Returned& slot : s.returned_) slot.from = {};
}

// Tokens that begin with spaces which do not count, and go on.
void Matcher::walk_behind_spaces(std::span<uint64_t> mask, MatchScratch& s) {
  const TokenTrie::Forest& forest = trie_->all();
  const auto walk_part = [&](size_t i, size_t end) {
    for (uint16_t spaces = 1; spaces <= ignored_spaces_; ++spaces) {
      while (i < end && forest.nodes[i].byte != ' ') i = forest.end_of(forest.nodes[i]);
      if (i == end) return;
      end = forest.end_of(forest.nodes[i]);
      walk(forest, ++i, end, mask, s, spaces);
    }
  };
  walk_part(0, forest.others);
  walk_part(forest.others, forest.nodes.size());
}

// True if it is certain that all texts of the bush may come.
bool Matcher::takes(Configuration at, const TokenTrie::Bush& bush) const {
  const Automaton::State& state = automaton_->state(at.state);
  if (state.loops != Automaton::kNoLoops) {
    const CharLoops& loops = automaton_->loops(state);
    const uint64_t missing = (bush.ascii[0] & ~loops.ascii[0]) | (bush.ascii[1] & ~loops.ascii[1]);
    if (missing == 0 && (loops.wide || !bush.wide)) return true;
  }
  return bush.char_class != TokenTrie::Bush::kNoClass &&
         run_length(at, static_cast<CharClass>(bush.char_class)) >= bush.length_max;
}

// Allows all of a bush; returns what that costs.
int64_t Matcher::allow_all(const TokenTrie::Forest& forest, const TokenTrie::Bush& bush,
                           std::span<uint64_t> mask) {
  for (uint32_t t = bush.tokens_begin; t < bush.tokens_end; ++t) allow(forest.tokens[t], mask);
  return (bush.tokens_end - bush.tokens_begin) / kTokensPerWork;
}

// From node `i` on, whose parent has `kCount` configurations, as long as the nodes lie below that
// parent and nothing is called and nothing returns. Gives the first node that is not like that.
// Most nodes of most walks are passed here.
template <size_t kCount>
size_t Matcher::walk_plainly(const TokenTrie::Forest& forest, size_t i, size_t end,
                             std::span<uint64_t> mask, MatchScratch& s, uint16_t top) const {
  const TokenTrie::Node* const trie = forest.nodes.data();
  const size_t floor = trie[i].depth - top;
  const MatchScratch::Level parent = s.levels_[floor - 1];
  std::array<Configuration, kCount> from;
  std::copy_n(s.configurations_.begin() + parent.begin, kCount, from.begin());
  MatchScratch::States* const states = s.states_.data();
  for (size_t k = 0; k < kCount; ++k) states[floor - 1][k] = from[k].state;
  const auto taken_whole = [&](const TokenTrie::Bush& bush, const MatchScratch::States& above) {
    for (size_t k = 0; k < kCount; ++k)
      if (above[k] != Automaton::kNowhere && takes({above[k], from[k].stack}, bush)) return true;
    return false;
  };
  int64_t work = 0;
  for (; i < end && work < s.work_left_; work += kNodeWork * int64_t{kCount}) {
    const TokenTrie::Node& node = trie[i];
    const size_t depth = node.depth - top;
    if (depth < floor) break;
    if (node.is_bush) {
      const TokenTrie::Bush& bush = forest.bushes[node.end];
      work += kNodeWork * int64_t{kCount};
      if (taken_whole(bush, states[depth - 1])) {
        work += allow_all(forest, bush, mask);
        i = bush.end;
        continue;
      }
    }
    bool any = false, plain = true;
    for (size_t k = 0; k < kCount; ++k) {
      const uint32_t at = states[depth - 1][k];
      const uint32_t to =
          kCount > 1 && at == Automaton::kNowhere ? at : automaton_->next(at, node.byte);
      states[depth][k] = to;
      if (to == Automaton::kNowhere) continue;
      const Automaton::State& state = automaton_->state(to);
      any = true;
      plain = plain && state.call_count == 0 && (!state.final || from[k].stack < 0);
    }
    if (!any) {
      i = forest.end_of(node);
      continue;
    }
    if (!plain) break;
    allow(node.token, mask);
    ++i;
  }
  s.work_left_ -= work;
  // Other configurations go on: above that node there are levels for them.
  const size_t deepest = i < end ? trie[i].depth - top : floor;
  if (s.configurations_.size() < parent.end + kCount * deepest)
    s.configurations_.resize(2 * (parent.end + kCount * deepest));
  uint32_t place = parent.end;
  for (size_t d = floor; d < deepest; ++d) {
    const uint32_t begin = place;
    for (size_t k = 0; k < kCount; ++k)
      if (states[d][k] != Automaton::kNowhere)
        s.configurations_[place++] = {states[d][k], from[k].stack};
    s.levels_[d] = {begin, place, parent.nodes, parent.edges};
  }
  return i;
}

size_t Matcher::walk_plainly(const TokenTrie::Forest& forest, size_t i, size_t end,
                             std::span<uint64_t> mask, MatchScratch& s, uint16_t top) const {
  const MatchScratch::Level& parent = s.levels_[forest.nodes[i].depth - top - 1u];
  switch (parent.end - parent.begin) {
    case 1:
      return walk_plainly<1>(forest, i, end, mask, s, top);
    case 2:
      return walk_plainly<2>(forest, i, end, mask, s, top);
    case 3:
      return walk_plainly<3>(forest, i, end, mask, s, top);
    default:
      return i;
  }
}

// If the node begins a bush all of which may come after `above`, allows it and gives the node
// after it.
std::optional<size_t> Matcher::take_bush(const TokenTrie::Forest& forest,
                                         const TokenTrie::Node& node,
                                         const MatchScratch::Level& above, std::span<uint64_t> mask,
                                         MatchScratch& s) const {
  if (!node.is_bush) return std::nullopt;
  const TokenTrie::Bush& bush = forest.bushes[node.end];
  // Those in front are not among what a step drops.
  const uint32_t judged = std::min(above.end, above.begin + kFewConfigurations);
  for (uint32_t k = above.begin; k < judged; ++k) {
    s.work_left_ -= kNodeWork;
    if (!takes(s.configurations_[k], bush)) continue;
    s.work_left_ -= allow_all(forest, bush, mask);
    return bush.end;
  }
  return std::nullopt;
}

// One pass over nodes [i, end), which lie below one that is `top` bytes deep. Stacks made for one
// path are cut off before the next.
void Matcher::walk(const TokenTrie::Forest& forest, size_t i, size_t end, std::span<uint64_t> mask,
                   MatchScratch& s, uint16_t top) {
  while (i < end && s.work_left_ > 0) {
    const uint16_t floor = forest.nodes[i].depth;
    i = walk_plainly(forest, i, end, mask, s, top);
    if (i == end || forest.nodes[i].depth < floor) continue;
    const TokenTrie::Node& node = forest.nodes[i];
    const size_t depth = node.depth - top;
    const MatchScratch::Level above = s.levels_[depth - 1];
    if (const auto after = take_bush(forest, node, above, mask, s)) {
      i = *after;
      continue;
    }
    MatchScratch::Level& level = s.levels_[depth];
    if (!step_plainly(above, node.byte, level, s)) {
      nodes_.resize(above.nodes);
      edges_.resize(above.edges);
      step(above.begin, above.end, node.byte, s);
      level = {above.end, s.used_, static_cast<uint32_t>(nodes_.size()),
               static_cast<uint32_t>(edges_.size())};
      // Configurations that were entered by the byte come first, if there is one at all.
      const uint32_t count = level.end - level.begin;
      if (nodes_.size() == above.nodes && count >= 1 && count <= kFewConfigurations) {
        const Configuration first = s.configurations_[level.begin];
        if (first.stack >= 0 && first.stack < static_cast<int32_t>(s.levels_[0].nodes))
          remember_return(first, s);
      }
    }
    if (level.begin == level.end) {
      i = forest.end_of(node);
      continue;
    }
    allow(node.token, mask);
    ++i;
  }
  nodes_.resize(s.levels_[0].nodes);
  edges_.resize(s.levels_[0].edges);
}

size_t Matcher::run_length(Configuration at, CharClass char_class) const {
  const auto c = static_cast<size_t>(char_class);
  const CharRun run = automaton_->state(at.state).runs[c];
  if (run.length == kEndlessRun || !run.to_end || at.stack < 0) return run.length;
  // After the end of what was called it may run again, so many times, and then its caller goes on.
  const Node& node = nodes_[static_cast<size_t>(at.stack)];
  const CharRun again = automaton_->state(node.start).runs[c];
  size_t longest = run.length;
  for (int32_t e = node.first_edge; e >= 0; e = edges_[static_cast<size_t>(e)].next) {
    const Edge& edge = edges_[static_cast<size_t>(e)];
    const int32_t left = automaton_->call(edge.call).max - node.count - 1;
    if (left < 0) continue;
    if (left > 0 && !again.to_end) {
      longest = std::max<size_t>(longest, run.length + again.length);
      continue;
    }
    const size_t after = automaton_->state(edge.back_to).runs[c].length;
    if (after == kEndlessRun) return kEndlessRun;
    longest =
        std::max(longest, run.length + static_cast<size_t>(left) * size_t{again.length} + after);
  }
  return std::min<size_t>(longest, kEndlessRun - 1);
}

bool Matcher::takes(const TokenTrie::Slice& slice) const {
  return std::ranges::any_of(position_, [&](const Configuration& at) {
    const auto runs = [&](uint32_t state) {
      return run_length({state, at.stack}, slice.char_class) >= slice.length_max;
    };
    if (slice.space != LeadingSpace::kAlways && !runs(at.state)) return false;
    if (slice.space == LeadingSpace::kNone) return true;
    const uint32_t after = automaton_->next(at.state, ' ');
    return after != Automaton::kNowhere && runs(after);
  });
}

const Matcher::KnownMask* Matcher::known_mask() const {
  if (ignored_spaces_ > 0) return nullptr;
  for (const KnownMask& known : known_)
    if (known.count > 0 &&
        std::ranges::equal(std::span(known.position).first(known.count), position_))
      return &known;
  return nullptr;
}

void Matcher::remember_mask(std::span<const uint64_t> mask) {
  if (ignored_spaces_ > 0 || position_.size() > KnownMask::kConfigurationsMax) return;
  KnownMask& known = known_[oldest_known_];
  oldest_known_ = (oldest_known_ + 1) % kKnownMasks;
  known.count = position_.size();
  std::ranges::copy(position_, known.position.begin());
  std::ranges::copy(mask, known.mask.begin());
}

void Matcher::fill_mask(std::span<uint64_t> mask, MatchScratch& s) {
  const size_t words = trie_->mask_words();
  CHECK(mask.size() >= words && s.levels_.size() > trie_->depth_max());
  std::ranges::fill(mask.subspan(words), 0);
  if (const KnownMask* known = known_mask()) {
    std::ranges::copy(known->mask, mask.begin());
    return;
  }
  make_mask(mask.first(words), s);
  remember_mask(mask.first(words));
}

// Each configuration alone, which has few steps to take, until there is a token. One of a byte is
// found at once.
void Matcher::allow_some(std::span<uint64_t> mask, MatchScratch& s) {
  const auto none = [&] {
    return std::ranges::all_of(mask, [](uint64_t word) { return word == 0; });
  };
  if (!none()) return;
  const std::vector<Configuration> position = position_;
  int64_t reserve = kReserveWork;
  for (const Configuration& at : position) {
    s.work_left_ = std::min(reserve, kReserveWorkEach);
    const int64_t given = s.work_left_;
    position_ = {at};
    load_top(s);
    walk(trie_->all(), 0, trie_->all().nodes.size(), mask, s);
    reserve -= given - s.work_left_;
    if (reserve <= 0 || !none()) break;
  }
  position_ = position;
  s.work_left_ = 0;
}

void Matcher::make_mask(std::span<uint64_t> mask, MatchScratch& s) {
  s.work_left_ = kMaskWorkMax;
  const TokenTrie::Forest* forest = &trie_->all();
  const TokenTrie::Slice* found = nullptr;
  for (const TokenTrie::Slice& slice : trie_->slices()) {
    if (!takes(slice)) continue;
    found = &slice;
    break;
  }
  if (found) {
    std::ranges::copy(found->tokens, mask.begin());
    forest = &found->rest;
  } else {
    std::ranges::fill(mask, 0);
  }
  load_top(s);
  walk(*forest, 0, forest->nodes.size(), mask, s);
  if (ignored_spaces_ > 0) walk_behind_spaces(mask, s);
  if (s.work_left_ <= 0) allow_some(mask, s);
  for (const auto& [token, twin] : trie_->twins())
    if (mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1)
      mask[static_cast<size_t>(twin) / 64] |= uint64_t{1} << (twin % 64);
}

}  // namespace weir::grammar
