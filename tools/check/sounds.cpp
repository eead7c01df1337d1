#include <cstdio>

#include "check.h"
#include "runtime.h"
#include "sound_fixture.h"

namespace weir::check {

namespace {

void check_sounds_of(const std::string& folder, Report& report) {
  const Result<SoundFixture> fixture = SoundFixture::open(folder);
  if (!fixture) {
    report.fail(folder_name(folder), fixture.error().message);
    return;
  }
  const SoundComparison c = compare_sounds(*fixture);
  char detail[120];
  std::snprintf(detail, sizeof detail, "input_features %.1e, %lld frames, %lld rows", c.difference,
                static_cast<long long>(c.frames), static_cast<long long>(c.rows));
  c.failure.empty() ? report.pass(fixture->name, detail)
                    : report.fail(fixture->name, c.failure + "; " + detail);
}

}  // namespace

Result<void> check_sounds(const CheckOptions& options, Report& report) {
  WEIR_ASSIGN(const std::vector<std::string> folders, find_folders(options.paths, "audio.wav"));
  for (const std::string& folder : folders) check_sounds_of(folder, report);
  return {};
}

}  // namespace weir::check
