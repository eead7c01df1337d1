#include "exec/cpu_executor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/mapping_guard.h"

namespace weir::exec {

CpuExecutor::CpuExecutor(model::Model& model, const kernels::Ops& ops, ThreadTeam& team)
    : model_(model), ops_(ops), team_(team) {
  scratch_.reserve(static_cast<size_t>(team.members()));
  for (int i = 0; i < team.members(); ++i) scratch_.emplace_back(model.spec().vocab_size);
}

ExecutorFacts CpuExecutor::facts() const {
  return {.spec = &model_.spec(),
          .rows_max = model_.options().rows_max,
          .draft_rows_max = model_.options().draft_rows_max,
          .slab_rows = model_.slab_rows(),
          .context_max = model_.context_max(),
          .prompts_differ_from = model_.prompts_differ_from(),
          .cross_layers = model_.cross_layers(),
          .cross_rows = model_.cross_rows(),
          .compute = model_.options().compute};
}

Result<bool> CpuExecutor::place_weights(const std::function<void(int64_t, int64_t)>& progress,
                                        Clock::time_point until) {
  if (!model_.pack_until(team_, progress, until)) return false;
  WEIR_TRY(model_.files().check());
  // A tower is small beside its model: what is said of progress is the model's.
  return encoder_ == nullptr ? true : encoder_->place_weights({}, until);
}

void CpuExecutor::rest() {
  model_.give_back_scratch();
  if (encoder_ != nullptr) encoder_->rest();
}

Result<void> CpuExecutor::take_memory(kv::MemoryLayout layout, std::span<const int32_t> page_counts,
                                      const kv::StateSlots& slots) {
  WEIR_ASSIGN(kv::KvCache cache, kv::KvCache::create(std::move(layout), page_counts, slots));
  cache_.emplace(std::move(cache));
  if (model::Drafter* drafter = model_.drafter())
    drafter_.emplace(*drafter, *cache_, team_, model_.options().rows_max);
  return {};
}

void CpuExecutor::begin(Lane lane, const StepWork& work) {
  CHECK(!at(lane).work && work.jobs.size() == work.batch.wanted.size());
  at(lane).work.emplace(work);
  at(lane).next = 0;
  work.results.clear();
}

bool CpuExecutor::advance(Lane lane, int32_t sublayers, const Meanwhile* meanwhile) {
  Running& running = at(lane);
  CHECK(running.work && sublayers > 0);
  const int32_t all = model_.sublayers(), begin = running.next;
  CHECK(meanwhile == nullptr || (begin == 0 && sublayers >= all));
  running.next = std::min(all - begin, sublayers) + begin;
  work_ = &*running.work;
  meanwhile_ = meanwhile;
  const model::Forward pass = {.batch = work_->batch,
                               .kv = *cache_,
                               .sink = *this,
                               .team = team_,
                               .lane = lane,
                               .begin = begin,
                               .end = running.next};
  team_.run([&](int member) { model_.forward(pass, member); });
  CHECK(meanwhile_ == nullptr);  // The model has called while_ending().
  work_ = nullptr;
  if (running.next < all) return false;
  running.work.reset();
  return true;
}

void CpuExecutor::fill(const FillTask& task) {
  CHECK(!at(Lane::kStep).work);
  const model::CrossFill fill = {.kv = *cache_,
                                 .team = team_,
                                 .slot = task.slot,
                                 .layer = task.layer,
                                 .first = task.first,
                                 .count = task.count,
                                 .rows = task.rows};
  team_.run([&](int member) { model_.fill_cross(fill, member); });
}

std::string CpuExecutor::lost_weights() const {
  if (!MappingGuard::any_lost()) return {};
  for (const FileView* file : model_.files().in_place)
    if (file->lost()) return file->check_unchanged().error().message;
  return encoder_ == nullptr ? std::string() : encoder_->lost_weights();
}

void CpuExecutor::while_beginning() {
  if (meanwhile_ != nullptr) meanwhile_->beginning();
}

void CpuExecutor::while_ending() {
  if (const auto* calls = std::exchange(meanwhile_, nullptr)) calls->ending();
}

void CpuExecutor::on_failed(int32_t slice, const std::string& why) {
  std::vector<Failure>& failures = work_->results.failures;
  if (std::ranges::find(failures, slice, &Failure::slice) == failures.end())
    failures.push_back({.slice = slice, .why = why});
}

void CpuExecutor::on_rows(int32_t wanted, int32_t first, model::Rows rows, int member) {
  const auto entry = static_cast<size_t>(wanted);
  const model::Wanted& what = work_->batch.wanted[entry];
  const Job& job = work_->jobs[entry];
  sample::SamplerScratch& scratch = scratch_[static_cast<size_t>(member)];
  if (const auto* next = std::get_if<Choose>(&job)) return choose(*next, what, rows, scratch);
  if (const auto* known = std::get_if<Score>(&job))
    return score(*known, what, first, rows, scratch);
  const auto& pool = std::get<Pool>(job);
  add_part(ops_, pool.part,
           {rows.data, static_cast<size_t>(rows.count) * static_cast<size_t>(rows.width)},
           pool.vector);
}

// The sampler is applied to row after row as long as what it says is the draft in the next row: so
// every row that it sees was computed after the tokens that it has chosen, and its state is that of
// an answer without drafts.
void CpuExecutor::choose(const Choose& job, const model::Wanted& wanted, model::Rows rows,
                         sample::SamplerScratch& scratch) {
  const model::Batch& batch = work_->batch;
  StepResults& results = work_->results;
  const int32_t before =
      job.output_index + batch.drafts_before(batch.slices[static_cast<size_t>(wanted.slice)]);
  results.outputs_before[static_cast<size_t>(wanted.row_begin)] = before;
  if (job.probe >= 0)
    results.probed[static_cast<size_t>(wanted.row_begin)] =
        sample::score_token(rows.row(0), job.probe, {}, ops_, scratch).logprob;
  for (int32_t i = 0;; ++i) {
    const int32_t row = wanted.row_begin + i;
    const auto at = static_cast<size_t>(row);
    const sample::SampledToken token =
        job.sampler->sample(rows.row(i), before + i, job.logprobs, ops_, scratch);
    // The sampler's memory is written again by its next token, before this one is published.
    results.chosen[at] = token.chosen;
    results.top_counts[at] = static_cast<int32_t>(token.top.size());
    std::ranges::copy(token.top, results.tops(row).begin());
    results.continuations[at] = token.continuation;
    results.forced_counts[at] = static_cast<int32_t>(token.forced.size());
    std::ranges::copy(token.forced, results.forced(row).begin());
    const bool goes_on = token.continuation == sample::Continuation::kOpen &&
                         !job.sampler->stops(token.chosen.token);
    const bool right =
        goes_on && i + 1 < rows.count && batch.tokens[at + 1] == token.chosen.token;
    if (right) continue;
    results.taken[static_cast<size_t>(wanted.row_begin)] = {.token = token.chosen.token,
                                                            .drafts = i};
    return;
  }
}

void CpuExecutor::score(const Score& job, const model::Wanted& wanted, int32_t first,
                        model::Rows rows, sample::SamplerScratch& scratch) {
  StepResults& results = work_->results;
  for (int32_t i = 0; i < rows.count; ++i) {
    const int32_t row = wanted.row_begin + first + i;
    const auto at = static_cast<size_t>(row);
    const int32_t token = job.following[first + i];
    const sample::ScoredToken scored = sample::score_token(
        rows.row(i), token, results.tops(row).first(static_cast<size_t>(job.tops)), ops_, scratch);
    results.chosen[at] = {token, scored.logprob};
    results.top_counts[at] = static_cast<int32_t>(scored.top_count);
    results.ranks[at] = scored.rank;
    results.continuations[at] =
        scored.has_numbers ? sample::Continuation::kOpen : sample::Continuation::kNoNumbers;
  }
}

}  // namespace weir::exec
