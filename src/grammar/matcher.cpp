#include "grammar/matcher.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace weir::grammar {

namespace {

// Configurations of one position. JSON schemas have one or two, a choice among many shapes of
// object as many as there are shapes.
constexpr uint32_t kConfigurationsMax = 1024;
// Open calls, live or not, before the stack is compacted; and most of all.
constexpr size_t kCompactionSlack = 1024;
constexpr size_t kNodesMax = 1 << 20;
// What one step by a byte may cost, in the same units: every position with a thousand
// configurations stays below it. What is not reached is dropped, the same way whenever the step is
// taken.
constexpr int64_t kStepWorkMax = 50'000;
constexpr int64_t kClosureWork = 16;
// Fewer configurations than this are searched one by one.
constexpr uint32_t kSearchedMax = 16;

}  // namespace

Matcher::Matcher(std::shared_ptr<const Automaton> automaton, std::shared_ptr<const TokenTrie> trie)
    : automaton_(std::move(automaton)), trie_(std::move(trie)) {
  MatchScratch s(0);
  begin_level(s);
  enter(automaton_->start(), -1, s);
  close(s);
  keep(0, s.used_, s);
  for (KnownMask& known : known_) known.mask.resize(trie_->mask_words());
}

void Matcher::begin_level(MatchScratch& s) const {
  s.first_new_ = s.used_;
  s.step_left_ = kStepWorkMax;
  ++s.level_number_;
  s.old_nodes_ = static_cast<int32_t>(nodes_.size());
  s.opened_.clear();
}

// Whether it is among the new ones; if not, it has its place in the table from now on.
bool Matcher::entered(Configuration at, MatchScratch& s) {
  constexpr uint32_t kMask = MatchScratch::kPlaces - 1;
  uint32_t place = (at.state * 0x9e3779b1u + static_cast<uint32_t>(at.stack) * 0x85ebca6bu) >> 12;
  for (;; ++place) {
    MatchScratch::Place& slot = s.places_[place & kMask];
    if (slot.level != s.level_number_) {
      slot = {s.level_number_, s.used_};
      return false;
    }
    if (s.configurations_[slot.index] == at) return true;
  }
}

void Matcher::enter(uint32_t state, int32_t stack, MatchScratch& s) const {
  const Configuration at{state, stack};
  const uint32_t count = s.used_ - s.first_new_;
  s.spend(4);
  if (count == kConfigurationsMax) return;
  const auto first = s.configurations_.begin() + s.first_new_;
  if (count < kSearchedMax) {
    if (std::find(first, first + count, at) != first + count) return;
  } else {
    if (count == kSearchedMax) {
      const uint32_t used = std::exchange(s.used_, s.first_new_);
      for (; s.used_ < used; ++s.used_) entered(s.configurations_[s.used_], s);
    }
    if (entered(at, s)) return;
  }
  if (s.used_ == s.configurations_.size()) s.configurations_.resize(2 * s.used_);
  s.configurations_[s.used_++] = at;
}

// Calls and returns until only bytes lead on.
void Matcher::close(MatchScratch& s) {
  for (uint32_t i = s.first_new_; i < s.used_ && s.step_left_ > 0; ++i) {
    const Configuration at = s.configurations_[i];
    const Automaton::State& state = automaton_->state(at.state);
    if (state.plain()) continue;
    if (state.final && at.stack >= 0) go_back(at.stack, s);
    for (const Automaton::CallEdge& edge : automaton_->calls(state)) call(edge, at.stack, s);
  }
}

void Matcher::call(const Automaton::CallEdge& edge, int32_t stack, MatchScratch& s) {
  const Automaton::Call& target = automaton_->call(edge.call);
  s.spend(kClosureWork + static_cast<int64_t>(s.opened_.size()) / 4);
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

// What `node` called has come to its end: back to those callers for which it has run often enough,
// and once more for those that may want it.
void Matcher::go_back(int32_t node, MatchScratch& s) {
  const Node at = nodes_[static_cast<size_t>(node)];
  s.spend(kClosureWork + static_cast<int64_t>(s.opened_.size()) / 4);
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
    s.spend(1);
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

// Where one configuration alone reads on.
std::span<const int32_t> Matcher::forced_tokens() const {
  uint32_t reader = Automaton::kNowhere;
  for (const Configuration& at : position_) {
    const Automaton::State& state = automaton_->state(at.state);
    if (at.stack < 0 && state.final) return {};
    if (state.range_count == 0) continue;  // What it calls or returns to stands here as well.
    if (reader != Automaton::kNowhere) return {};
    reader = at.state;
  }
  return reader == Automaton::kNowhere ? std::span<const int32_t>() : automaton_->forced(reader);
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
  for (KnownMask& known : known_) known.count = 0;  // Their stacks have other numbers now.
}

size_t Matcher::memory_bytes() const {
  return position_.capacity() * sizeof(Configuration) + nodes_.capacity() * sizeof(Node) +
         edges_.capacity() * sizeof(Edge) + kKnownMasks * trie_->mask_words() * sizeof(uint64_t);
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

}  // namespace weir::grammar
