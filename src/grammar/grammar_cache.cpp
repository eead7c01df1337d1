#include "grammar/grammar_cache.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>

namespace weir::grammar {

namespace {

// How often a thread that waits for another one's compilation looks whether its own request is
// still wanted.
constexpr auto kLook = std::chrono::milliseconds(20);

uint64_t hash_of(const GrammarSource& source) {
  uint64_t hash = std::hash<std::string>()(source.text) + static_cast<uint64_t>(source.kind);
  for (const std::string& text : source.choices)
    hash = (hash ^ std::hash<std::string>()(text)) * 0x9e3779b97f4a7c15;
  return hash;
}

size_t bytes_of(const GrammarSource& source) {
  size_t sum = source.text.size();
  for (const std::string& text : source.choices) sum += text.size() + sizeof text;
  return sum;
}

}  // namespace

const GrammarCache::Compiled* GrammarCache::Shelf::find(uint64_t hash,
                                                        const GrammarSource& source) {
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second->source != source) continue;
    entries_.splice(entries_.begin(), entries_, it->second);
    return &it->second->compiled;
  }
  return nullptr;
}

void GrammarCache::Shelf::add(Entry entry) {
  if (entry.bytes > bytes_max_) return;
  bytes_ += entry.bytes;
  const uint64_t hash = entry.hash;
  entries_.push_front(std::move(entry));
  by_hash_.emplace(hash, entries_.begin());
  while (entries_.size() > entries_max_ || bytes_ > bytes_max_) drop_oldest();
}

void GrammarCache::Shelf::drop_oldest() {
  const auto oldest = std::prev(entries_.end());
  const auto [begin, end] = by_hash_.equal_range(oldest->hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second != oldest) continue;
    by_hash_.erase(it);
    break;
  }
  bytes_ -= oldest->bytes;
  entries_.pop_back();
}

std::optional<GrammarCache::Compiled> GrammarCache::find(uint64_t hash,
                                                         const GrammarSource& source) {
  for (Shelf* const shelf : {&made_, &refused_})
    if (const Compiled* const found = shelf->find(hash, source)) {
      ++hits_;
      return *found;
    }
  return std::nullopt;
}

// None: the flight has no result, and another one may begin.
std::optional<GrammarCache::Compiled> GrammarCache::wait_for(std::unique_lock<std::mutex>& lock,
                                                             std::shared_ptr<Flight> flight,
                                                             Interrupt* interrupt) {
  const bool limited = interrupt && interrupt->limited();
  while (!flight->over) {
    if (interrupt && interrupt->stopped()) return interruption();
    // It may take long, and this thread has other things to do.
    if (limited && !flight->limited) break;
    landed_.wait_for(lock, kLook);
  }
  if (flight->compiled) return flight->compiled;
  if (!limited || (flight->over && !flight->postponed)) return std::nullopt;
  interrupt->postpone();
  return interruption();
}

void GrammarCache::keep(uint64_t hash, const GrammarSource& source, const Compiled& compiled) {
  const size_t own = compiled ? (*compiled)->memory_bytes() : compiled.error().message.size();
  Shelf& shelf = compiled ? made_ : refused_;
  shelf.add({hash, source, compiled, own + bytes_of(source) + sizeof(Entry)});
}

GrammarCache::Compiled GrammarCache::get(const GrammarSource& source, const Finish& finish,
                                         Interrupt* interrupt) {
  const uint64_t hash = hash_of(source);
  std::unique_lock lock(mutex_);
  while (true) {
    if (auto found = find(hash, source)) return *found;
    const auto other =
        std::ranges::find_if(flights_, [&](const auto& open) { return *open->source == source; });
    if (other == flights_.end()) break;
    if (const auto compiled = wait_for(lock, *other, interrupt)) return *compiled;
  }
  if (interrupt) interrupt->begin();
  if (interrupt && interrupt->fired()) return interruption();
  const auto flight = std::make_shared<Flight>();
  flight->source = &source;
  flight->limited = interrupt && interrupt->limited();
  flights_.push_back(flight);
  ++compilations_;
  lock.unlock();

  Compiled compiled = interruption();
  auto automaton = compile(source, interrupt);
  if (automaton && finish) finish(**automaton, interrupt);
  const bool interrupted = interrupt && interrupt->fired();
  if (!interrupted) {
    if (automaton)
      compiled = std::shared_ptr<const Automaton>(std::move(*automaton));
    else
      compiled = tl::unexpected<Error>(std::move(automaton).error());
  }

  lock.lock();
  std::erase(flights_, flight);
  flight->over = true;
  flight->postponed = interrupt && interrupt->postponed();
  if (!interrupted) {
    flight->compiled = compiled;
    keep(hash, source, compiled);
  }
  landed_.notify_all();
  return compiled;
}

size_t GrammarCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return made_.bytes() + refused_.bytes();
}

uint64_t GrammarCache::hits() const {
  const std::lock_guard lock(mutex_);
  return hits_;
}

uint64_t GrammarCache::compilations() const {
  const std::lock_guard lock(mutex_);
  return compilations_;
}

}  // namespace weir::grammar
