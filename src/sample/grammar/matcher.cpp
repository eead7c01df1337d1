#include "sample/grammar/matcher.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace weir::sample::grammar {

namespace {

// Configurations of one position. JSON schemas have one or two, a choice among many shapes of
// object as many as there are shapes.
constexpr uint32_t kConfigurationsMax = 1024;
// Open calls, live or not, before the stack is compacted; and most of all.
constexpr size_t kCompactionSlack = 1024;
constexpr size_t kNodesMax = 1 << 20;
// What one mask may cost, in steps of about 5 ns: below 5 ms. Tokens that are not reached are not
// allowed. A walk of a whole vocabulary of 150,000 tokens takes 330,000 steps.
constexpr int64_t kMaskWorkMax = 500'000;
constexpr int64_t kClosureWork = 16;
// Up to so many configurations are moved on without ado.
constexpr uint32_t kFewConfigurations = 4;

// -1: no token.
void allow(int32_t token, std::span<uint64_t> mask) {
  if (token >= 0) mask[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
}

}  // namespace

Matcher::Matcher(std::shared_ptr<const Automaton> automaton, std::shared_ptr<const TokenTrie> trie)
    : automaton_(std::move(automaton)), trie_(std::move(trie)) {
  MatchScratch s(0);
  begin_level(s);
  enter(automaton_->start(), -1, s);
  close(s);
  keep(0, s.used_, s);
}

void Matcher::begin_level(MatchScratch& s) const {
  s.first_new_ = s.used_;
  s.old_nodes_ = static_cast<int32_t>(nodes_.size());
  s.opened_.clear();
}

void Matcher::enter(uint32_t state, int32_t stack, MatchScratch& s) const {
  const uint32_t count = s.used_ - s.first_new_;
  s.work_left_ -= 4 + count / 4;
  for (uint32_t i = s.first_new_; i < s.used_; ++i)
    if (s.configurations_[i].state == state && s.configurations_[i].stack == stack) return;
  if (count == kConfigurationsMax) return;
  if (s.used_ == s.configurations_.size()) s.configurations_.resize(2 * s.used_);
  s.configurations_[s.used_++] = {state, stack};
}

// Calls and returns until only bytes lead on.
void Matcher::close(MatchScratch& s) {
  for (uint32_t i = s.first_new_; i < s.used_; ++i) {
    const Configuration at = s.configurations_[i];
    const Automaton::State& state = automaton_->state(at.state);
    if (state.plain()) continue;
    if (state.final && at.stack >= 0) go_back(at.stack, s);
    for (const Automaton::CallEdge& edge : automaton_->calls(state)) call(edge, at.stack, s);
  }
}

void Matcher::call(const Automaton::CallEdge& edge, int32_t stack, MatchScratch& s) {
  const Automaton::Call& target = automaton_->call(edge.call);
  s.work_left_ -= kClosureWork;
  if (target.counted && target.min == 0) enter(edge.to, stack, s);
  if (target.start == Automaton::kNowhere) return;
  if (!target.counted && automaton_->state(edge.to).only_final()) {
    enter(target.start, stack, s);
    return;
  }
  const Edge back{.call = edge.call, .back_to = edge.to, .stack = stack};
  for (MatchScratch::Opened& opened : s.opened_) {
    if (opened.start != target.start || opened.count != 0) continue;
    add_edge(opened.node, back);
    if (opened.returned) enter(edge.to, stack, s);
    return;
  }
  if (nodes_.size() >= kNodesMax) return;
  const auto node = static_cast<int32_t>(nodes_.size());
  nodes_.push_back({.start = target.start});
  add_edge(node, back);
  s.opened_.push_back({.start = target.start, .node = node});
  enter(target.start, node, s);
}

void Matcher::add_edge(int32_t node, Edge edge) {
  int32_t& first = nodes_[static_cast<size_t>(node)].first_edge;
  for (int32_t e = first; e >= 0; e = edges_[static_cast<size_t>(e)].next) {
    const Edge& known = edges_[static_cast<size_t>(e)];
    if (known.call == edge.call && known.back_to == edge.back_to && known.stack == edge.stack)
      return;
  }
  edge.next = first;
  first = static_cast<int32_t>(edges_.size());
  edges_.push_back(edge);
}

// What `node` called has come to its end: back to those callers for whom it has run often enough,
// and once more for those who may want it.
void Matcher::go_back(int32_t node, MatchScratch& s) {
  const Node at = nodes_[static_cast<size_t>(node)];
  s.work_left_ -= kClosureWork;
  // What has read nothing may do so again and again.
  const bool idle = node >= s.old_nodes_;
  if (idle)
    for (MatchScratch::Opened& opened : s.opened_)
      if (opened.node == node) opened.returned = true;
  const int32_t count = at.count + 1;
  bool again = false;
  for (int32_t e = at.first_edge; e >= 0; e = edges_[static_cast<size_t>(e)].next) {
    const Edge& edge = edges_[static_cast<size_t>(e)];
    const Automaton::Call& target = automaton_->call(edge.call);
    if (idle || (count >= target.min && count <= target.max)) enter(edge.back_to, edge.stack, s);
    again = again || count < target.max;
  }
  if (idle || !again || nodes_.size() >= kNodesMax) return;
  for (const MatchScratch::Opened& opened : s.opened_)
    if (opened.start == at.start && opened.count == count && opened.origin == at.first_edge) return;
  const auto next = static_cast<int32_t>(nodes_.size());
  nodes_.push_back({.first_edge = at.first_edge, .start = at.start, .count = count});
  s.opened_.push_back({.start = at.start, .count = count, .origin = at.first_edge, .node = next});
  enter(at.start, next, s);
}

bool Matcher::step(uint32_t begin, uint32_t end, uint8_t byte, MatchScratch& s) {
  s.used_ = end;
  begin_level(s);
  for (uint32_t i = begin; i < end; ++i) {
    const Configuration at = s.configurations_[i];
    --s.work_left_;
    if (const uint32_t to = automaton_->next(at.state, byte); to != Automaton::kNowhere)
      enter(to, at.stack, s);
  }
  close(s);
  return s.used_ > end;
}

void Matcher::load(MatchScratch& s) const {
  if (s.configurations_.size() < position_.size() + 1)
    s.configurations_.resize(position_.size() + 1);
  std::ranges::copy(position_, s.configurations_.begin());
  s.used_ = static_cast<uint32_t>(position_.size());
}

void Matcher::keep(uint32_t begin, uint32_t end, const MatchScratch& s) {
  position_.assign(s.configurations_.begin() + begin, s.configurations_.begin() + end);
}

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
  s.work_left_ -= above.end - above.begin;
  level = {above.end, above.end + count, above.nodes, above.edges};
  return true;
}

