// SequenceMemory against a plain model: what is written down beside every page and slot, and what
// each sequence would find at each position that it sees.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "kv/disk/page_shape.h"
#include "kv/sequence_memory.h"

namespace weir::kv {

// Of one sequence.
inline constexpr int32_t kBlocksMax = 160;

struct Text final : TokenKeys {
  std::vector<int32_t> tokens;
  void read(int32_t block, BlockTokens& into) const override {
    for (int32_t i = 0; i < kPageTokens; ++i)
      into[static_cast<size_t>(i)] = tokens[static_cast<size_t>(block * kPageTokens + i)];
  }
};

struct Sequence {
  Text text;
  Holding holding;
  int32_t computed = 0;
};

inline uint64_t chain(uint64_t hash, int32_t token) {
  return (hash ^ static_cast<uint64_t>(token + 1)) * 0x9e3779b97f4a7c15u + (hash >> 29);
}

// Sequences, and what lies in the pages.
class Memory {
 public:
  explicit Memory(std::vector<PageGroup> groups, bool cache = true, const StateSlots& slots = {})
      : groups_(std::move(groups)),
        memory_(groups_, cache, slots),
        states_(static_cast<size_t>(slots.count())) {
    for (const PageGroup& group : groups_)
      content_.emplace_back(static_cast<size_t>(group.pages) * kPageTokens);
  }

  // `prompt`: how many of them are its prompt; 0: all.
  std::unique_ptr<Sequence> begin(std::vector<int32_t> tokens, int32_t prompt = 0) {
    auto seq = std::make_unique<Sequence>();
    seq->text.tokens = std::move(tokens);
    seq->holding.reserve(static_cast<int32_t>(groups_.size()), kBlocksMax);
    memory_.begin(seq->holding, PrefixCache::salt({}), prompt > 0 ? prompt : length(*seq));
    open_.push_back(&seq->holding);
    return seq;
  }
  // Returns how many tokens were known.
  int32_t match(Sequence& seq) {
    const int32_t tokens =
        memory_.match(seq.holding, seq.text, seq.computed, length(seq) - 1) - seq.computed;
    seq.computed += tokens;
    expect_seen(seq);
    return tokens;
  }
  // `shared`: how many of all tokens are known for sure.
  void compute(Sequence& seq, int32_t count, int32_t shared = 1 << 30) {
    memory_.leave(seq.holding, seq.computed);
    memory_.grow(seq.holding, seq.computed + count);
    expect_seen(seq);
    memory_.plan(seq.holding, seq.text, seq.computed, seq.computed + count);
    write(seq, count);
    rows_ += count;
    seq.computed += count;
    memory_.share(seq.holding, seq.text, std::min(seq.computed, shared));
  }
  void end(Sequence& seq) {
    memory_.release(seq.holding);
    std::erase(open_, &seq.holding);
    seq.computed = 0;
  }
  // A text that is computed and ends. Returns how much of it was known.
  int32_t run(const std::vector<int32_t>& tokens, int32_t chunk = 64, int32_t prompt = 0) {
    const auto seq = begin(tokens, prompt);
    const int32_t known = match(*seq);
    while (seq->computed < length(*seq))
      compute(*seq, std::min(chunk, length(*seq) - seq->computed));
    end(*seq);
    return known;
  }
  void check() const {
    memory_.check(open_);
    for (size_t g = 1; g < groups_.size() && !groups_[g].hot; ++g)
      EXPECT_LE(memory_.held_pages(static_cast<int32_t>(g)),
                memory_.held() + filled_ * blocks_for(groups_[g].window));
  }

