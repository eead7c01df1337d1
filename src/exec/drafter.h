// Drafter: guesses of next tokens that are computed, beside the steps of an executor, from what the
// steps leave. An executor whose model has one (model::ModelOptions::draft) hands it out.
//
// Between two steps: follow() of the step that has run, then draft(), if any are wanted.
//
// Threads: as Executor.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "exec/step_work.h"
#include "kv/memory_view.h"

namespace weir::exec {

// Drafts that are asked for of one sequence.
struct DraftTask {
  int32_t sequence = 0;  // As model::BatchSlice::sequence.
  kv::MemoryView memory{};
  int32_t position = 0;  // Of the first draft. Memory covers all that are asked for.
  // Tokens just before it that no step has computed, after the last one that it was given.
  std::span<const int32_t> forced{};
  std::span<int32_t> tokens{};       // Room for as many as are asked for, and
  std::span<float> probabilities{};  // how sure the drafter is of each.
  int32_t count = 0;                 // So many are given.
};

// What a drafter computes of a step that has run: nothing, and it forgets the sequences of the
// step; the rows of their tokens; or also what first drafts after them are made of.
enum class KeepUp : uint8_t { kNot, kRows, kGuesses };

class Drafter {
 public:
  virtual ~Drafter() = default;

  // "mtp", "eagle3", "dflash" or "draft".
  virtual std::string_view kind() const = 0;
  // Most drafts of a sequence.
  virtual int32_t drafts_max() const = 0;
  // A step in Lane::kStep has run. It forgets sequences of which the step had rows of vectors.
  virtual void follow(const StepWork& ran, KeepUp keep_up) = 0;
  // May give fewer than are asked for, or none.
  virtual void draft(std::span<DraftTask> tasks) = 0;
};

}  // namespace weir::exec