// Where a configuration leads without a byte, if it only returns: for step_plainly, which will meet
// it again under many paths of the trie.
void Matcher::remember_return(Configuration from, MatchScratch& s) {
  const size_t nodes = nodes_.size();
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
  std::span<const TokenTrie::Node> trie = trie_->all();
  size_t i = 0;
  for (uint16_t spaces = 1; spaces <= ignored_spaces_; ++spaces) {
    while (i < trie.size() && trie[i].depth == spaces && trie[i].byte != ' ') i = trie[i].end;
    if (i == trie.size() || trie[i].depth != spaces) return;
    const size_t begin = i + 1, end = trie[i].end;
    // From here on node numbers are relative to `begin`.
    walk(trie.subspan(begin, end - begin), static_cast<uint32_t>(begin), mask, s, spaces);
    i = begin;
    trie = trie.first(end);
  }
}

// One pass over a trie whose first node has the number `base` and whose top is `top` bytes deep.
// Stacks made for one path are cut off before the next.
void Matcher::walk(std::span<const TokenTrie::Node> trie, uint32_t base, std::span<uint64_t> mask,
                   MatchScratch& s, uint16_t top) {
  for (size_t i = 0; i < trie.size() && s.work_left_ > 0;) {
    const TokenTrie::Node& node = trie[i];
    const size_t depth = node.depth - top;
    const MatchScratch::Level above = s.levels_[depth - 1];
    MatchScratch::Level& level = s.levels_[depth];
    if (above.end - above.begin == 1) {  // Most of the time.
      const Configuration at = s.configurations_[above.begin];
      const uint32_t to = automaton_->next(at.state, node.byte);
      --s.work_left_;
      if (to == Automaton::kNowhere) {
        i = node.end - base;
        continue;
      }
      if (automaton_->state(to).plain() && above.end < s.configurations_.size()) {
        s.configurations_[above.end] = {to, at.stack};
        level = {above.end, above.end + 1, above.nodes, above.edges};
        allow(node.token, mask);
        ++i;
        continue;
      }
    }
    if (!step_plainly(above, node.byte, level, s)) {
      nodes_.resize(above.nodes);
      edges_.resize(above.edges);
      step(above.begin, above.end, node.byte, s);
      level = {above.end, s.used_, static_cast<uint32_t>(nodes_.size()),
               static_cast<uint32_t>(edges_.size())};
      // Configurations that were entered by the byte come first.
      if (nodes_.size() == above.nodes && level.end - level.begin <= kFewConfigurations) {
        const Configuration first = s.configurations_[level.begin];
        if (first.stack >= 0 && first.stack < static_cast<int32_t>(s.levels_[0].nodes))
          remember_return(first, s);
      }
    }
    if (level.begin == level.end) {
      i = node.end - base;
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
  // Behind the end of a repetition's block stand those that are left.
  const Node& node = nodes_[static_cast<size_t>(at.stack)];
  int32_t left = 0;
  for (int32_t e = node.first_edge; e >= 0; e = edges_[static_cast<size_t>(e)].next)
    left = std::max(left, automaton_->call(edges_[static_cast<size_t>(e)].call).max);
  left -= node.count + 1;
  if (left <= 0) return run.length;
  const CharRun again = automaton_->state(node.start).runs[c];
  const auto blocks = static_cast<size_t>(again.to_end ? left : 1);
  return std::min<size_t>(run.length + blocks * again.length, kEndlessRun - 1);
}

bool Matcher::takes(const TokenTrie::Slice& slice) const {
  return std::ranges::any_of(position_, [&](const Configuration& at) {
    const auto runs = [&](uint32_t state) {
      return run_length({state, at.stack}, slice.char_class) >= slice.length_max;
    };
    if (slice.space != LeadingSpace::kAlways && !runs(at.state)) return false;
    if (slice.space == LeadingSpace::kNone) return true;
    const uint32_t behind = automaton_->next(at.state, ' ');
    return behind != Automaton::kNowhere && runs(behind);
  });
}

void Matcher::fill_mask(std::span<uint64_t> mask, MatchScratch& s) {
  CHECK(mask.size() >= trie_->mask_words() && s.levels_.size() > trie_->depth_max());
  s.work_left_ = kMaskWorkMax;
  std::span<const TokenTrie::Node> trie = trie_->all();
  const TokenTrie::Slice* found = nullptr;
  for (const TokenTrie::Slice& slice : trie_->slices()) {
    if (!takes(slice)) continue;
    found = &slice;
    break;
  }
  if (found) {
    std::ranges::copy(found->tokens, mask.begin());
    std::ranges::fill(mask.subspan(found->tokens.size()), 0);
    trie = found->rest;
  } else {
    std::ranges::fill(mask, 0);
  }
  load_top(s);
  walk(trie, 0, mask, s);
  if (ignored_spaces_ > 0) walk_behind_spaces(mask, s);
  for (const auto& [token, twin] : trie_->twins())
    if (mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1)
      mask[static_cast<size_t>(twin) / 64] |= uint64_t{1} << (twin % 64);
}

bool Matcher::may_end() const {
  return std::ranges::any_of(position_, [&](const Configuration& at) {
    return at.stack < 0 && automaton_->state(at.state).final;
  });
}

bool Matcher::must_end() const {
  return may_end() && std::ranges::all_of(position_, [&](const Configuration& at) {
           return automaton_->state(at.state).range_count == 0;
         });
}

bool Matcher::accept(int32_t token, MatchScratch& s) {
  std::string_view bytes = trie_->bytes(token);
  if (bytes.empty()) return false;
  if (const size_t spaces = std::exchange(ignored_spaces_, 0); spaces > 0)
    bytes.remove_prefix(std::min({spaces, bytes.find_first_not_of(' '), bytes.size()}));
  return accept(bytes, s);
}

bool Matcher::accept(std::string_view bytes, MatchScratch& s) {
  const size_t nodes = nodes_.size(), edges = edges_.size();
  load(s);
  s.work_left_ = kMaskWorkMax;
  uint32_t begin = 0, end = s.used_;
  for (const char c : bytes) {
    if (!step(begin, end, static_cast<uint8_t>(c), s)) {
      nodes_.resize(nodes);
      edges_.resize(edges);
      return false;
    }
    begin = end;
    end = s.used_;
  }
  keep(begin, end, s);
  if (nodes_.size() > 2 * nodes_after_compaction_ + kCompactionSlack) compact();
  return true;
}

std::string Matcher::forced(size_t bytes_max, MatchScratch& s) {
  const size_t nodes = nodes_.size(), edges = edges_.size();
  load(s);
  uint32_t begin = 0, end = s.used_;
  std::string text;
  while (text.size() < bytes_max) {
    int next = -1;  // The only byte that may follow.
    bool single = true;
    for (uint32_t i = begin; i < end && single; ++i) {
      const Configuration at = s.configurations_[i];
      const Automaton::State& state = automaton_->state(at.state);
      single = !(at.stack < 0 && state.final);
      for (const Automaton::Range& range : automaton_->ranges(state)) {
        single = single && range.first == range.last && (next < 0 || next == range.first);
        next = range.first;
      }
    }
    if (!single || next < 0 || !step(begin, end, static_cast<uint8_t>(next), s)) break;
    text += static_cast<char>(next);
    begin = end;
    end = s.used_;
  }
  nodes_.resize(nodes);
  edges_.resize(edges);
  return text;
}

// Nodes that no configuration reaches any more are dropped; the others keep their order.
void Matcher::compact() {
  constexpr int32_t kDead = -1, kLive = 0;
  std::vector<int32_t> number(nodes_.size(), kDead), stack;
  const auto mark = [&](int32_t node) {
    if (node < 0 || number[static_cast<size_t>(node)] == kLive) return;
    number[static_cast<size_t>(node)] = kLive;
    stack.push_back(node);
  };
  const auto for_edges = [&](const Node& node, auto visit) {
    for (int32_t e = node.first_edge; e >= 0; e = edges_[static_cast<size_t>(e)].next)
      visit(edges_[static_cast<size_t>(e)]);
  };
  for (const Configuration& at : position_) mark(at.stack);
  while (!stack.empty()) {
    const Node node = nodes_[static_cast<size_t>(stack.back())];
    stack.pop_back();
    for_edges(node, [&](const Edge& edge) { mark(edge.stack); });
  }
  int32_t count = 0;
  for (int32_t& n : number)
    if (n == kLive) n = count++;
  const auto renumbered = [&](int32_t node) {
    return node < 0 ? node : number[static_cast<size_t>(node)];
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (number[i] == kDead) continue;
    Node node{.start = nodes_[i].start, .count = nodes_[i].count};
    for_edges(nodes_[i], [&](Edge edge) {
      edge.stack = renumbered(edge.stack);
      edge.next = std::exchange(node.first_edge, static_cast<int32_t>(edges.size()));
      edges.push_back(edge);
    });
    nodes.push_back(node);
  }
  for (Configuration& at : position_) at.stack = renumbered(at.stack);
  nodes_ = std::move(nodes);
  edges_ = std::move(edges);
  nodes_after_compaction_ = nodes_.size();
}

size_t Matcher::memory_bytes() const {
  return position_.capacity() * sizeof(Configuration) + nodes_.capacity() * sizeof(Node) +
         edges_.capacity() * sizeof(Edge);
}

void Matcher::check() const {
  const auto count = static_cast<int32_t>(nodes_.size());
  for (const Configuration& at : position_)
    CHECK(at.state < automaton_->state_count() && at.stack < count);
  for (const Node& node : nodes_) {
    CHECK(node.first_edge >= 0);
    for (int32_t e = node.first_edge; e >= 0; e = edges_[static_cast<size_t>(e)].next)
      CHECK(edges_[static_cast<size_t>(e)].stack < count);
  }
}

}  // namespace weir::sample::grammar
