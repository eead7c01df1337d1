#include "ssd/expert_store.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/trace.h"

namespace weir::ssd {

namespace {

using std::chrono::steady_clock;

// Of prompts: experts that take the place of others worth more, on their way through; as many are
// read as are computed.
constexpr int32_t kPassingMax = 2 * ReadAhead::kReadingOfPrompts;
// How fast the usual wait of a layer follows: the last 8 steps or so.
constexpr double kWaitShare = 0.125;
// One wait for the disk; a leader that has nothing then begins another.
constexpr auto kWaitStep = std::chrono::milliseconds(100);

std::vector<int32_t> classes_of_layers(const ExpertCatalogue& catalogue) {
  std::vector<int32_t> classes;
  for (int32_t l = 0; l < catalogue.layers(); ++l)
    classes.push_back(catalogue.layer(l).class_index);
  return classes;
}

}  // namespace

Result<std::unique_ptr<ExpertStore>> ExpertStore::create(const ExpertCatalogue& catalogue,
                                                         std::unique_ptr<Disk> disk,
                                                         const StoreOptions& options) {
  WEIR_ASSIGN(StorePlan plan, plan_store(catalogue, options.memory, options.top_k));
  for (const std::string& path : catalogue.files()) {
    WEIR_ASSIGN(const int32_t number, disk->open_file(path));
    CHECK(number == &path - catalogue.files().data());
  }
  WEIR_ASSIGN(std::unique_ptr<SlotMemory> memory, SlotMemory::create(catalogue, plan));
  return std::unique_ptr<ExpertStore>(
      new ExpertStore(catalogue, std::move(disk), options, std::move(plan), std::move(memory)));
}

ExpertStore::ExpertStore(const ExpertCatalogue& catalogue, std::unique_ptr<Disk> disk,
                         const StoreOptions& options, StorePlan plan,
                         std::unique_ptr<SlotMemory> memory)
    : catalogue_(catalogue),
      options_(options),
      plan_(std::move(plan)),
      cache_(catalogue.layers(), catalogue.experts(), classes_of_layers(catalogue),
             plan_.slots_of_class),
      oracle_(catalogue.layers(), catalogue.experts(), options.top_k, classes_of_layers(catalogue)),
      prefetcher_(catalogue.layers(), catalogue.experts(), options.top_k, options.sequences_max,
                  options.prefetch),
      memory_(std::move(memory)),
      reads_(catalogue, std::move(disk), options.queue, *memory_, plan_.slots, plan_.staging,
             stats_),
      ahead_(catalogue, cache_, prefetcher_, reads_, plan_.slots, stats_) {
  const auto experts = static_cast<size_t>(catalogue.experts());
  failures_.resize(experts);
  demands_.resize(experts);
  expected_.resize(experts);
  for (std::vector<int32_t>* list : {&order_, &given_, &retiring_, &expected_slots_})
    list->reserve(experts);
}

ExpertWave ExpertStore::make_wave() const {
  ExpertWave wave;
  const auto experts = static_cast<size_t>(catalogue_.experts());
  wave.unpack.reserve(reads_.unpacks_max());
  wave.check.reserve(reads_.checks_max());
  wave.activate.reserve(experts);
  wave.down.reserve(experts);
  wave.failed.reserve(experts);
  return wave;
}

void ExpertStore::adjust_memory() {
  CHECK(layer_ < 0 && expected_layer_ < 0);
  memory_->update(cache_);
  int64_t usable = 0;
  for (int32_t cls = 0; cls < catalogue_.classes(); ++cls) usable += cache_.usable(cls);
  stats_.slots_usable.set(static_cast<double>(usable));
  stats_.slots_shed.set(static_cast<double>(memory_->slots_shed()));
}

void ExpertStore::begin_step(int32_t generated_rows) {
  adjust_memory();
  step_begin_ = steady_clock::now();
  step_stall_ns_ = step_wait_ns_ = 0;
  step_layers_ = 0;
  step_tokens_ = generated_rows;
  step_has_prompts_ = false;
  doubt_.clear();  // What has landed since the last step's end was not computed with.
  if (generated_rows > 0) prefetcher_.begin_step();  // Prompts go by between tokens.
  stats_.steps.add();
  stats_.tokens.add(static_cast<uint64_t>(generated_rows));
}

void ExpertStore::end_step() {
  take_settled(reads_.check_files());
  const double seconds = std::chrono::duration<double>(steady_clock::now() - step_begin_).count();
  const double stalled = static_cast<double>(step_stall_ns_) * 1e-9;
  stats_.stall_ns.add(static_cast<uint64_t>(step_stall_ns_));
  stats_.step_ns.add(static_cast<uint64_t>(seconds * 1e9));
  if (step_tokens_ > 1 && !step_has_prompts_ && step_layers_ > 0)
    layer_wait_ns_ +=
        kWaitShare * (static_cast<double>(step_wait_ns_) / step_layers_ - layer_wait_ns_);
  if (step_tokens_ == 0) return;  // Of prompts alone: says nothing of what generated tokens need.
  stats_.stall.observe(stalled);
  // The pace of a step that also had prompts is not that of generated tokens.
  prefetcher_.step_done(seconds, stalled, step_has_prompts_ ? 0 : step_tokens_);
  cache_.advance();
}

// Two groups cost a layer c: o_proj once more, which takes as long for half of the rows, since its
// weights are read again, and a few barriers. They let the disk begin earlier, by the time g that
// the second group computes: attention, norm and routing, and c. Of that the layer gains no more
// than it would have waited, w, and no more than reads for the first group last; these are about
// half of all, and all last at least w. So min(w / 2, g) - c, and as g > c it pays where w / 2 > c.
// (Where nothing is absent two groups make a step of 8 rows 5 % longer; bench/README.md.)
bool ExpertStore::wants_early_reads(std::chrono::nanoseconds cost) const {
  if (options_.early_reads != EarlyReads::kAuto) return options_.early_reads == EarlyReads::kAlways;
  return layer_wait_ns_ / 2 > static_cast<double>(cost.count());
}

void ExpertStore::expect(int32_t layer, std::span<const int32_t> experts) {
  CHECK(layer_ < 0 && (expected_layer_ < 0 || expected_layer_ == layer));
  expected_layer_ = layer;
  take_settled(reads_.poll());
  // All that is there is pinned before any slot changes hands.
  for (const int32_t expert : experts) {
    if (expert < 0 || expected_[static_cast<size_t>(expert)]) continue;
    expected_[static_cast<size_t>(expert)] = true;
    const ExpertKey key{layer, expert};
    const int32_t index = cache_.slot_of(key);
    ask(key, index, /*generated=*/true);
    if (index < 0) {
      stats_.early.add();
      continue;
    }
    cache_.pin(index);
    expected_slots_.push_back(index);
    expected_reads_ |= reads_.reading(index);
  }
  start_expected(layer, experts);
  if (expected_reads_ && !early_since_) early_since_ = steady_clock::now();
  reads_.submit();
}

// What finds no room waits for the layer's run.
void ExpertStore::start_expected(int32_t layer, std::span<const int32_t> experts) {
  const size_t begin = expected_slots_.size();
  for (const int32_t expert : experts) {
    const ExpertKey key{layer, expert};
    if (expert < 0 || cache_.slot_of(key) >= 0) continue;
    const int32_t index = reads_.can_begin() ? cache_.place(key, layer) : -1;
    expected_wait_ |= index < 0;
    if (index < 0) break;
    begin_read(index, key);
    expected_slots_.push_back(index);
    expected_reads_ = true;
  }
  for (int part = 0; part < kParts; ++part)
    for (size_t i = begin; i < expected_slots_.size(); ++i)
      reads_.add(expected_slots_[i], part, ReadClass::kDemand);
}

// The layer's demands are held: they have pins of their own.
void ExpertStore::end_expecting() {
  for (const int32_t index : expected_slots_) release(index);
  expected_slots_.clear();
  std::fill(expected_.begin(), expected_.end(), false);
  expected_layer_ = -1;
  expected_wait_ = expected_reads_ = false;
}

// Until now some rows' experts were being read while others' were not known.
void ExpertStore::end_early() {
  if (early_since_) early_ns_ = (steady_clock::now() - *early_since_).count();
  early_since_.reset();
}

// What the layer has waited, or would have. Where it did not wait at all, it is not known how much
// of what was read before would have been hidden anyway: half of it.
void ExpertStore::count_wait() {
  ++step_layers_;
  step_wait_ns_ += stall_ns_ > 0 ? stall_ns_ + early_ns_ : early_ns_ / 2;
  step_stall_ns_ += stall_ns_;
  stats_.early_ns.add(static_cast<uint64_t>(early_ns_));
  stall_ns_ = early_ns_ = 0;
}

void ExpertStore::begin_layer(int32_t layer, std::span<const ExpertDemand> demands,
                              std::span<const RoutedRow> rows) {
  CHECK(layer_ < 0 && demands.size() <= demands_.size());
  CHECK(expected_layer_ < 0 || expected_layer_ == layer);
  end_early();
  layer_ = layer;
  asked_ = demands;
  generated_ = std::ranges::any_of(
      demands, [](const ExpertDemand& asked) { return asked.generated_rows > 0; });
  int32_t prompt_choices = 0;
  for (const ExpertDemand& asked : demands) prompt_choices += asked.prompt_rows;
  prompt_rows_ = (prompt_choices + options_.top_k - 1) / options_.top_k;
  step_has_prompts_ |= prompt_rows_ > 0;
  order_.clear();
  next_waiting_ = 0;
  first_wave_ = true;
  unfinished_ = static_cast<int32_t>(demands.size());
  oracle_.begin_visit();
  take_settled(reads_.poll());
  for (size_t i = 0; i < demands.size(); ++i) hold(i);
  prefetcher_.disk_busy(!order_.empty() || expected_reads_);
  end_expecting();
  count_union(demands);
  if (!generated_) ahead_.plan_prompt(layer, demands.size());
  start_waiting();
  for (const RoutedRow& row : rows) {
    const std::span<const int32_t> experts = experts_of(row);
    if (row.prompt)
      prefetcher_.routed_prompt(layer, row.sequence, experts);
    else
      prefetcher_.routed(layer, row.sequence, experts);
  }
  ahead_.take_news();
}

OracleWindow::Rates ExpertStore::oracle() const {
  // What memory has come, or was given back, is shared out among the classes as planned.
  const double usable = stats_.slots_usable.value() / static_cast<double>(plan_.slots);
  std::vector<int32_t> slots;
  for (const int32_t planned : plan_.slots_of_class)
    slots.push_back(static_cast<int32_t>(usable * planned + 0.5));
  return oracle_.replay(slots);
}

void ExpertStore::count_union(std::span<const ExpertDemand> demands) {
  if (step_tokens_ == 0) return;
  const auto size = std::min<size_t>(std::bit_width(static_cast<uint32_t>(step_tokens_)) - 1,
                                     StoreStats::kBatchSizes - 1);
  const auto experts = std::ranges::count_if(
      demands, [](const ExpertDemand& asked) { return asked.generated_rows > 0; });
  stats_.layer_runs[size].add();
  stats_.layer_experts[size].add(static_cast<uint64_t>(experts));
}

// Pins what is there, or on its way, for the layer's run.
void ExpertStore::hold(size_t demand) {
  const ExpertDemand& asked = asked_[demand];
  const ExpertKey key{layer_, asked.expert};
  const int32_t index = cache_.slot_of(key);
  const bool generated = asked.generated_rows > 0;
  demands_[demand] = {.state = index < 0 ? State::kWaiting : State::kHeld, .slot = index};
  if (generated) cache_.touch(key, ExpertCache::decode_weight(asked.generated_rows));
  if (asked.prompt_rows > 0) cache_.touch_prompt(key, asked.prompt_rows, prompt_rows_);
  // What was expected has been counted.
  if (!expected_[static_cast<size_t>(asked.expert)]) ask(key, index, generated);
  if (index < 0)
    order_.push_back(static_cast<int32_t>(demand));
  else
    cache_.pin(index);
}

// An expert's first demand in this step: what is on its way already becomes a demand's.
void ExpertStore::ask(ExpertKey key, int32_t index, bool generated) {
  oracle_.record(key, index >= 0 && !reads_.reading(index), generated);
  if (index < 0) {
    (generated ? stats_.absent : stats_.prompt_absent).add();
    if (generated) prefetcher_.missed(key);
    return;
  }
  const bool reading = reads_.reading(index);
  (!generated ? stats_.prompt_ready : reading ? stats_.in_flight : stats_.ready).add();
  if (reading) reads_.promote(index, generated ? ReadClass::kDemand : ReadClass::kPrefill);
  ahead_.asked(index);
}

// With two pins: for being read, and for the layer that asked.
void ExpertStore::begin_read(int32_t index, ExpertKey key) {
  ahead_.replaced(index);
  reads_.begin(index, key);
  cache_.pin(index);
}

std::span<const int32_t> ExpertStore::experts_of(const RoutedRow& row) const {
  const int32_t* const end = row.experts + options_.top_k;
  return {row.experts, std::find(row.experts, end, -1)};
}

void ExpertStore::looked_ahead(int32_t layer, std::span<const RoutedRow> rows) {
  for (const RoutedRow& row : rows) prefetcher_.looked_ahead(layer, row.sequence, experts_of(row));
  ahead_.take_news();
}

// A prompt asks for all experts of a layer, one after another, through as few slots as keep the
// disk busy; generated tokens ask for what they all need at once.
bool ExpertStore::can_start() const {
  return reads_.can_begin() && (generated_ || reads_.reading() < ReadAhead::kReadingOfPrompts);
}

// A slot for a demand, or -1. What only prompts ask for takes the place of what is worth less;
// where there is none it goes through a few slots that it takes from others.
int32_t ExpertStore::place(size_t demand, ExpertKey key) {
  if (asked_[demand].generated_rows > 0) return cache_.place(key, layer_);
  const int32_t index = cache_.place_prompt(key, layer_);
  if (index >= 0 || passing_ == kPassingMax) return index;
  const int32_t taken = cache_.place(key, layer_);
  if (taken >= 0) {
    demands_[demand].passing = true;
    ++passing_;
  }
  return taken;
}

// All first parts before any second one: an expert begins with its first.
void ExpertStore::start_waiting() {
  const size_t begin = next_waiting_;
  for (; has_waiting() && can_start(); ++next_waiting_) {
    const auto demand = static_cast<size_t>(order_[next_waiting_]);
    const ExpertKey key{layer_, asked_[demand].expert};
    const int32_t index = place(demand, key);
    if (index < 0) break;
    begin_read(index, key);
    demands_[demand].state = State::kHeld;
    demands_[demand].slot = index;
  }
  const ReadClass read_class = generated_ ? ReadClass::kDemand : ReadClass::kPrefill;
  for (int part = 0; part < kParts; ++part)
    for (size_t i = begin; i < next_waiting_; ++i)
      reads_.add(demands_[static_cast<size_t>(order_[i])].slot, part, read_class);
}

void ExpertStore::pump() {
  take_settled(reads_.poll());
  if (early_since_ && !reads_.demand_outstanding()) end_early();
  if (layer_ >= 0) start_waiting();
  const bool waiting = layer_ < 0 ? expected_wait_ : has_waiting();
  if (!waiting) ahead_.read(layer_);
  reads_.submit();
}

void ExpertStore::take_settled(std::span<const int32_t> slots) {
  for (const int32_t index : slots) {
    ahead_.settled(index);
    release(index);
  }
  drop_distrusted();
}

// Those that are in use go when they are not; their demands fail.
void ExpertStore::drop_distrusted() {
  if (!reads_.take_distrusted()) return;
  if (std::string why = reads_.take_doubt(); !why.empty()) doubt_ = std::move(why);
  for (int32_t index = 0; index < cache_.slots(); ++index) {
    if (!cache_.holds_expert(index) || reads_.reading(index) || !reads_.failed(index)) continue;
    stats_.distrusted_experts.add();
    if (cache_.pins(index) == 0) cache_.discard(index);
  }
}

// One pin less. What could not be read is not kept; while the kernel holds it, it stays pinned.
void ExpertStore::release(int32_t index) {
  cache_.unpin(index);
  if (reads_.failed(index) && !reads_.reading(index) && cache_.pins(index) == 0)
    cache_.discard(index);
}

void ExpertStore::retire(std::vector<int32_t>& demands) {
  for (const int32_t demand : demands) {
    if (demands_[static_cast<size_t>(demand)].passing) --passing_;
    release(demands_[static_cast<size_t>(demand)].slot);
  }
  demands.clear();
}

void ExpertStore::next_wave(ExpertWave& wave) {
  wave.clear();
  wave.first = std::exchange(first_wave_, false);
  take_settled(reads_.finish());
  retire(retiring_);
  std::swap(retiring_, given_);
  while (true) {
    pump();
    collect(wave);
    wave.last = unfinished_ == 0;
    // An empty wave lets go of what the last one held.
    if (wave.has_work() || wave.last || wave.first || !retiring_.empty()) return;
    await_reads();
  }
}

void ExpertStore::await_reads() {
  const trace::Scope scope(trace::Kind::kWait, "disk");
  CHECK(reads_.reading() > 0);
  const auto begin = steady_clock::now();
  take_settled(reads_.wait(kWaitStep));
  stall_ns_ += (steady_clock::now() - begin).count();
}

// Everything that can be computed once what has landed is unpacked.
void ExpertStore::collect(ExpertWave& wave) {
  reads_.collect(wave);
  for (size_t i = 0; i < asked_.size(); ++i) {
    Demand& demand = demands_[i];
    if (demand.state != State::kHeld && demand.state != State::kActivated) continue;
    if (reads_.failed(demand.slot)) {
      fail_demand(static_cast<int32_t>(i), wave);
      continue;
    }
    if (demand.state == State::kHeld && reads_.there(demand.slot, 0)) {
      demand.state = State::kActivated;
      wave.activate.push_back(static_cast<int32_t>(i));
    }
    if (demand.state != State::kActivated || !reads_.there(demand.slot, 1)) continue;
    demand.state = State::kDone;
    wave.down.push_back(static_cast<int32_t>(i));
    given_.push_back(static_cast<int32_t>(i));
    --unfinished_;
  }
}

void ExpertStore::fail_demand(int32_t demand, ExpertWave& wave) {
  Demand& d = demands_[static_cast<size_t>(demand)];
  d.state = State::kDone;
  failures_[static_cast<size_t>(demand)] = reads_.failure(d.slot);
  wave.failed.push_back(demand);
  given_.push_back(demand);
  --unfinished_;
}

void ExpertStore::end_layer() {
  CHECK(unfinished_ == 0);
  take_settled(reads_.finish());
  retire(retiring_);
  retire(given_);
  cache_.layer_done(layer_);
  count_wait();
  layer_ = -1;
  asked_ = {};
  order_.clear();
  next_waiting_ = 0;
  pump();
}

}  // namespace weir::ssd
