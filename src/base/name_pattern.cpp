#include "base/name_pattern.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace weir {

namespace {

using Bytes = std::bitset<256>;

constexpr int kDepthMax = 50;

Bytes range(unsigned char from, unsigned char to) {
  Bytes set;
  for (size_t b = from; b <= to; ++b) set.set(b);
  return set;
}

Bytes words() { return range('a', 'z') | range('A', 'Z') | range('0', '9') | range('_', '_'); }

bool is_word(char c) { return words().test(static_cast<unsigned char>(c)); }

// The set that \d, \w, \s and their opposites name.
std::optional<Bytes> named_set(char c) {
  switch (c) {
    case 'd':
      return range('0', '9');
    case 'D':
      return ~range('0', '9');
    case 'w':
      return words();
    case 'W':
      return ~words();
    case 's':
      return range(' ', ' ') | range('\t', '\r');
    case 'S':
      return ~(range(' ', ' ') | range('\t', '\r'));
    default:
      return std::nullopt;
  }
}

}  // namespace

// Recursive descent over the pattern; a part is a first state, and ends that go on where the next
// part begins. Built from the back: each function gets the state that comes after its part.
class NamePatternCompiler {
 public:
  explicit NamePatternCompiler(std::string_view text) : text_(text) {}

  Result<NamePattern> compile() {
    if (text_.size() > NamePattern::kProgramMax)
      wrong("more than " + std::to_string(NamePattern::kProgramMax) + " characters");
    std::optional<Node> root = alternatives(0);
    if (root && at_ != text_.size()) wrong("a ')' without its '('");
    int32_t first = -1;
    if (error_.empty()) first = emit(*root, add({}));
    if (!error_.empty())
      return fail(ErrorCode::kUnsupported,
                  "expected a regular expression of literals, classes, groups, alternatives, "
                  "repetitions and lookaheads, found " +
                      error_ + " in '" + std::string(text_.substr(0, 200)) + "'");
    out_.first_ = first;
    return std::move(out_);
  }

 private:
  using State = NamePattern::State;
  struct Node {
    enum class Kind : uint8_t { kState, kSequence, kChoice, kRepeat, kAhead } kind;
    State state{};         // kState: but for `next`; kAhead: its kind.
    int min = 0, max = 0;  // kRepeat; max < 0: no bound.
    std::vector<Node> parts{};
  };

  void wrong(std::string what) {
    if (error_.empty()) error_ = std::move(what);
  }
  bool done() const { return at_ == text_.size() || !error_.empty(); }
  char peek() const { return text_[at_]; }
  bool skip(std::string_view prefix) {
    if (!text_.substr(at_).starts_with(prefix)) return false;
    at_ += prefix.size();
    return true;
  }

  std::optional<Node> alternatives(int depth) {
    if (depth > kDepthMax) wrong("groups nested more than 50 deep");
    Node choice{.kind = Node::Kind::kChoice};
    do {
      std::optional<Node> one = sequence(depth);
      if (!one) return std::nullopt;
      choice.parts.push_back(std::move(*one));
    } while (!done() && skip("|"));
    if (!error_.empty()) return std::nullopt;
    return choice;
  }

  std::optional<Node> sequence(int depth) {
    Node out{.kind = Node::Kind::kSequence};
    while (!done() && peek() != '|' && peek() != ')') {
      std::optional<Node> one = atom(depth);
      if (!one) return std::nullopt;
      out.parts.push_back(repeated(std::move(*one)));
    }
    if (!error_.empty()) return std::nullopt;
    return out;
  }

  Node repeated(Node node) {
    int min = 0, max = -1;
    if (done()) return node;
    if (skip("+"))
      min = 1;
    else if (skip("?"))
      max = 1;
    else if (!skip("*") && !counted(min, max))
      return node;
    skip("?");  // Lazy.
    Node repeat{.kind = Node::Kind::kRepeat, .min = min, .max = max};
    repeat.parts.push_back(std::move(node));
    return repeat;
  }

  // {m}, {m,n}, {m,} or {,n}; anything else is a brace.
  bool counted(int& min, int& max) {
    if (peek() != '{') return false;
    size_t at = at_ + 1;
    const auto number = [&]() -> int {
      int value = -1;
      for (; at < text_.size() && text_[at] >= '0' && text_[at] <= '9'; ++at)
        value = std::min(std::max(value, 0) * 10 + (text_[at] - '0'), 10000);
      return value;
    };
    const int low = number();
    int high = low;
    const bool comma = at < text_.size() && text_[at] == ',';
    if (comma) {
      ++at;
      high = number();
    }
    if (at >= text_.size() || text_[at] != '}' || (low < 0 && high < 0)) return false;
    at_ = at + 1;
    min = std::max(low, 0);
    max = high;
    if (max >= 0 && max < min) wrong("a repetition whose least is more than its most");
    return true;
  }

