#include "ssd/read_ahead.h"

#include <algorithm>

namespace weir::ssd {

namespace {

// Slots that may hold what a prompt's next layer will ask for: an eighth.
constexpr int64_t kPromptShare = 8;
// Guesses in flight: each 2 MiB read that is on its way delays the next demand by a
// millisecond.
constexpr int32_t kGuessesInFlight = 2;

}  // namespace

ReadAhead::ReadAhead(const ExpertCatalogue& catalogue, ExpertCache& cache, Prefetcher& prefetcher,
                     SlotReads& reads, int64_t slots, StoreStats& stats)
    : catalogue_(catalogue),
      cache_(cache),
      prefetcher_(prefetcher),
      reads_(reads),
      stats_(stats),
      guessed_(static_cast<size_t>(slots), false),
      prompt_slots_max_(static_cast<int32_t>(slots / kPromptShare)) {}

int64_t ReadAhead::bytes_of(ExpertKey key) const {
  return static_cast<int64_t>(catalogue_.slot_bytes(catalogue_.layer(key.layer).class_index));
}

void ReadAhead::asked(int32_t index) {
  const auto i = static_cast<size_t>(index);
  if (!guessed_[i]) return;
  guessed_[i] = false;
  const ExpertKey key = reads_.key(index);
  prefetcher_.used(key, bytes_of(key), reads_.reading(index));
  if (reads_.reading(index)) --guesses_reading_;
}

void ReadAhead::replaced(int32_t index) {
  const auto i = static_cast<size_t>(index);
  if (!guessed_[i]) return;
  guessed_[i] = false;
  prefetcher_.wasted(reads_.key(index), bytes_of(reads_.key(index)));
}

void ReadAhead::settled(int32_t index) {
  if (!guessed_[static_cast<size_t>(index)]) return;
  --guesses_reading_;
  if (reads_.failed(index)) replaced(index);
}

void ReadAhead::take_news() {
  for (const ExpertKey& key : prefetcher_.likely()) cache_.protect(key);
  for (const ExpertKey& key : prefetcher_.contradicted()) {
    const int32_t index = cache_.slot_of(key);
    if (index < 0 || !guessed_[static_cast<size_t>(index)] || !reads_.drop(index)) continue;
    guessed_[static_cast<size_t>(index)] = false;
    --guesses_reading_;
    prefetcher_.dropped(key);
    cache_.unpin(index);
    cache_.discard(index);
  }
}

void ReadAhead::plan_prompt(int32_t layer, size_t experts) {
  const bool all = 10 * experts >= 9 * static_cast<size_t>(catalogue_.experts());
  next_ = {.layer = all && layer + 1 < catalogue_.layers() ? layer + 1 : -1, .expert = 0};
  prompt_slots_ = 0;
}

void ReadAhead::read(int32_t layer) {
  read_prompt(std::max(layer, 0));
  read_guesses(std::max(layer, 0));
}

void ReadAhead::begin(int32_t index, ExpertKey key, ReadClass read_class) {
  replaced(index);
  reads_.begin(index, key);
  for (int part = 0; part < kParts; ++part) reads_.add(index, part, read_class);
}

// In the order of the file, while the layer before is computed, and attention.
void ReadAhead::read_prompt(int32_t layer) {
  if (next_.layer < 0) return;
  while (reads_.reading() < kReadingOfPrompts && !reads_.stalled() && reads_.can_begin()) {
    if (next_.expert == catalogue_.experts() || prompt_slots_ == prompt_slots_max_) {
      next_.layer = -1;
      return;
    }
    const ExpertKey key = next_;
    ++next_.expert;
    if (cache_.slot_of(key) >= 0) {
      cache_.protect(key);
      continue;
    }
    const int32_t index = cache_.place(key, layer);
    if (index < 0) return;
    cache_.protect(key);
    begin(index, key, ReadClass::kPrefill);
    ++prompt_slots_;
    stats_.read_ahead.add();
  }
}

// Spare depth only: while a layer waits for the disk, a guess would make it wait longer.
void ReadAhead::read_guesses(int32_t layer) {
  while (guesses_reading_ < kGuessesInFlight && !reads_.demand_outstanding() && !reads_.stalled() &&
         reads_.can_begin()) {
    Prefetcher::Guess guess;
    if (!prefetcher_.next([&](ExpertKey key) { return cache_.slot_of(key) < 0; }, guess)) return;
    const int32_t index = cache_.place_speculative(guess.key, layer, guess.probability);
    if (index < 0) continue;
    begin(index, guess.key, ReadClass::kSpeculative);
    guessed_[static_cast<size_t>(index)] = true;
    ++guesses_reading_;
    prefetcher_.issued(guess, bytes_of(guess.key));
  }
}

}  // namespace weir::ssd
