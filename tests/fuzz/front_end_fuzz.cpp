// A front end's configuration: any bytes give a front end or an error; with one, a sound of any
// length gets a plan that keeps its promises, or an error. The first three bytes are the sound's
// length; then comes JSON with the two files as `preprocessor` and `config`.
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "card/config_reader.h"
#include "media/features/front_end.h"
#include "media/features/sound_features.h"
#include "media/features/sound_plan.h"

namespace {

using namespace weir::media;

void check_plan(const FrontEnd& front_end, int64_t samples) {
  const auto plan = plan_sound(front_end, samples);
  if (!plan) {
    CHECK(!plan.error().message.empty());
    return;
  }
  CHECK(plan->padded >= samples && plan->frames >= 1);
  CHECK(plan->heard >= 0 && plan->heard <= plan->frames && plan->rows >= 1);
  // Large ones take time and tell nothing new.
  if (plan->padded > 1 << 18 || plan->frames * front_end.fft > 1 << 22 || plan->rows > 1 << 12)
    return;
  std::vector<float> sound(static_cast<size_t>(samples));
  for (size_t i = 0; i < sound.size(); ++i) sound[i] = static_cast<float>(i % 97) / 97 - 0.5f;
  const SoundFeatures features = sound_features(front_end, *plan, sound);
  CHECK(static_cast<int64_t>(features.numbers.size()) == plan->frames * front_end.mels);
  for (const float number : features.numbers) CHECK(std::isfinite(number));
  CHECK(placeholder_text(front_end, *plan).size() >=
        front_end.placeholder.sound.size() * static_cast<size_t>(plan->rows));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const auto doc = weir::card::parse_config({reinterpret_cast<const char*>(data) + 3, size - 3});
  if (!doc) return 0;
  const auto preprocessor = doc->root()["preprocessor"], config = doc->root()["config"];
  if (preprocessor.error() != simdjson::SUCCESS || config.error() != simdjson::SUCCESS) return 0;
  const auto front_end = read_front_end(preprocessor.value_unsafe(), config.value_unsafe());
  if (!front_end) {
    CHECK(!front_end.error().message.empty());
    return 0;
  }
  check_plan(*front_end, data[0] << 16 | data[1] << 8 | data[2]);
  return 0;
}
