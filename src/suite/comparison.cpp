#include "suite/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace weir::suite {

namespace {

// Of two settings that may be compared these are equal.
struct Condition {
  const char* name;
  std::string Setting::*field;
};
constexpr std::array kConditions = {
    Condition{"model", &Setting::model},         Condition{"--url", &Setting::url},
    Condition{"processor", &Setting::processor}, Condition{"kernels", &Setting::isa},
    Condition{"--compute", &Setting::compute},   Condition{"--kv-cache", &Setting::kv}};

tl::unexpected<Error> differs(const char* name, const std::string& now, const std::string& old) {
  return fail(ErrorCode::kConfig, std::string("--against: expected a report of the same ") + name +
                                      ", '" + now + "'; found one of '" + old + "'");
}

std::string percent(double share) { return number_text(100 * share) + " %"; }

// By which share `now` is worse; at most 0 if it is not.
double worse_by(const Figure& now, const Figure& old) {
  // Of times and counts that were 0 every rise is beyond any share.
  if (old.value == 0) return now.better == Better::kLess && now.value > 0 ? INFINITY : 0;
  const double change = (now.value - old.value) / std::abs(old.value);
  return now.better == Better::kMore ? -change : change;
}

// Beside a time or a speed that others may have spoilt.
std::string others_text(const PartRun& part) {
  constexpr double kWorthSaying = 0.1;
  return part.others < kWorthSaying
             ? ""
             : " (other programs took " + percent(part.others) + " of the cores meanwhile)";
}

std::string describe(const Figure& now, const Figure& old, const PartRun& part) {
  if (now.better == Better::kSame)
    return value_text(now) + ", was " + value_text(old) + ": they should be equal";
  const double worse = worse_by(now, old);
  return value_text(now) + ", was " + number_text(old.value) +
         (std::isfinite(worse) ? ": " + percent(worse) + " worse, " : ": ") +
         percent(now.tolerance) + " is allowed" + others_text(part);
}

bool is_worse(const Figure& now, const Figure& old) {
  if (now.better == Better::kSame) return now.text != old.text;
  return now.better != Better::kNeither && worse_by(now, old) > now.tolerance;
}

bool was_measured(const Figure& figure) { return figure.skipped.empty() && figure.failure.empty(); }

}  // namespace

Result<void> check_comparable(const Setting& now, const Setting& old) {
  for (const Condition& each : kConditions)
    if (now.*each.field != old.*each.field)
      return differs(each.name, now.*each.field, old.*each.field);
  if (now.threads != old.threads)
    return differs("number of threads", std::to_string(now.threads), std::to_string(old.threads));
  if (now.quick != old.quick)
    return differs("kind", now.quick ? "--quick" : "full", old.quick ? "--quick" : "full");
  return {};
}

std::vector<Regression> find_regressions(const Report& now, const Report& old) {
  std::vector<Regression> found;
  for (const Figure& before : old.figures) {
    if (!was_measured(before) || before.better == Better::kNeither) continue;
    const auto part = std::ranges::find(now.parts, before.part, &PartRun::name);
    if (part == now.parts.end()) continue;
    const auto same = std::ranges::find_if(now.figures, [&](const Figure& figure) {
      return figure.part == before.part && figure.name == before.name;
    });
    if (same == now.figures.end()) {
      found.push_back({before.part, before.name, "not measured, was " + value_text(before)});
    } else if (!was_measured(*same)) {
      found.push_back(
          {before.part, before.name, verdict_text(*same) + "; was " + value_text(before)});
    } else if (is_worse(*same, before)) {
      found.push_back({before.part, before.name, describe(*same, before, *part)});
    }
  }
  return found;
}

}  // namespace weir::suite