  std::optional<Node> atom(int depth) {
    if (skip("(?=")) return group(depth, State::Kind::kAhead);
    if (skip("(?!")) return group(depth, State::Kind::kNoAhead);
    if (skip("(?:")) return group(depth, std::nullopt);
    if (skip("(?P<")) {
      const size_t close = text_.find('>', at_);
      if (close == text_.npos) return refuse("a group's name without '>'");
      at_ = close + 1;
      return group(depth, std::nullopt);
    }
    if (skip("(?")) return refuse("'(?" + std::string(text_.substr(at_, 1)) + "'");
    if (skip("(")) return group(depth, std::nullopt);
    if (skip("^")) return state(State::Kind::kBegin);
    if (skip("$")) return state(State::Kind::kEnd);
    if (skip(".")) return set(~range('\n', '\n'));
    if (skip("[")) return bracketed();
    const char c = text_[at_++];
    if (c == '*' || c == '+' || c == '?') return refuse("a repetition of nothing");
    if (c != '\\') return set(range(static_cast<unsigned char>(c), static_cast<unsigned char>(c)));
    if (done()) return refuse("a '\\' at the end");
    const char escaped = text_[at_++];
    if (escaped == 'b') return state(State::Kind::kWordEdge);
    if (escaped == 'B') return state(State::Kind::kNoWordEdge);
    if (escaped == 'A') return state(State::Kind::kBegin);
    if (escaped == 'Z') return state(State::Kind::kEnd);
    const std::optional<Bytes> bytes = escaped_set(escaped);
    if (!bytes) return refuse(std::string("'\\") + escaped + "'");
    return set(*bytes);
  }

  // What an escape stands for, in brackets or without.
  static std::optional<Bytes> escaped_set(char c) {
    if (std::optional<Bytes> named = named_set(c)) return named;
    if (c == 't') return range('\t', '\t');
    if (c == 'n') return range('\n', '\n');
    if (c == 'r') return range('\r', '\r');
    if (is_word(c)) return std::nullopt;
    return range(static_cast<unsigned char>(c), static_cast<unsigned char>(c));
  }

  std::optional<Node> bracketed() {
    const bool negated = skip("^");
    Bytes out;
    for (bool first = true; done() || peek() != ']' || first; first = false) {
      if (done()) return refuse("a '[' without its ']'");
      const std::optional<Bytes> low = in_brackets();
      if (!low) return refuse("an escape in brackets that is not read");
      const bool ranged =
          low->count() == 1 && at_ + 1 < text_.size() && peek() == '-' && text_[at_ + 1] != ']';
      if (!ranged) {
        out |= *low;
        continue;
      }
      ++at_;
      const std::optional<Bytes> high = in_brackets();
      const size_t from = low->_Find_first();
      if (!high || high->count() != 1 || high->_Find_first() < from)
        return refuse("a range in brackets whose ends are not in order");
      out |=
          range(static_cast<unsigned char>(from), static_cast<unsigned char>(high->_Find_first()));
    }
    skip("]");
    return set(negated ? ~out : out);
  }

  std::optional<Bytes> in_brackets() {
    const char c = text_[at_++];
    if (c != '\\') return range(static_cast<unsigned char>(c), static_cast<unsigned char>(c));
    if (done()) return std::nullopt;
    return escaped_set(text_[at_++]);
  }

  std::optional<Node> group(int depth, std::optional<State::Kind> ahead) {
    std::optional<Node> inner = alternatives(depth + 1);
    if (!inner) return std::nullopt;
    if (!skip(")")) return refuse("a '(' without its ')'");
    if (!ahead) return inner;
    Node out{.kind = Node::Kind::kAhead, .state = {.kind = *ahead}};
    out.parts.push_back(std::move(*inner));
    return out;
  }

  std::optional<Node> refuse(std::string what) {
    wrong(std::move(what));
    return std::nullopt;
  }
  static std::optional<Node> state(State::Kind kind) {
    return Node{.kind = Node::Kind::kState, .state = {.kind = kind}};
  }
  std::optional<Node> set(const Bytes& bytes) {
    const auto found = std::ranges::find(out_.sets_, bytes);
    const auto index = static_cast<uint16_t>(found - out_.sets_.begin());
    if (found == out_.sets_.end()) out_.sets_.push_back(bytes);
    if (out_.sets_.size() > NamePattern::kProgramMax) return refuse("too many classes");
    return Node{.kind = Node::Kind::kState, .state = {.kind = State::Kind::kBytes, .bytes = index}};
  }

