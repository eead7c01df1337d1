// Matcher: where one output stands in a grammar. It says which tokens may follow and takes the one
// that was chosen.
//
// The automaton is deterministic but for its calls: several may be open at once, and the same call
// may have been made from several places. A position is therefore a set of configurations (state,
// top of stack) whose stacks share their nodes; a call made twice at the same byte is one node with
// two ways back (a graph-structured stack, Tomita 1985). All sizes are bounded: configurations
// beyond a limit are dropped, which only makes the language smaller.
//
// Threads: belongs to one sequence; the thread that has its row uses it. Copying copies the
// position.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/token_trie.h"

namespace weir::grammar {

// A state of the automaton and the stack below it.
struct Configuration {
  uint32_t state = UINT32_MAX;
  int32_t stack = -1;  // A node; -1: nothing was called.

  bool operator==(const Configuration&) const = default;
};

// Memory for one walk at a time, one per thread.
class MatchScratch {
 public:
  explicit MatchScratch(size_t depth_max = TokenTrie::kTokenBytesMax)
      : levels_(depth_max + 1), states_(depth_max + 1) {
    configurations_.resize(256);
    opened_.reserve(64);
  }

  // What is left of the bound of the last mask's work; none: tokens may have been left out.
  int64_t work_left() const { return work_left_; }

 private:
  friend class Matcher;

  // The configurations after the bytes of a trie's path, and the stack's size there.
  struct Level {
    uint32_t begin = 0, end = 0;
    uint32_t nodes = 0, edges = 0;
  };
  // A call made since the last byte, or one more repetition of an older one.
  struct Opened {
    uint32_t start = 0;
    int32_t count = 0;
    int32_t origin = -1;  // The older one's first edge.
    int32_t node = -1;
    bool returned = false;  // Without reading anything.
  };

  // A configuration whose state is final, and all that it leads to by returning. Holds during one
  // walk, for stacks that are older than the walk.
  static constexpr uint32_t kReturnedMax = 4, kReturnedSlots = 16;
  struct Returned {
    Configuration from{};
    uint32_t count = 0;
    std::array<Configuration, kReturnedMax> to{};
  };

  // Where a configuration of the level that is being made stands, if this is that level's.
  struct Place {
    uint32_t level = 0;
    uint32_t index = 0;
  };
  // Twice as many as a level has configurations at most, a power of two.
  static constexpr uint32_t kPlaces = 2048;

  // The states of a level's configurations, where they are few.
  using States = std::array<uint32_t, 3>;

  void spend(int64_t work) {
    work_left_ -= work;
    step_left_ -= work;
  }

  std::array<Returned, kReturnedSlots> returned_;
  std::array<Place, kPlaces> places_;
  uint32_t level_number_ = 0;
  std::vector<Level> levels_;
  std::vector<States> states_;                 // By depth.
  std::vector<Configuration> configurations_;  // Those of deeper levels come after.
  uint32_t used_ = 0;
  uint32_t first_new_ = 0;  // Of the level that is being made.
  int32_t old_nodes_ = 0;   // Nodes that were there before it.
  std::vector<Opened> opened_;
  int64_t work_left_ = 0;  // Of a mask;
  int64_t step_left_ = 0;  // of a step by one byte.
};

class Matcher {
 public:
  // What one mask may cost, in units of 4 to 7 ns: 3.2 ms. Tokens that are not reached are not
  // allowed.
  static constexpr int64_t kMaskWorkMax = 450'000;

  // Both are shared by many requests and kept alive by each: the last position to go may be the
  // engine's, after the caller has left.
  Matcher(std::shared_ptr<const Automaton> automaton, std::shared_ptr<const TokenTrie> trie);

  // Sets the bits of the tokens that may come next and clears the others. Which may be none: only
  // the end is left, or the vocabulary cannot spell what must follow.
  void fill_mask(std::span<uint64_t> mask, MatchScratch& scratch);

  // The output may end here.
  bool may_end() const;
  // It may end here, and nothing can follow.
  bool must_end() const;

  // Goes on after a token, or some bytes. False, and no change, if they may not come.
  bool accept(int32_t token, MatchScratch& scratch);
  bool accept(std::string_view bytes, MatchScratch& scratch);

  // Tokens that must come next, in the tokenizer's own spelling; mostly none. Each may be accepted.
  std::span<const int32_t> forced_tokens() const;
  // What must follow, whatever is chosen: at most `bytes_max` bytes, perhaps none.
  std::string forced(size_t bytes_max, MatchScratch& scratch);

