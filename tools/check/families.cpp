#include "model/families.h"
#include "check.h"
#include "family_fixture.h"
#include "model/config_reader.h"
#include "model/quant_format.h"
#include "runtime.h"

namespace weir::check {

namespace {

// Why this build cannot run the fixture at all, or nothing.
Result<std::string> reason_to_skip(const std::string& folder) {
  WEIR_ASSIGN(const std::string text, read_file(folder + "/config.json", size_t{1} << 20));
  WEIR_ASSIGN(const JsonDoc config, model::parse_config(text));
  std::string_view architecture;
  if (config.root()["architectures"].at(0).get(architecture) != simdjson::SUCCESS)
    return std::string("family not known yet: config.json names no architecture");
  if (!model::family_known(architecture))
    return "family not known yet: " + std::string(architecture);
  const auto format = model::QuantFormat::from_config(config.root());
  if (!format && format.error().code == ErrorCode::kUnsupported)
    return "format not known yet: " + format.error().message;
  return std::string();
}

Result<void> check_family(const std::string& folder, const Runtime& runtime, Report& report) {
  const std::string name = folder_name(folder);
  WEIR_ASSIGN(const std::string skip, reason_to_skip(folder));
  if (!skip.empty()) {
    report.skip(name, skip);
    return {};
  }
  WEIR_ASSIGN(const FamilyFixture fixture, FamilyFixture::open(folder));
  WEIR_ASSIGN(const ModelFiles files, ModelFiles::open(folder));
  const model::ModelOptions options = {
      .compute = runtime.compute, .rows_max = 256, .context_max = 512};
  WEIR_ASSIGN(const auto loaded, model::Model::load(files, options, *runtime.ops, *runtime.team));
  WEIR_ASSIGN(const FamilyComparison c,
              compare_family(fixture, *loaded, *runtime.team, runtime.kv_type));
  const bool exact =
      runtime.compute == model::Compute::kExact && runtime.kv_type == kernels::FloatType::kF32;
  const std::string failure = family_failure(fixture, c, exact);
  char detail[160];
  std::snprintf(
      detail, sizeof detail,
      "one pass %.1e (relative rms %.1e), greedy %.1e (bound %.1e), %d of %zu tokens equal",
      c.pass_difference, c.pass_error, c.greedy_difference, static_cast<double>(fixture.bound),
      c.greedy_equal, fixture.gen_ids.size());
  failure.empty() ? report.pass(name, detail) : report.fail(name, failure + "; " + detail);
  return {};
}

}  // namespace

Result<void> check_families(const CheckOptions& options, Report& report) {
  WEIR_ASSIGN(const Runtime runtime, Runtime::create(options));
  WEIR_ASSIGN(const std::vector<std::string> folders, find_folders(options.paths, "meta.json"));
  for (const std::string& folder : folders) {
    const auto done = check_family(folder, runtime, report);
    if (!done) report.fail(folder_name(folder), done.error().message);
  }
  return {};
}

}  // namespace weir::check
