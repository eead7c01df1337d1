// Fuzzes chat templates: the first line is the variables' JSON, the rest the template. Limits are
// small, so that every input ends soon or shows a hang. Checked: steps pay for processor time.
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string_view>

#include "base/check.h"
#include "jinja/jinja.h"

namespace {

// Ten times what the dearest step costs in a build with sanitizers and without optimisation, and a
// hundred times what one costs in a release: work that nothing pays for grows far beyond it.
constexpr double kStepSecondsMax = 10e-6;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using weir::jinja::Template;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\n');
  if (end == std::string_view::npos) return 0;
  const auto parsed = Template::parse(std::string(input.substr(end + 1)));
  if (!parsed) return 0;
  weir::jinja::Limits limits;
  limits.steps = 200'000;
  limits.output_bytes = 1 << 20;
  limits.memory_bytes = 8 << 20;
  const double begin = processor_seconds();
  (void)parsed->render(input.substr(0, end), 1767323045, limits);
  CHECK(processor_seconds() - begin <= static_cast<double>(limits.steps) * kStepSecondsMax);
  return 0;
}
