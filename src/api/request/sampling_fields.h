// The numbers that say how tokens are sampled: one table for requests, for the defaults that they
// fall back on, for /props and for what the log says at start.
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "api/request/generate_request.h"
#include "api/request/generation_defaults.h"
#include "base/json.h"
#include "card/generation_settings.h"
#include "sample/sampling_params.h"

namespace weir::api {

struct SamplingNumber {
  std::string_view name;  // In requests, /props and the log: llama-server's.
  std::variant<float sample::SamplingParams::*, int32_t sample::SamplingParams::*> value;
  std::variant<std::optional<double> SamplingFields::*, std::optional<int64_t> SamplingFields::*>
      asked;
  // What the model's makers may say; null: nothing.
  std::optional<double> card::GenerationSettings::*made = nullptr;
};

std::span<const SamplingNumber> sampling_numbers();

double value_of(const SamplingNumber& number, const sample::SamplingParams& params);
void write_value(JsonWriter& json, const SamplingNumber& number,
                 const sample::SamplingParams& params);
void set_value(const SamplingNumber& number, double value, sample::SamplingParams& params);

// What a request leaves out stays as it is.
void apply_asked(const SamplingFields& request, sample::SamplingParams& params);

// The defaults with where they come from, but for those that do nothing.
std::string describe(const GenerationDefaults& defaults);

}  // namespace weir::api
