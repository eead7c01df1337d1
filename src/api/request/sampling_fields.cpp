#include "api/request/sampling_fields.h"

#include <array>

namespace weir::api {

namespace {

using P = sample::SamplingParams;
using G = SamplingFields;
using M = card::GenerationSettings;

constexpr auto kNumbers = std::to_array<SamplingNumber>({
    {"temperature", &P::temperature, &G::temperature, &M::temperature},
    {"top_k", &P::top_k, &G::top_k, &M::top_k},
    {"top_p", &P::top_p, &G::top_p, &M::top_p},
    {"min_p", &P::min_p, &G::min_p, &M::min_p},
    {"typical_p", &P::typical_p, &G::typical_p, &M::typical_p},
    {"top_n_sigma", &P::top_n_sigma, &G::top_n_sigma},
    {"xtc_probability", &P::xtc_probability, &G::xtc_probability},
    {"xtc_threshold", &P::xtc_threshold, &G::xtc_threshold},
    {"dynatemp_range", &P::dynatemp_range, &G::dynatemp_range},
    {"dynatemp_exponent", &P::dynatemp_exponent, &G::dynatemp_exponent},
    {"repeat_penalty", &P::repetition_penalty, &G::repetition_penalty, &M::repetition_penalty},
    {"repeat_last_n", &P::repeat_last_n, &G::repeat_last_n},
    {"presence_penalty", &P::presence_penalty, &G::presence_penalty},
    {"frequency_penalty", &P::frequency_penalty, &G::frequency_penalty},
    {"dry_multiplier", &P::dry_multiplier, &G::dry_multiplier},
    {"dry_base", &P::dry_base, &G::dry_base},
    {"dry_allowed_length", &P::dry_allowed_length, &G::dry_allowed_length},
    {"dry_penalty_last_n", &P::dry_penalty_last_n, &G::dry_penalty_last_n},
});

}  // namespace

std::span<const SamplingNumber> sampling_numbers() { return kNumbers; }

double value_of(const SamplingNumber& number, const P& params) {
  return std::visit([&](auto member) { return static_cast<double>(params.*member); }, number.value);
}

void write_value(JsonWriter& json, const SamplingNumber& number, const P& params) {
  std::visit([&](auto member) { json.value(params.*member); }, number.value);
}

void set_value(const SamplingNumber& number, double value, P& params) {
  if (const auto* real = std::get_if<float P::*>(&number.value))
    params.*(*real) = static_cast<float>(value);
  else
    params.*std::get<int32_t P::*>(number.value) = static_cast<int32_t>(value);
}

void apply_asked(const SamplingFields& request, P& params) {
  for (const SamplingNumber& number : kNumbers)
    std::visit(
        [&](auto member) {
          if (request.*member) set_value(number, static_cast<double>(*(request.*member)), params);
        },
        number.asked);
}

std::string describe(const GenerationDefaults& defaults) {
  std::string text;
  for (const std::string_view source : {kFromCommandLine, kFromCheckpoint, kFromServer}) {
    const size_t before = text.size();
    for (const SamplingNumber& number : kNumbers) {
      const auto found = defaults.sources.find(number.name);
      const bool named = found != defaults.sources.end();
      const double value = value_of(number, defaults.sampling);
      if ((named ? found->second : kFromServer) != source) continue;
      if (!named && value == value_of(number, P())) continue;
      text.append(text.empty() ? "" : " ").append(number.name) += '=';
      JsonWriter json(text);
      write_value(json, number, defaults.sampling);
    }
    if (text.size() > before) text.append(" (").append(source) += ')';
  }
  return text;
}

}  // namespace weir::api
