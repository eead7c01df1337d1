// weir-check templates: chat templates against what Python's Jinja2 renders.
#include <filesystem>

#include "check.h"
#include "template_fixture.h"

namespace weir::check {

namespace {

namespace fs = std::filesystem;

bool is_fixture(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "contexts.json", error) &&
         fs::is_regular_file(folder / "renders.json", error) &&
         fs::is_directory(folder / "templates", error);
}

// The folder itself, or those below it that are fixtures.
std::vector<std::string> find_fixtures(const std::string& path) {
  std::vector<std::string> found;
  if (is_fixture(path)) return {path};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.is_directory(error) && is_fixture(entry.path()))
      found.push_back(entry.path().string());
  return found;
}

// One case a pair, so that the closing count is theirs.
void report_template(const TemplateComparison& compared, Report& report) {
  for (int i = 0; i < compared.same; ++i) report.pass(compared.name, "equal");
  for (int i = 0; i < compared.refused; ++i) report.pass(compared.name, "refused, as expected");
  for (const std::string& why : compared.differences) report.fail(compared.name, why);
}

}  // namespace

Result<void> check_templates(const CheckOptions& options, Report& report) {
  for (const std::string& path : options.paths) {
    const std::vector<std::string> folders = find_fixtures(path);
    if (folders.empty())
      return fail(ErrorCode::kNotFound, path +
                                            ": expected a folder with contexts.json, renders.json "
                                            "and templates/, or one above such folders");
    for (const std::string& folder : folders) {
      WEIR_ASSIGN(const auto compared, compare_templates(folder));
      for (const TemplateComparison& each : compared) report_template(each, report);
    }
  }
  return {};
}

}  // namespace weir::check
