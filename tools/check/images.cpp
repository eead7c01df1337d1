#include <cstdio>

#include "check.h"
#include "image_fixture.h"
#include "runtime.h"

namespace weir::check {

namespace {

void check_images_of(const std::string& folder, Report& report) {
  const Result<ImageFixture> fixture = ImageFixture::open(folder);
  if (!fixture && fixture.error().code == ErrorCode::kUnsupported) {
    report.skip(folder_name(folder), fixture.error().message);
    return;
  }
  if (!fixture) {
    report.fail(folder_name(folder), fixture.error().message);
    return;
  }
  const ImageComparison c = compare_images(*fixture);
  char detail[120];
  std::snprintf(detail, sizeof detail, "pixel_values %.1e, pixel_values_pil %.1e, %lld tokens",
                c.difference, c.pil_difference, static_cast<long long>(c.tokens));
  c.failure.empty() ? report.pass(fixture->name, detail)
                    : report.fail(fixture->name, c.failure + "; " + detail);
}

}  // namespace

Result<void> check_images(const CheckOptions& options, Report& report) {
  WEIR_ASSIGN(const std::vector<std::string> folders, find_folders(options.paths, "image.png"));
  for (const std::string& folder : folders) check_images_of(folder, report);
  return {};
}

}  // namespace weir::check