  // Spaces at the beginning of the first token, up to `count`, do not count (for tokenizers that
  // drop them).
  void ignore_leading_spaces(size_t count) { ignored_spaces_ = count; }

  size_t memory_bytes() const;
  // Checks what the stack refers to. For tests.
  void check() const;

  const Automaton& automaton() const { return *automaton_; }
  const TokenTrie& trie() const { return *trie_; }

 private:
  // What was called, from one or several places, and how often it has run already.
  struct Node {
    int32_t first_edge = -1;
    uint32_t start = 0;
    int32_t count = 0;
  };
  struct Edge {
    uint32_t call = 0;     // How often it is to run.
    uint32_t back_to = 0;  // The caller's state afterwards,
    int32_t stack = -1;    // and its stack.
    int32_t next = -1;     // Of the same node.
  };

  // A mask made lately. In the middle of a text one position follows another that is the same.
  struct KnownMask {
    static constexpr size_t kConfigurationsMax = 4;
    std::array<Configuration, kConfigurationsMax> position;
    size_t count = 0;  // 0: none yet.
    std::vector<uint64_t> mask;
  };
  static constexpr size_t kKnownMasks = 3;

  const KnownMask* known_mask() const;
  void remember_mask(std::span<const uint64_t> mask);
  // At least one token, if any may come: where the bound of work leaves out all of them.
  void allow_some(std::span<uint64_t> mask, MatchScratch& scratch);
  // Whatever is remembered.
  void make_mask(std::span<uint64_t> mask, MatchScratch& scratch);
  // How many characters of a class may follow, whatever they are. At least.
  size_t run_length(Configuration at, CharClass char_class) const;
  // All tokens of the slice may come next.
  bool takes(const TokenTrie::Slice& slice) const;
  void remember_return(Configuration from, MatchScratch& s);
  void begin_level(MatchScratch& s) const;
  void enter(uint32_t state, int32_t stack, MatchScratch& s) const;
  static bool entered(Configuration at, MatchScratch& s);
  void close(MatchScratch& s);
  void call(const Automaton::CallEdge& edge, int32_t stack, MatchScratch& s);
  void go_back(int32_t node, MatchScratch& s);
  void add_edge(int32_t node, Edge edge);
  // Adds the configurations after `byte` of those in [begin, end); true if there are any.
  bool step(uint32_t begin, uint32_t end, uint8_t byte, MatchScratch& s);
  void load_top(MatchScratch& s) const;
  template <size_t kCount>
  size_t walk_plainly(const TokenTrie::Forest& forest, size_t i, size_t end,
                      std::span<uint64_t> mask, MatchScratch& s, uint16_t top) const;
  size_t walk_plainly(const TokenTrie::Forest& forest, size_t i, size_t end,
                      std::span<uint64_t> mask, MatchScratch& s, uint16_t top) const;
  bool takes(Configuration at, const TokenTrie::Bush& bush) const;
  static int64_t allow_all(const TokenTrie::Forest& forest, const TokenTrie::Bush& bush,
                           std::span<uint64_t> mask);
  std::optional<size_t> take_bush(const TokenTrie::Forest& forest, const TokenTrie::Node& node,
                                  const MatchScratch::Level& above, std::span<uint64_t> mask,
                                  MatchScratch& s) const;
  void walk(const TokenTrie::Forest& forest, size_t i, size_t end, std::span<uint64_t> mask,
            MatchScratch& s, uint16_t top = 0);
  // Sets the level after one byte and returns true if nothing but bytes is involved.
  bool step_plainly(const MatchScratch::Level& above, uint8_t byte, MatchScratch::Level& level,
                    MatchScratch& s) const;
  void walk_behind_spaces(std::span<uint64_t> mask, MatchScratch& s);
  void load(MatchScratch& s) const;
  void keep(uint32_t begin, uint32_t end, const MatchScratch& s);
  void compact();

  std::shared_ptr<const Automaton> automaton_;
  std::shared_ptr<const TokenTrie> trie_;
  std::vector<Configuration> position_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  size_t nodes_after_compaction_ = 0;
  size_t ignored_spaces_ = 0;
  std::array<KnownMask, kKnownMasks> known_;
  size_t oldest_known_ = 0;
};

}  // namespace weir::grammar
