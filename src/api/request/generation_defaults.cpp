#include "api/request/generation_defaults.h"

#include <algorithm>

#include "api/request/sampling_fields.h"
#include "base/check.h"

namespace weir::api {

void GenerationDefaults::set(std::string_view name, double value, std::string_view source) {
  const auto number = std::ranges::find(sampling_numbers(), name, &SamplingNumber::name);
  CHECK(number != sampling_numbers().end());
  set_value(*number, value, sampling);
  sources[number->name] = source;
}

GenerationDefaults generation_defaults(const card::GenerationSettings& made) {
  GenerationDefaults defaults;
  for (const SamplingNumber& number : sampling_numbers())
    if (number.made && made.*number.made)
      defaults.set(number.name, *(made.*number.made), kFromCheckpoint);
  defaults.eos_ids = made.eos_ids;
  return defaults;
}

}  // namespace weir::api
