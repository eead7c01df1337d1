#include "model/families.h"
#include "card/model_card.h"
#include "check.h"
#include "family_fixture.h"
#include "runtime.h"

namespace weir::check {

namespace {

// Why this build cannot run the fixture at all, or nothing.
std::string reason_to_skip(const Result<card::ModelCard>& card) {
  if (!card)
    return card.error().code == ErrorCode::kUnsupported
               ? "format not known yet: " + card.error().message
               : "";
  std::string_view architecture;
  if (card->config.root()["architectures"].at(0).get(architecture) != simdjson::SUCCESS)
    return "family not known yet: config.json names no architecture";
  if (!model::family_known(architecture))
    return "family not known yet: " + std::string(architecture);
  return "";
}

Result<void> check_family(const std::string& folder, const Runtime& runtime, Report& report) {
  const std::string name = folder_name(folder);
  Result<card::ModelCard> opened = card::ModelCard::open_folder(folder);
  const std::string skip = reason_to_skip(opened);
  if (!skip.empty()) {
    report.skip(name, skip);
    return {};
  }
  WEIR_ASSIGN(const card::ModelCard card, std::move(opened));
  WEIR_ASSIGN(const FamilyFixture fixture, FamilyFixture::open(folder));
  const model::ModelOptions options = {
      .compute = runtime.compute, .rows_max = 256, .context_max = 512};
  WEIR_ASSIGN(const auto loaded, model::Model::load(card, options, *runtime.ops, *runtime.team));
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
