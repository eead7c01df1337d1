// GrammarSource: a constraint as a client writes it; compile() makes it an automaton, GrammarCache
// keeps those made lately.
//
// Threads: compile() is a pure function; a GrammarCache may be used by any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "sample/grammar/automaton.h"

namespace weir::sample::grammar {

struct GrammarSource {
  enum class Kind : uint8_t {
    kJsonObject,  // Any JSON object.
    kJsonSchema,
    kRegex,
    kChoice,   // One of `choices`.
    kGrammar,  // GBNF, or Lark if nothing is defined by `::=`.
    kGbnf,
    kParts,  // Put together (parts.h).
  };
  Kind kind = Kind::kJsonObject;
  std::string text;
  std::vector<std::string> choices;

  bool operator==(const GrammarSource&) const = default;
};

Result<std::unique_ptr<Automaton>> compile(const GrammarSource& source);
// Whether the notation is understood; compiling may still find it too complex.
Result<void> check_source(const GrammarSource& source);

// Whose automata are shared: by all requests with the same source, on whatever thread they are
// matched. The last to let go frees.
class GrammarCache {
 public:
  using Finish = std::function<void(Automaton&)>;

  // Small grammars are compiled faster than a longer list of them would be worth.
  static constexpr size_t kEntriesMax = 256;

  // Beyond either limit what was not asked for longest is dropped.
  explicit GrammarCache(size_t bytes_max, size_t entries_max = kEntriesMax)
      : entries_max_(entries_max), bytes_max_(bytes_max) {}

  // `finish`: what is done to an automaton that was just compiled; the same for all of a cache.
  Result<std::shared_ptr<const Automaton>> get(const GrammarSource& source,
                                               const Finish& finish = {});

  size_t bytes() const;
  uint64_t hits() const;

 private:
  struct Entry {
    uint64_t hash = 0;
    GrammarSource source;
    std::shared_ptr<const Automaton> automaton;
    size_t bytes = 0;
  };

  // REQUIRES: the mutex is held.
  std::shared_ptr<const Automaton> find(uint64_t hash, const GrammarSource& source);
  void drop_oldest();

  const size_t entries_max_, bytes_max_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // The latest first.
  std::unordered_multimap<uint64_t, std::list<Entry>::iterator> by_hash_;
  size_t bytes_ = 0;
  uint64_t hits_ = 0;
};

}  // namespace weir::sample::grammar
