#include "media/features/sound_plan.h"

#include <algorithm>
#include <cstdio>

#include "base/concat.h"

namespace weir::media {
namespace {

int64_t up(int64_t number, int64_t divisor) { return (number + divisor - 1) / divisor; }

// Of kCausal: whole frames, and one sample more, which the reference cuts and drops.
int64_t causal_frames(const FrontEnd& front_end, int64_t samples) {
  const int64_t after_first = front_end.lead + samples - (front_end.frame + 1);
  return after_first < 0 ? 0 : after_first / front_end.hop + 1;
}

// A frame is heard if it begins within the sound; or, where the others become zeros, if it also
// ends there.
int64_t heard_frames(const FrontEnd& front_end, const SoundPlan& plan) {
  if (front_end.unheard_zero) return causal_frames(front_end, plan.samples);
  return std::min(up(plan.samples, front_end.hop), plan.frames);
}

int64_t rows_of(const FrontEnd& front_end, const SoundPlan& plan) {
  switch (front_end.row_count) {
    case RowCount::kHalved:
      return plan.frames / 2;
    case RowCount::kPooled:
      return up(plan.heard, 2) / 2;  // A convolution of stride 2, then the mean of pairs.
    case RowCount::kSubsampled:
      return std::min(up(up(plan.heard, 2), 2), front_end.rows_max);
    case RowCount::kFixed:
      break;
  }
  return plan.frames > 0 ? front_end.rows_max : 0;
}

std::string seconds_of(int64_t samples, int rate) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", static_cast<double>(samples) / rate);
  return text;
}

}  // namespace

Result<SoundPlan> plan_sound(const FrontEnd& front_end, int64_t samples) {
  if (samples > front_end.samples_max)
    return fail(ErrorCode::kTooLarge,
                concat({"the sound lasts ", seconds_of(samples, front_end.rate),
                        " s; this model hears at most ",
                        seconds_of(front_end.samples_max, front_end.rate), " s at once"}));
  SoundPlan plan;
  plan.samples = std::max<int64_t>(samples, 0);
  plan.padded = up(plan.samples, front_end.multiple) * front_end.multiple;
  plan.frames = front_end.framing == Framing::kCentred ? plan.padded / front_end.hop
                                                       : causal_frames(front_end, plan.padded);
  plan.heard = heard_frames(front_end, plan);
  plan.rows = rows_of(front_end, plan);
  if (plan.rows > 0) return plan;
  return fail(ErrorCode::kInvalid, concat({"the sound has ", std::to_string(plan.samples),
                                           " samples at ", std::to_string(front_end.rate),
                                           " Hz, too few for this model to hear anything"}));
}

std::string placeholder_text(const FrontEnd& front_end, const SoundPlan& plan) {
  const SoundPlaceholder& marks = front_end.placeholder;
  std::string out = marks.before;
  for (int64_t row = 0; row < plan.rows; ++row) out += marks.sound;
  return out + marks.after;
}

}  // namespace weir::media
