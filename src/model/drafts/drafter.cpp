#include "model/drafts/drafter.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "base/concat.h"
#include "base/dtype.h"
#include "model/decoder.h"

namespace weir::model {

namespace {

constexpr int32_t kPage = kernels::kPageTokens;

}  // namespace

// The head's best row for each row that is wanted.
class Drafter::Sink final : public RowSink {
 public:
  Sink(const kernels::Ops& ops, const Batch& batch, std::span<int32_t> best,
       std::span<float> probabilities)
      : ops_(ops), batch_(batch), best_(best), probabilities_(probabilities) {}

  void on_rows(int32_t wanted, int32_t first, Rows rows, int) override {
    const int32_t row = batch_.wanted[static_cast<size_t>(wanted)].row_begin + first;
    for (int32_t i = 0; i < rows.count; ++i) {
      const float* const logits = rows.row(i).data();
      const int32_t best = std::max(ops_.argmax(logits, rows.width), 0);
      best_[static_cast<size_t>(row + i)] = best;
      probabilities_[static_cast<size_t>(row + i)] =
          std::exp(logits[best] - ops_.log_sum_exp(logits, rows.width));
    }
  }

 private:
  const kernels::Ops& ops_;
  const Batch& batch_;
  std::span<int32_t> best_;
  std::span<float> probabilities_;
};

Drafter::Drafter(DraftSpec spec, const Decoder& target, const kernels::Ops& ops)
    : spec_(std::move(spec)), target_(target), ops_(ops) {
  drafts_max_ = target.options().draft->drafts_max;
  if (spec_.block > 0) drafts_max_ = std::min(drafts_max_, spec_.block - 1);
}

Drafter::~Drafter() = default;

Result<std::unique_ptr<Drafter>> Drafter::bind(DraftSpec spec, const Decoder& target,
                                               const card::ModelCard& card, const kernels::Ops& ops,
                                               int members) {
  const DraftOptions& options = *target.options().draft;
  const card::ModelCard& files = options.card == nullptr ? card : *options.card;
  std::unique_ptr<Drafter> drafter(new Drafter(std::move(spec), target, ops));
  const DraftSpec& draft = drafter->spec_;
  const auto memories = static_cast<int32_t>(target.memory_needs().size());
  ModelSpec net = draft.net;
  if (net.learned_positions > 0 && net.learned_positions < target.context_max())
    return fail(ErrorCode::kConfig,
                concat({"the drafter's positions: expected ", std::to_string(target.context_max()),
                        ", as many as the model's context has, found ",
                        std::to_string(net.learned_positions)}));
  if (!draft.own_head && options.vocabulary > 0)
    net.head_rows = std::min(options.vocabulary, net.vocab_size);
  DecoderPlace place = {.embedding = draft.own_embedding ? nullptr : &target.embedding(),
                        .head = draft.own_head ? nullptr : &target.head(),
                        .memories = memories,
                        .copies_floats = true,
                        .within = draft.within};
  std::vector<FeatureTap> taps;
  if (draft.shifted()) taps.push_back(draft.chained);
  const auto bound = [&]() -> Result<void> {
    WEIR_ASSIGN(drafter->net_, Decoder::bind(files, std::move(net),
                                             {.compute = target.options().compute,
                                              .rows_max = target.options().rows_max,
                                              .context_max = target.context_max(),
                                              .quantise_bits = options.quantise_bits},
                                             ops, members, std::move(taps), place));
    return drafter->read_table(*files.tensors);
  };
  if (Result<void> done = bound(); !done)
    return tl::unexpected(files.in_folder(std::move(done).error()));
  drafter->needs_ = drafter->net_->memory_needs();
  // What it leaves of drafts is written again where they were wrong: its keys stay numbers.
  for (kv::MemoryNeed& need : drafter->needs_)
    if (auto* paged = std::get_if<kv::PagedNeed>(&need)) paged->takes_codes = false;
  if (draft.shifted()) {
    drafter->feature_memory_ = memories + static_cast<int32_t>(drafter->needs_.size());
    drafter->needs_.emplace_back(kv::PagedNeed{
        .heads = 1, .k_dim = target.left_width(), .v_dim = 0, .tokens_per_key = kPage});
  }
  drafter->batch_ = BatchBuilder(target.options().rows_max, target.options().rows_max);
  drafter->best_.resize(static_cast<size_t>(target.options().rows_max));
  drafter->probabilities_.resize(drafter->best_.size());
  return drafter;
}

// Of a head that chooses among some tokens.
Result<void> Drafter::read_table(const card::Checkpoint& tensors) {
  if (!spec_.head_has_table) return {};
  const int64_t rows = net_->head().weight().n;
  const card::StoredTensor* stored = tensors.find("d2t");
  if (stored == nullptr && rows == spec_.net.vocab_size) return {};
  const auto refuse = [&](const std::string& found) {
    return fail(ErrorCode::kConfig,
                concat({tensors.name(), ": tensor 'd2t': expected I64 [", std::to_string(rows),
                        "], a token of the vocabulary for each row of the head, found ", found}));
  };
  if (stored == nullptr) return refuse("none");
  const Tensor& table = stored->tensor;
  if (table.type != DType::kI64 || table.rank != 1 || table.shape[0] != rows)
    return refuse(to_string(table));
  table_.assign(static_cast<size_t>(rows), 0);
  if (tensors.file(*stored).only_beginning()) return {};
  for (int64_t i = 0; i < rows; ++i) {
    int64_t distance = 0;
    std::memcpy(&distance, table.data + i * 8, 8);
    if (distance < -i || distance >= spec_.net.vocab_size - i)
      return refuse(concat({std::to_string(distance), " in row ", std::to_string(i)}));
    table_[static_cast<size_t>(i)] = static_cast<int32_t>(i + distance);
  }
  return {};
}

const Model& Drafter::net() const { return *net_; }
ModelMemory Drafter::memory() const { return net_->memory(); }
void Drafter::give_back_scratch() { net_->give_back_scratch(); }

bool Drafter::pack_until(ThreadTeam& team, const std::function<void(int64_t, int64_t)>& progress,
                         Model::Clock::time_point until) {
  return net_->pack_until(team, progress, until);
}

std::string Drafter::describe() const {
  const ModelMemory memory = net_->memory();
  char text[96];
  std::snprintf(text, sizeof text, "%.1f M parameters",
                static_cast<double>(memory.parameters) / 1e6);
  std::string out = concat({kind_name(spec_.kind), ", ", text, ", ", memory.formats});
  if (const int32_t rows = net_->head().weight().n; rows < target_.spec().vocab_size)
    out += concat({", head of ", std::to_string(rows), " tokens"});
  return out;
}

Drafter::State& Drafter::state_of(int32_t sequence) {
  const auto at = static_cast<size_t>(sequence);
  if (at >= states_.size()) states_.resize(std::max(at + 1, 2 * states_.size()));
  return states_[at];
}

// It is the sequence that the state is of, where the round before has left it: the row of the
// slice's first token may have been computed when it was the last one.
bool Drafter::goes_on(const State& state, const DraftSlice& slice) const {
  if (state.next != slice.first &&
      !(spec_.kind != DraftSpec::kDflash && state.next == slice.first + 1))
    return false;
  return state.next > 0 && state.page == slice.memory.pages(0)[(state.next - 1) / kPage];
}

void Drafter::restart(State& state, const DraftSlice& slice) const {
  const int32_t first = slice.first, least = spec_.shifted() ? 1 : 0;
  const int32_t* const pages = slice.memory.pages(0);
  const auto has_rows = [&](int32_t block) {
    return has_rows_[static_cast<size_t>(pages[block])] != 0;
  };
  int32_t block = first / kPage;
  if (first == 0 || first % kPage != 0 || !has_rows(block - 1)) {
    // The feature before its first row is not known.
    state.begin = state.next = first + least;
    return;
  }
  if (spec_.shifted()) load_feature(pages[block - 1], state.feature);
  while (block > 0 && has_rows(block - 1)) --block;
  state.begin = std::max(block * kPage, least);
  state.next = first;
}

// A draft model's table may have fewer tokens than the model.
bool Drafter::knows_tokens(const DraftSlice& slice) const {
  const int32_t vocabulary = net_->embedding().weight().n;
  return std::ranges::all_of(slice.tokens, [=](int32_t token) { return token < vocabulary; });
}

void Drafter::use(const kv::KvCache& kv) {
  kv_ = &kv;
  states_.clear();
  has_rows_.assign(static_cast<size_t>(kv.page_count(0)), 0);
}

void Drafter::begin(const DraftSlice& slice) {
  CHECK(slice.computed > 0 && std::ssize(slice.tokens) >= slice.computed);
  const int32_t computed_end = slice.first + slice.computed;
  CHECK(slice.covered >= computed_end);
  if (!knows_tokens(slice)) return forget(slice.sequence, slice.memory, slice.first, computed_end);
  State& state = state_of(slice.sequence);
  if (!goes_on(state, slice)) restart(state, slice);
  state.guess = -1;
  if (works_count_ == works_.size()) works_.emplace_back();
  works_[works_count_++] = {
      .slice = &slice,
      .slot = state.next,
      .end = spec_.kind == DraftSpec::kDflash
                 ? computed_end
                 : std::min(slice.first + static_cast<int32_t>(std::ssize(slice.tokens)),
                            slice.covered)};
  clear_rows(slice.memory, slice.first, computed_end);
}

// Pages that positions [first, end) are written to.
void Drafter::clear_rows(const kv::MemoryView& memory, int32_t first, int32_t end) {
  for (int32_t block = std::max(first, memory.kept) / kPage; block * kPage < end; ++block)
    has_rows_[static_cast<size_t>(memory.pages(0)[block])] = 0;
}

void Drafter::end(const Work& work) {
  const DraftSlice& slice = *work.slice;
  State& state = state_of(slice.sequence);
  const int32_t computed_end = slice.first + slice.computed;
  const int32_t* const pages = slice.memory.pages(0);
  state.next = std::max(work.end, state.next);
  state.page = pages[(state.next - 1) / kPage];
  state.last = std::ssize(slice.tokens) > slice.computed ? slice.tokens.back() : -1;
  if (spec_.shifted() && state.next == computed_end) {
    const float* const last = target_.left(slice.row + slice.computed - 1);
    state.feature.assign(last, last + target_.left_width());
  }
  // Blocks that have become full.
  for (int32_t block = slice.first / kPage; (block + 1) * kPage <= computed_end; ++block) {
    const int32_t last = (block + 1) * kPage - 1;
    if (last < slice.memory.kept) continue;
    if (spec_.shifted()) store_feature(pages[block], target_.left(slice.row + last - slice.first));
    if (state.begin <= std::max(block * kPage, spec_.shifted() ? 1 : 0))
      has_rows_[static_cast<size_t>(pages[block])] = 1;
  }
}

// A feature's numbers as keys are stored. Halfs end at 65,504.
void Drafter::store_feature(int32_t page, const float* feature) const {
  constexpr float kHalfMax = 65504;
  const kernels::KvPages& pages = kv_->layer(feature_memory_);
  uint8_t* const to = pages.base + page * pages.page_bytes;
  for (int64_t i = 0; i < pages.k_dim; ++i) {
    if (pages.type == kernels::FloatType::kF32) {
      std::memcpy(to + i * 4, feature + i, 4);
    } else {
      const uint16_t half = float_to_half(std::clamp(feature[i], -kHalfMax, kHalfMax));
      std::memcpy(to + i * 2, &half, 2);
    }
  }
}

void Drafter::load_feature(int32_t page, std::vector<float>& feature) const {
  const kernels::KvPages& pages = kv_->layer(feature_memory_);
  const uint8_t* const from = pages.base + page * pages.page_bytes;
  feature.resize(static_cast<size_t>(pages.k_dim));
  for (int64_t i = 0; i < pages.k_dim; ++i) {
    uint16_t half = 0;
    if (pages.type == kernels::FloatType::kF32) {
      std::memcpy(&feature[static_cast<size_t>(i)], from + i * 4, 4);
    } else {
      std::memcpy(&half, from + i * 2, 2);
      feature[static_cast<size_t>(i)] = half_to_float(half);
    }
  }
}

void Drafter::forget(int32_t sequence, const kv::MemoryView& memory, int32_t first, int32_t end) {
  State& state = state_of(sequence);
  state.next = state.guess = -1;
  clear_rows(memory, first, end);
}

void Drafter::keep_up(std::span<const DraftSlice> slices, ThreadTeam& team) {
  const trace::Scope scope(trace::Kind::kWhole, "draft", static_cast<int32_t>(slices.size()));
  team_ = &team;
  works_count_ = 0;
  for (const DraftSlice& slice : slices) begin(slice);
  for (Work& work : works()) work.state = &state_of(work.slice->sequence);  // They stay from here.
  const bool block = spec_.kind == DraftSpec::kDflash;
  for (Work& work : works()) {
    while (work.slot < work.end) {
      if (batch_.rows() == net_->options().rows_max) flush(block);
      add_rows(work, std::min(work.end, work.slot + net_->options().rows_max - batch_.rows()));
      // The first draft comes with the row of the last certain token.
      const bool last = work.slot == work.slice->first + std::ssize(work.slice->tokens);
      if (block || !last || !work.slice->guesses) continue;
      batch_.want_next();
      work.row = batch_.rows() - 1;
    }
  }
  flush(block);
  for (const Work& work : works()) end(work);
}

void Drafter::open_slice(const Work& work, const kv::MemoryView& memory, int32_t sequence,
                         int32_t slot, const Mask& mask) {
  kv::MemoryView view = memory;
  view.marks = {};
  batch_.add_slice({.first_position = slot,
                    .memory = view,
                    .mask = mask,
                    .first_key = std::min(work.state->begin, slot),
                    .sequence = sequence});
}

// What the row of a certain token begins with besides it.
const float* Drafter::feature_of(const Work& work, int32_t slot) const {
  const int32_t row = slot - work.slice->first - (spec_.shifted() ? 1 : 0);
  return row >= 0 ? target_.left(work.slice->row + row) : work.state->feature.data();
}

// Of certain tokens, up to slot `end`.
void Drafter::add_rows(Work& work, int32_t end) {
  const DraftSlice& slice = *work.slice;
  open_slice(work, slice.memory, slice.sequence, work.slot);
  for (; work.slot < end; ++work.slot) {
    const int32_t token = slice.tokens[static_cast<size_t>(work.slot - slice.first)];
    if (spec_.reads_features())
      batch_.add_feature(token, feature_of(work, work.slot));
    else
      batch_.add_token(token);
  }
}

int32_t Drafter::token_of(int32_t head_row) const {
  return table_.empty() ? head_row : table_[static_cast<size_t>(head_row)];
}

void Drafter::take_guess(Work& work) {
  State& state = *work.state;
  state.guess = token_of(best_[static_cast<size_t>(work.row)]);
  state.probability = probabilities_[static_cast<size_t>(work.row)];
  if (spec_.shifted()) {
    const float* const left = net_->left(work.row);
    state.chained.assign(left, left + net_->left_width());
  }
  work.row = -1;
}

void Drafter::flush(bool remembers) {
  if (batch_.empty()) return;
  const Batch batch = batch_.batch();
  Sink sink(ops_, batch, best_, probabilities_);
  const Forward pass = {
      .batch = batch, .kv = *kv_, .sink = sink, .team = *team_, .end = net_->sublayers()};
  team_->run([&](int member) {
    if (remembers)
      net_->remember(pass, member);
    else
      net_->forward(pass, member);
  });
  batch_.clear();
  if (spec_.kind == DraftSpec::kDflash) return take_blocks();
  for (Work& work : works())
    if (work.row >= 0) take_guess(work);
}

void Drafter::draft(std::span<DraftTask> tasks, ThreadTeam& team) {
  const trace::Scope scope(trace::Kind::kWhole, "draft", static_cast<int32_t>(tasks.size()));
  team_ = &team;
  works_count_ = 0;
  for (DraftTask& task : tasks) {
    task.count = 0;
    const State& state = state_of(task.sequence);
    if (task.tokens.empty() || ready(state, task) == Ready::kNo) continue;
    if (works_count_ == works_.size()) works_.emplace_back();
    works_[works_count_++] = {.task = &task, .slot = state.next};
  }
  for (Work& work : works()) work.state = &state_of(work.task->sequence);
  if (spec_.kind == DraftSpec::kDflash) return fill_blocks();
  for (Work& work : works())
    if (ready(*work.state, *work.task) == Ready::kLastRow) add_last_row(work);
  flush();
  chain();
  for (Work& work : works()) work.state->guess = -1;  // What follows a draft is no one's guess.
}

// Of a block the last certain token has its place in the block.
Drafter::Ready Drafter::ready(const State& state, const DraftTask& task) const {
  const auto forced = static_cast<int32_t>(std::ssize(task.forced));
  const int32_t certain = task.position - forced;  // So many tokens.
  if (state.next + 1 == certain && state.last >= 0) {
    if (spec_.kind != DraftSpec::kDflash) return Ready::kLastRow;
    return forced == 0 ? Ready::kYes : Ready::kNo;
  }
  return state.next == certain && state.guess >= 0 ? Ready::kYes : Ready::kNo;
}

// The row of the last certain token, for which there was no memory yet.
void Drafter::add_last_row(Work& work) {
  State& state = *work.state;
  const DraftTask& task = *work.task;
  open_slice(work, task.memory, task.sequence, work.slot++);
  if (spec_.reads_features())
    batch_.add_feature(state.last, state.feature.data());
  else
    batch_.add_token(state.last);
  batch_.want_next();
  work.row = batch_.rows() - 1;
  state.next = work.slot;
  state.page = task.memory.pages(0)[(state.next - 1) / kPage];
}

// Takes the guess, or a token that has been forced in its place; adds its row, unless that was the
// last draft.
bool Drafter::next_row(Work& work) {
  DraftTask& task = *work.task;
  const auto count = static_cast<size_t>(task.count);
  if (count == task.tokens.size()) return false;
  int32_t token = work.state->guess;
  if (work.forced < task.forced.size()) {
    token = task.forced[work.forced++];
  } else {
    task.tokens[count] = token;
    if (!task.probabilities.empty()) task.probabilities[count] = work.state->probability;
    if (static_cast<size_t>(++task.count) == task.tokens.size()) return false;
  }
  if (token >= net_->embedding().weight().n) return false;
  open_slice(work, task.memory, task.sequence, work.slot++);
  if (spec_.reads_features())
    batch_.add_feature(token, work.state->chained.data());
  else
    batch_.add_token(token);
  batch_.want_next();
  work.row = batch_.rows() - 1;
  return true;
}

// Guess after guess, each of the one before.
void Drafter::chain() {
  while (true) {
    if (spec_.reads_features()) batch_.set_projected();
    bool any = false;
    for (Work& work : works()) any |= next_row(work);
    if (!any) break;
    flush();
  }
  batch_.clear();
}

// The last token and masks after it see one another; what they leave is overwritten.
void Drafter::fill_blocks() {
  for (Work& work : works()) {
    DraftTask& task = *work.task;
    const auto drafts = std::min(static_cast<int32_t>(std::ssize(task.tokens)), spec_.block - 1);
    if (batch_.rows() + 1 + drafts > net_->options().rows_max) flush();
    open_slice(work, task.memory, task.sequence, work.slot,
               {.begin = work.slot, .end = work.slot + 1 + drafts});
    work.row = batch_.rows();
    work.end = work.slot + 1 + drafts;
    batch_.add_token(work.state->last);
    for (int32_t i = 0; i < drafts; ++i) batch_.add_token(spec_.mask_token);
    batch_.want(Wanted::kScore, 1, drafts);
  }
  flush();
}

void Drafter::take_blocks() {
  for (Work& work : works()) {
    if (work.row < 0 || work.task == nullptr) continue;
    DraftTask& task = *work.task;
    const int32_t drafts = work.end - work.slot - 1;
    for (; task.count < drafts; ++task.count) {
      const auto row = static_cast<size_t>(work.row + 1 + task.count);
      task.tokens[static_cast<size_t>(task.count)] = token_of(best_[row]);
      if (!task.probabilities.empty())
        task.probabilities[static_cast<size_t>(task.count)] = probabilities_[row];
    }
    work.row = -1;
  }
}

}  // namespace weir::model
