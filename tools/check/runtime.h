// What checks of models share: threads, kernels, and finding folders.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "check.h"
#include "kernels/ops.h"
#include "model/model.h"

namespace weir::check {

struct Runtime {
  const kernels::Ops* ops = nullptr;
  std::unique_ptr<ThreadTeam> team;
  model::Compute compute = model::Compute::kExact;
  kv::Format kv_format = kernels::FloatType::kF32;
  std::optional<int64_t> expert_memory;

  static Result<Runtime> create(const CheckOptions& options);
};

// Opens the experts of a model that was loaded to stream them. `memory`: bytes for them, 0 for an
// eighth of all.
Result<void> stream_experts(model::Model& model, int64_t memory, int32_t sequences);

// The folders at or below `paths` (four levels) that hold a file named `marker`, in order of name.
Result<std::vector<std::string>> find_folders(const std::vector<std::string>& paths,
                                              const std::string& marker);

std::string folder_name(const std::string& folder);

}  // namespace weir::check
