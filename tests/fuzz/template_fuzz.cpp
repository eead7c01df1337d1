// Fuzzes chat templates: the first line is the variables' JSON, the rest the template. Limits are
// small, so that every input ends soon or shows a hang.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/jinja/template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using weir::text::jinja::Template;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\n');
  if (end == std::string_view::npos) return 0;
  const auto parsed = Template::parse(std::string(input.substr(end + 1)));
  if (!parsed) return 0;
  weir::text::jinja::Limits limits;
  limits.steps = 200'000;
  limits.output_bytes = 1 << 20;
  limits.memory_bytes = 8 << 20;
  (void)(*parsed)->render(input.substr(0, end), 1767323045, limits);
  return 0;
}
