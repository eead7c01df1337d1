#include "exec/cpu_drafter.h"

#include <algorithm>

#include "base/check.h"

namespace weir::exec {

namespace {

// Where the block of the position before this one ends: so far a sequence has memory for certain.
int32_t blocks_end(int32_t position) {
  return (position + kv::kPageTokens - 1) / kv::kPageTokens * kv::kPageTokens;
}

}  // namespace

CpuDrafter::CpuDrafter(model::Drafter& drafter, const kv::KvCache& cache, ThreadTeam& team,
                       int32_t rows_max)
    : drafter_(drafter), team_(team) {
  drafter_.use(cache);
  const auto rows = static_cast<size_t>(rows_max);
  slices_.reserve(rows);
  tokens_.reserve(2 * rows);
  tasks_.reserve(rows);
}

std::string_view CpuDrafter::kind() const { return model::kind_name(drafter_.spec().kind); }

// The tokens of the slice that are certain now: all of a prompt's; of generated ones those that the
// step took, and the one after them.
void CpuDrafter::add_slice(const StepWork& ran, int32_t slice, bool guesses) {
  const model::BatchSlice& part = ran.batch.slices[static_cast<size_t>(slice)];
  const auto chosen = [&](const model::Wanted& wanted) {
    return wanted.slice == slice &&
           (wanted.kind == model::Wanted::kNext || wanted.kind == model::Wanted::kVerify);
  };
  const auto wanted = std::ranges::find_if(ran.batch.wanted, chosen);
  const bool follows = wanted != ran.batch.wanted.end();
  const model::Taken taken =
      follows ? ran.results.taken[static_cast<size_t>(wanted->row_begin)] : model::Taken{};
  const int32_t computed =
      follows ? wanted->row_begin - part.row_begin + 1 + taken.drafts : part.rows;
  const size_t begin = tokens_.size();
  CHECK(begin + static_cast<size_t>(computed) < tokens_.capacity());  // Slices point into it.
  for (int32_t row = part.row_begin; row < part.row_begin + computed; ++row)
    tokens_.push_back(ran.batch.token_of(row));
  if (follows) tokens_.push_back(taken.token);
  slices_.push_back({.sequence = part.sequence,
                     .memory = part.memory,
                     .first = ran.batch.first(part),
                     .row = part.row_begin,
                     .tokens = std::span<const int32_t>(tokens_).subspan(begin),
                     .computed = computed,
                     .covered = blocks_end(ran.batch.first(part) + computed),
                     .guesses = guesses && follows});
}

void CpuDrafter::follow(const StepWork& ran, KeepUp keep_up) {
  slices_.clear();
  tokens_.clear();
  for (int32_t slice = 0; slice < std::ssize(ran.batch.slices); ++slice) {
    const model::BatchSlice& part = ran.batch.slices[static_cast<size_t>(slice)];
    const bool failed = std::ranges::count(ran.results.failures, slice, &Failure::slice) > 0;
    if (keep_up != KeepUp::kNot && !failed && !ran.batch.has_vectors(part)) {
      add_slice(ran, slice, keep_up == KeepUp::kGuesses);
      continue;
    }
    const int32_t first = ran.batch.first(part);
    drafter_.forget(part.sequence, part.memory, first, first + part.rows);
  }
  if (!slices_.empty()) drafter_.keep_up(slices_, team_);
}

void CpuDrafter::draft(std::span<DraftTask> tasks) {
  tasks_.clear();
  for (const DraftTask& task : tasks)
    tasks_.push_back({.sequence = task.sequence,
                      .memory = task.memory,
                      .position = task.position,
                      .forced = task.forced,
                      .tokens = task.tokens,
                      .probabilities = task.probabilities});
  drafter_.draft(tasks_, team_);
  for (size_t i = 0; i < tasks.size(); ++i) tasks[i].count = tasks_[i].count;
}

}  // namespace weir::exec
