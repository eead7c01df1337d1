// GrammarCache: what compiling grammars lately has come to: automata, which requests share, and
// refusals, so that a grammar that costs all of its budget costs it once.
//
// Threads: any, at once. Requests for the same grammar wait for the first that compiles it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "grammar/automaton.h"
#include "grammar/interrupt.h"
#include "grammar/source.h"

namespace weir::grammar {

// Whose automata are shared: by all requests with the same source, on whatever thread they are
// matched. The last to let go frees.
class GrammarCache {
 public:
  using Compiled = Result<std::shared_ptr<const Automaton>>;
  // What is done to an automaton that was just compiled; the same for all of a cache. It may stop
  // halfway once the interrupt has fired.
  using Finish = std::function<void(Automaton&, Interrupt*)>;

  // Small grammars are compiled faster than a longer list of them would be worth.
  static constexpr size_t kEntriesMax = 256;
  // Refusals are small. Their share of the bytes is what is left for the sources of large ones.
  static constexpr size_t kRefusalsMax = 4096, kRefusalsShare = 16;

  // Beyond either limit what was not asked for longest is dropped.
  explicit GrammarCache(size_t bytes_max, size_t entries_max = kEntriesMax,
                        size_t refusals_max = kRefusalsMax)
      : made_(bytes_max - bytes_max / kRefusalsShare, entries_max),
        refused_(bytes_max / kRefusalsShare, refusals_max) {}

  // kCancelled, which is no refusal, if `interrupt` has fired: the request has been given up, or
  // the compilation takes longer than it may here, also if another thread does it.
  Compiled get(const GrammarSource& source, const Finish& finish = {},
               Interrupt* interrupt = nullptr);

  size_t bytes() const;
  uint64_t hits() const;
  // That were begun.
  uint64_t compilations() const;

 private:
  struct Entry {
    uint64_t hash = 0;
    GrammarSource source;
    Compiled compiled;
    size_t bytes = 0;
  };
  // What was asked for lately of one kind.
  class Shelf {
   public:
    Shelf(size_t bytes_max, size_t entries_max)
        : bytes_max_(bytes_max), entries_max_(entries_max) {}
    const Compiled* find(uint64_t hash, const GrammarSource& source);
    void add(Entry entry);
    size_t bytes() const { return bytes_; }

   private:
    void drop_oldest();

    const size_t bytes_max_, entries_max_;
    std::list<Entry> entries_;  // The latest first.
    std::unordered_multimap<uint64_t, std::list<Entry>::iterator> by_hash_;
    size_t bytes_ = 0;
  };
  // A compilation that runs.
  struct Flight {
    const GrammarSource* source = nullptr;  // Lives as long as this is not over.
    bool limited = false;                   // By the time that it may take.
    bool over = false;
    bool postponed = false;            // It took longer.
    std::optional<Compiled> compiled;  // None if it was interrupted.
  };

  // REQUIRES, of each of these: the mutex is held by `lock`, or by the caller.
  std::optional<Compiled> find(uint64_t hash, const GrammarSource& source);
  std::optional<Compiled> wait_for(std::unique_lock<std::mutex>& lock,
                                   std::shared_ptr<Flight> flight, Interrupt* interrupt);
  void keep(uint64_t hash, const GrammarSource& source, const Compiled& compiled);

  mutable std::mutex mutex_;
  std::condition_variable landed_;
  Shelf made_, refused_;
  std::vector<std::shared_ptr<Flight>> flights_;  // As many as threads compile.
  uint64_t hits_ = 0, compilations_ = 0;
};

}  // namespace weir::grammar
