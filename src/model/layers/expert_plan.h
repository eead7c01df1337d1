// ExpertPlan: which rows each expert computes in one step: a counting sort of the router's choices.
// A slot is one (row, choice), in the order of experts, then rows.
//
// Threads: every member keeps one of its own in scratch memory: sorting 512 rows again costs less
// than a barrier.
#pragma once

#include <cstdint>

#include "model/pass.h"

namespace weir::model {

// In place of an expert: a choice that no expert's weights are for. After all others of its row.
inline constexpr int32_t kNoExpert = -1;

struct ExpertPlan {
  const int32_t* choice = nullptr;  // [rows][top_k]: experts, best first, then kNoExpert.
  int32_t* begin = nullptr;         // [experts + 1]: first slot of each expert.
  int32_t* row = nullptr;           // [slots]
  int32_t* slot = nullptr;          // [rows][top_k], by rank in the router's order; or -1.
  int32_t* prompt_begin = nullptr;  // [experts]: the expert's first slot of a prompt's row.
  int32_t* active = nullptr;        // Experts with rows.
  float* weight = nullptr;          // [slots]: what multiplies the expert's input; null: 1.
  int32_t active_count = 0;

  int32_t rows_of(int32_t expert) const { return begin[expert + 1] - begin[expert]; }
};

// A plan's memory, for one layer.
class ExpertPlanBuffers {
 public:
  ExpertPlanBuffers() = default;
  ExpertPlanBuffers(ScratchPlan& scratch, int32_t experts, int32_t top_k, bool weighs_input);

  // Sorts the choices of the pass's rows and their weights, for its member.
  const ExpertPlan& make(const Pass& pass, const int32_t* choice, const float* weight) const;
  // What make() has made.
  const ExpertPlan& at(const Pass& pass) const { return *pass.ws.at(plan_, pass.member); }

 private:
  int32_t experts_ = 0;
  int32_t top_k_ = 0;
  bool weighs_input_ = false;
  Buffer<ExpertPlan> plan_;
  Buffer<int32_t> begin_, row_, slot_, prompt_begin_, active_;
  Buffer<float> weight_;
};

}  // namespace weir::model
