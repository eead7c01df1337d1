#include "runtime.h"

#include <algorithm>
#include <filesystem>

#include "kernels/cpu_ops.h"
#include "model/expert_pack.h"
#include "ssd/expert_store.h"
#include "ssd/store_plan.h"

namespace weir::check {

namespace fs = std::filesystem;

Result<Runtime> Runtime::create(const CheckOptions& options) {
  Runtime r;
  WEIR_ASSIGN(const kernels::Isa isa, kernels::choose_isa(options.isa));
  r.ops = &kernels::ops_for(isa);
  const int threads = options.threads > 0 ? options.threads : ThreadTeam::usable_cores();
  r.team = std::make_unique<ThreadTeam>(threads);
  r.compute = options.compute.value_or(model::Compute::kExact);
  const bool exact = r.compute == model::Compute::kExact;
  r.kv_format =
      options.kv_format.value_or(exact ? kernels::FloatType::kF32 : kernels::FloatType::kF16);
  r.expert_memory = options.expert_memory;
  return r;
}

Result<void> stream_experts(model::Model& model, int64_t memory, int32_t sequences) {
  WEIR_TRY(model::choose_bundle(*model.streamed_bank()));
  const ssd::ExpertCatalogue& catalogue = *model.expert_catalogue();
  uint64_t bytes = memory > 0 ? static_cast<uint64_t>(memory) : catalogue.bank_bytes() / 8;
  // An eighth of a tiny model would not hold the least.
  while (memory == 0 && !ssd::plan_store(catalogue, bytes, 1)) bytes *= 2;
  WEIR_ASSIGN(std::unique_ptr<ssd::Disk> disk, ssd::Disk::create({}));
  return model.open_experts(std::move(disk), {.memory = bytes, .sequences_max = sequences});
}

Result<std::vector<std::string>> find_folders(const std::vector<std::string>& paths,
                                              const std::string& marker) {
  constexpr int kDepthMax = 4;
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::path root = fs::absolute(path, error).lexically_normal();
    if (fs::is_regular_file(root / marker, error)) found.push_back(root.string());
    fs::recursive_directory_iterator it(root, error), end;
    if (error)
      return fail(ErrorCode::kConfig, path + ": expected a folder, found " + error.message());
    for (; it != end; it.increment(error)) {
      if (error) break;
      if (it.depth() >= kDepthMax) it.disable_recursion_pending();
      if (it->is_directory(error) && fs::is_regular_file(it->path() / marker, error))
        found.push_back(it->path().string());
    }
  }
  std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
    return std::pair(folder_name(a), a) < std::pair(folder_name(b), b);
  });
  if (found.empty())
    return fail(ErrorCode::kConfig,
                "expected a folder with " + marker + " at or below the paths given, found none");
  return found;
}

std::string folder_name(const std::string& folder) {
  const size_t end = folder.find_last_not_of('/');
  const std::string trimmed = folder.substr(0, end + 1);
  return trimmed.substr(trimmed.find_last_of('/') + 1);
}

}  // namespace weir::check
