// What `weir bench` has measured, as a table and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/expert_figures.h"
#include "kernels/machine_limits.h"
#include "program/model_choice.h"
#include "ssd/store_plan.h"

namespace weir {

struct Spread {
  double median = 0, low = 0, high = 0;
};

struct BenchFigures {
  Spread prefill;  // Tokens a second.
  std::optional<ExpertFigures> prefill_experts;
  struct Decode {
    int32_t depth = 0, batch = 0;
    Spread speed;
    std::optional<ExpertFigures> experts;
  };
  std::vector<Decode> decode;
};

// Memory for experts, and what was measured with it; one without streaming.
struct BenchBudget {
  int64_t memory = 0;
  std::optional<ssd::StorePlan> plan = {};
  std::string io = {};
  BenchFigures measured = {};
};

// What a run reports beside the speeds.
struct BenchSetting {
  const Options& options;
  const ModelChoice& choice;
  const model::Model& model;
  kernels::MachineLimits limits;
  std::string routing;  // Where it is not the model's own: what it is.
};

void print_bench_table(const BenchSetting& setting, const std::vector<BenchBudget>& budgets);
void print_bench_json(const BenchSetting& setting, const std::vector<BenchBudget>& budgets);

}  // namespace weir