  // A text of whole blocks that comes from elsewhere, with all that one needs who goes on there.
  struct Fill {
    Text text;
    Holding holding;
    std::vector<uint8_t> wanted;
  };
  // Null: there is no room for it.
  std::unique_ptr<Fill> begin_fill(std::vector<int32_t> tokens, int32_t spare) {
    auto fill = std::make_unique<Fill>();
    fill->text.tokens = std::move(tokens);
    fill->holding.reserve(static_cast<int32_t>(groups_.size()), kBlocksMax);
    const size_t end = fill->text.tokens.size() / kPageTokens;
    std::vector<PrefixKey> keys(end);
    std::vector<uint8_t> there(end);
    const PrefixKey salt = PrefixCache::salt({});
    const int32_t known = memory_.known_blocks(salt, fill->text, keys, there);
    const disk::PageShape shape = this->shape();
    fill->wanted.assign(end, 0);
    for (int32_t g = 0; g < shape.groups; ++g) {
      const disk::BlockRange range = shape.needed(g, static_cast<int32_t>(end));
      for (auto b = static_cast<size_t>(range.first); b < static_cast<size_t>(range.end); ++b)
        fill->wanted[b] |= disk::page_bit(g) & ~there[b];
    }
    if (!memory_.begin_fill(fill->holding, salt, fill->text, known, fill->wanted, spare)) {
      EXPECT_TRUE(fill->holding.empty());
      return nullptr;
    }
    open_.push_back(&fill->holding);
    ++filled_;
    return fill;
  }
  // All has come, or nothing.
  void end_fill(Fill& fill, bool come) {
    const auto end = static_cast<int32_t>(fill.wanted.size());
    if (come) {
      uint64_t hash = 0;
      for (int32_t i = 0; i < end * kPageTokens; ++i) {
        hash = chain(hash, fill.text.tokens[static_cast<size_t>(i)]);
        for (size_t g = 0; g < groups_.size(); ++g)
          if (disk::has_page(fill.wanted[static_cast<size_t>(i / kPageTokens)],
                             static_cast<int32_t>(g)))
            at(fill.holding, g, i) = hash;
      }
      if (disk::has_page(fill.wanted.back(), static_cast<int32_t>(groups_.size())))
        states_[static_cast<size_t>(SequenceMemory::filled_state(fill.holding))] = hash;
      EXPECT_LE(memory_.end_fill(fill.holding, fill.text, end), end);
    }
    memory_.release(fill.holding);
    std::erase(open_, &fill.holding);
    --filled_;
  }
  // All that the next position sees is what this sequence's tokens say; so is what others have
  // computed after that.
  void expect_seen(Sequence& seq) {
    uint64_t hash = 0;
    for (int32_t i = 0; i < std::max(seq.computed, seq.holding.view().kept); ++i) {
      hash = chain(hash, seq.text.tokens[static_cast<size_t>(i)]);
      for (size_t g = 0; g < groups_.size(); ++g) {
        // Hot pages are of the first block, and of the next position's, as far as they are
        // computed.
        if (groups_[g].hot && (i >= seq.computed ||
                               (i >= kPageTokens && i < seq.computed / kPageTokens * kPageTokens)))
          continue;
        if (!groups_[g].hot && groups_[g].window > 0 && i <= seq.computed - groups_[g].window)
          continue;
        ASSERT_EQ(at(seq, g, i), hash) << "position " << i << " group " << g;
      }
    }
  }

  static int32_t length(const Sequence& seq) {
    return static_cast<int32_t>(seq.text.tokens.size());
  }
  SequenceMemory& memory() { return memory_; }
  int64_t rows() const { return rows_; }  // All that were computed.

 private:
  // As a pass does: a slot begins with what it is restored from, and leaves marks.
  void write(Sequence& seq, int32_t count) {
    const MemoryView view = seq.holding.view();
    const int32_t from = view.restored_from >= 0 ? view.restored_from : view.state;
    auto mark = view.marks.begin();
    uint64_t hash = 0;
    for (int32_t i = 0; i < seq.computed + count; ++i) {
      if (i == seq.computed && i > 0 && memory_.has_states()) {
        ASSERT_EQ(states_[static_cast<size_t>(from)], hash) << "before position " << i;
      }
      hash = chain(hash, seq.text.tokens[static_cast<size_t>(i)]);
      for (size_t g = 0; g < groups_.size(); ++g)
        if (i >=
            (groups_[g].hot && i >= kPageTokens ? seq.computed : std::max(seq.computed, view.kept)))
          at(seq, g, i) = hash;
      if (mark == view.marks.end() || mark->position != i + 1) continue;
      ASSERT_GT(i + 1, seq.computed);
      states_[static_cast<size_t>(mark++->slot)] = hash;
    }
    ASSERT_EQ(mark, view.marks.end());
    if (memory_.has_states()) states_[static_cast<size_t>(view.state)] = hash;
  }

  disk::PageShape shape() const {
    std::vector<MemoryLayout::Group> groups;
    for (const PageGroup& group : groups_)
      groups.push_back({.window = group.window, .page_bytes = 1, .hot = group.hot});
    return disk::PageShape::of(groups, memory_.has_states() ? 1 : 0);
  }
  uint64_t& at(const Sequence& seq, size_t group, int32_t position) {
    return at(seq.holding, group, position);
  }
  uint64_t& at(const Holding& holding, size_t group, int32_t position) {
    const int32_t page = holding.view().pages(static_cast<int32_t>(group))[position / kPageTokens];
    return content_[group][static_cast<size_t>(page * kPageTokens + position % kPageTokens)];
  }

