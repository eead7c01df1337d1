// weir-check compares this build with recorded answers: models, families, images, sounds,
// templates, tokenizers.
// One line a case, then `N passed, N failed, N skipped`, with the names of what failed and of what
// was skipped.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/ops.h"
#include "model/model.h"

namespace weir::check {

struct CheckOptions {
  std::vector<std::string> paths;  // Fixtures, or folders above some.
  std::string npm;                 // tokenizers: the folder whose node_modules has the packages.
  std::optional<kernels::Isa> isa;
  std::optional<model::Compute> compute;        // Default: kExact.
  std::optional<kernels::FloatType> kv_format;  // Default: kF32 with kExact, else kF16.
  int threads = 0;                              // 0: all usable cores.
  // model, families: bytes for experts that are read from disk, 0 for an eighth of them; their
  // logits must be those of the resident model, bit for bit.
  std::optional<int64_t> expert_memory;
};

// Prints each case as it ends and counts.
class Report {
 public:
  void pass(std::string_view name, std::string_view detail = {});
  void fail(std::string_view name, std::string_view why);
  void skip(std::string_view name, std::string_view why);
  // Prints the closing line. 0 if something passed and nothing failed, else 1.
  int finish() const;

 private:
  int passed_ = 0;
  std::vector<std::string> failed_, skipped_;
};

// Each returns an error only where it cannot begin (no such folder, no fixture found in it).
Result<void> check_models(const CheckOptions& options, Report& report);
Result<void> check_families(const CheckOptions& options, Report& report);
// What processors make of the pictures of such fixtures.
Result<void> check_images(const CheckOptions& options, Report& report);
// What front ends make of the sounds of such fixtures.
Result<void> check_sounds(const CheckOptions& options, Report& report);
// Results of `weir quantize` in folders of their source.
Result<void> check_quantised(const CheckOptions& options, Report& report);
Result<void> check_templates(const CheckOptions& options, Report& report);
Result<void> check_tokenizers(const CheckOptions& options, Report& report);

}  // namespace weir::check