  int32_t add(const State& state) {
    if (out_.states_.size() >= NamePattern::kProgramMax) {
      wrong("more than " + std::to_string(NamePattern::kProgramMax) + " states");
      return 0;
    }
    out_.states_.push_back(state);
    return static_cast<int32_t>(out_.states_.size()) - 1;
  }

  // The node's states, after which `next` comes; returns the first.
  int32_t emit(const Node& node, int32_t next) {
    // Repetitions of what has no states count too.
    if (++emitted_ > 4 * NamePattern::kProgramMax) wrong("too many repetitions");
    if (!error_.empty()) return 0;
    switch (node.kind) {
      case Node::Kind::kState: {
        State state = node.state;
        state.next = next;
        return add(state);
      }
      case Node::Kind::kSequence:
        for (size_t i = node.parts.size(); i-- > 0;) next = emit(node.parts[i], next);
        return next;
      case Node::Kind::kChoice: {
        int32_t first = emit(node.parts.back(), next);
        for (size_t i = node.parts.size() - 1; i-- > 0;)
          first =
              add({.kind = State::Kind::kSplit, .next = emit(node.parts[i], next), .other = first});
        return first;
      }
      case Node::Kind::kAhead:
        return add({.kind = node.state.kind,
                    .next = next,
                    .other = emit(node.parts[0], add({.kind = State::Kind::kMatch}))});
      case Node::Kind::kRepeat:
        break;
    }
    if (node.max < 0) {
      const int32_t loop = add({.kind = State::Kind::kSplit, .other = next});
      const int32_t body = emit(node.parts[0], loop);
      out_.states_[static_cast<size_t>(loop)].next = body;
      next = loop;
    }
    for (int i = node.min; i < node.max && error_.empty(); ++i)
      next = add({.kind = State::Kind::kSplit, .next = emit(node.parts[0], next), .other = next});
    for (int i = 0; i < node.min && error_.empty(); ++i) next = emit(node.parts[0], next);
    return next;
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t emitted_ = 0;
  std::string error_;
  NamePattern out_;
};

Result<NamePattern> NamePattern::compile(std::string_view pattern) {
  return NamePatternCompiler(pattern).compile();
}

bool NamePattern::matches_begin(std::string_view name) const {
  Run run{.name = name};
  return match(run, first_, 0);
}

bool NamePattern::holds(Run& run, const State& state, size_t at) const {
  const std::string_view name = run.name;
  switch (state.kind) {
    case State::Kind::kBegin:
      return at == 0;
    case State::Kind::kEnd:
      return at == name.size() || (at + 1 == name.size() && name[at] == '\n');
    case State::Kind::kWordEdge:
    case State::Kind::kNoWordEdge: {
      const bool edge =
          (at > 0 && is_word(name[at - 1])) != (at < name.size() && is_word(name[at]));
      return edge == (state.kind == State::Kind::kWordEdge);
    }
    case State::Kind::kAhead:
    case State::Kind::kNoAhead:
      return match(run, state.other, at) == (state.kind == State::Kind::kAhead);
    default:
      return true;
  }
}

// The states that are alive before each byte, each once.
bool NamePattern::match(Run& run, int32_t state, size_t at) const {
  std::vector<int32_t> alive = {state}, after;
  std::vector<bool> seen;
  for (;; ++at) {
    seen.assign(states_.size(), false);
    after.clear();
    // `alive` grows by what its states lead to without a byte.
    for (size_t i = 0; i < alive.size(); ++i) {
      const auto index = static_cast<size_t>(alive[i]);
      if (seen[index]) continue;
      seen[index] = true;
      if (++run.steps > kStepsMax) return false;
      const State& s = states_[index];
      if (s.kind == State::Kind::kMatch) return true;
      if (s.kind == State::Kind::kBytes) {
        if (at < run.name.size() && sets_[s.bytes].test(static_cast<unsigned char>(run.name[at])))
          after.push_back(s.next);
        continue;
      }
      if (!holds(run, s, at)) continue;
      alive.push_back(s.next);
      if (s.kind == State::Kind::kSplit) alive.push_back(s.other);
    }
    if (after.empty()) return false;
    std::swap(alive, after);
  }
}

}  // namespace weir