  const std::vector<PageGroup> groups_;
  SequenceMemory memory_;
  std::vector<std::vector<uint64_t>> content_;
  std::vector<uint64_t> states_;  // By slot.
  std::vector<const Holding*> open_;
  int64_t rows_ = 0;
  int32_t filled_ = 0;
};

// Blocks of one value each.
inline std::vector<int32_t> text_of(const std::vector<int32_t>& blocks, int32_t more = 0) {
  std::vector<int32_t> tokens;
  for (const int32_t value : blocks) tokens.insert(tokens.end(), kPageTokens, value);
  tokens.insert(tokens.end(), static_cast<size_t>(more), 99);
  return tokens;
}

inline std::vector<int32_t> numbers(int32_t first, int32_t count) {
  std::vector<int32_t> values;
  for (int32_t i = 0; i < count; ++i) values.push_back(first + i);
  return values;
}

// Sequences come, compute, give way and end at random, and share beginnings.
class Simulation {
 public:
  // At most: sequences at once, tokens of one slice, blocks of one text, texts that come from
  // elsewhere.
  struct Crowd {
    int32_t running = 0, rows = 0, blocks = 0, fills = 0;
  };

  Simulation(uint32_t seed, const Crowd& crowd, std::vector<PageGroup> groups,
             const StateSlots& slots = {})
      : crowd_(crowd), random_(seed), memory_(std::move(groups), /*cache=*/seed % 7 != 0, slots) {}

  void step() {
    const size_t i = open_.empty() ? 0 : random_() % open_.size();
    switch (open_.empty() ? 0 : random_() % 12) {
      case 0:
        arrive();
        break;
      case 1:
        if (random_() % 40 != 0) break;
        memory_.memory().forget_shared();
        for (const auto& seq : open_) SequenceMemory::stop_sharing(seq->holding);
        break;
      case 2:
        end(i);
        break;
      case 3:
        if (PrefixCache* cache = memory_.memory().cache()) cache->evict(random_() % 8);
        break;
      case 4:
        if (memory_.memory().cache() != nullptr) begin_fill();
        break;
      case 5:
        if (!fills_.empty()) end_fill(random_() % fills_.size(), /*come=*/random_() % 8 != 0);
        break;
      default:
        compute(*open_[i]);
    }
    memory_.check();
  }
  void finish() {
    while (!fills_.empty()) end_fill(0, true);
    while (!open_.empty()) end(0);
    memory_.check();
    memory_.memory().forget_shared();
    for (const PagePool& pool : memory_.memory().pools())
      EXPECT_EQ(pool.free_count(), pool.page_count());
  }
  int64_t matched() const { return matched_; }
  int64_t filled() const { return filled_; }  // Blocks that have come from elsewhere.

 private:
  int32_t below(int32_t bound) {
    return static_cast<int32_t>(random_() % static_cast<uint32_t>(bound));
  }

  std::vector<int32_t> made_up_blocks() {
    std::vector<int32_t> blocks(static_cast<size_t>(1 + below(crowd_.blocks)));
    const auto same = static_cast<size_t>(below(crowd_.blocks + crowd_.blocks / 5 + 1));
    for (size_t b = 0; b < blocks.size(); ++b) blocks[b] = b < same ? 0 : below(2);
    return blocks;
  }
  void begin_fill() {
    if (std::ssize(fills_) == crowd_.fills) return;
    if (auto fill = memory_.begin_fill(text_of(made_up_blocks()), /*spare=*/below(4)))
      fills_.push_back(std::move(fill));
  }
  void end_fill(size_t i, bool come) {
    if (come) filled_ += std::ssize(fills_[i]->wanted);
    memory_.end_fill(*fills_[i], come);
    fills_.erase(fills_.begin() + static_cast<ptrdiff_t>(i));
  }
  void arrive() {
    if (std::ssize(open_) == crowd_.running) return;
    std::vector<int32_t> tokens = text_of(made_up_blocks(), 1 + below(31));
    const int32_t prompt = 1 + below(static_cast<int32_t>(tokens.size()));
    open_.push_back(memory_.begin(std::move(tokens), prompt));
    matched_ += memory_.match(*open_.back());
  }
  void compute(Sequence& seq) {
    if (random_() % 2 == 0) matched_ += memory_.match(seq);
    const int32_t left = Memory::length(seq) - seq.computed;
    const int32_t count = std::min(left, 1 + below(random_() % 2 == 0 ? crowd_.rows : 40));
    const int32_t missing = blocks_for(seq.computed + count) - seq.holding.blocks();
    if (count == 0 || missing > memory_.memory().available()) return;
    // As a plan does: what any window has left goes first.
    for (const auto& other : open_) memory_.memory().leave(other->holding, other->computed);
    memory_.compute(seq, count, random_() % 4 == 0 ? seq.computed : 1 << 30);
  }
  void end(size_t i) {
    memory_.end(*open_[i]);
    open_.erase(open_.begin() + static_cast<ptrdiff_t>(i));
  }

  const Crowd crowd_;
  std::mt19937 random_;
  Memory memory_;
  std::vector<std::unique_ptr<Sequence>> open_;
  std::vector<std::unique_ptr<Memory::Fill>> fills_;
  int64_t matched_ = 0;
  int64_t filled_ = 0;
};

}  // namespace weir::kv
