// A processor's configuration: any bytes give a processor or an error; with one, a picture of any
// size, and a video of such pictures, gets a plan that keeps its promises, or an error. The first four bytes are the picture's size;
// then comes JSON with the two files as `preprocessor` and `config`.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "card/config_reader.h"
#include "media/processor/image_plan.h"
#include "media/processor/pixel_values.h"
#include "media/processor/placeholder.h"
#include "media/processor/processor.h"
#include "media/processor/video_plan.h"

namespace {

using namespace weir::media;

int64_t count_of(const std::string& text, const std::string& token) {
  int64_t found = 0;
  for (size_t at = 0; (at = text.find(token, at)) != std::string::npos; ++at) ++found;
  return found;
}

void check_video(const Processor& processor, Size frame, int64_t frames) {
  if (!processor.video.taken) return;
  const auto plan = plan_video(processor, frame, even_frames(frames, 2));
  if (!plan) {
    CHECK(!plan.error().message.empty());
    return;
  }
  const int64_t pixels = plan->frame.canvas.pixels(), tokens = token_count(processor, plan->frame);
  CHECK(plan->frame.views() == 1 && tokens >= 1 && pixels <= view_pixels_max(processor));
  CHECK(plan->moments * processor.frames >= frames);
  for (int64_t moment = 0; moment < plan->moments; ++moment)
    CHECK(moment_step(processor, *plan, moment) >= 0);
  if (pixels > 1 << 16 || frame.pixels() > 1 << 16 || tokens > 1 << 12) return;
  CHECK(count_of(video_text(processor, *plan), processor.video.image) == plan->moments * tokens);
  const Image picture(static_cast<int>(frame.width), static_cast<int>(frame.height));
  const std::vector<const Image*> moment(static_cast<size_t>(processor.frames), &picture);
  CHECK(std::ssize(moment_values(processor, plan->frame, moment).numbers) ==
        3 * processor.frames * pixels);
}

void check_plan(const Processor& processor, Size image) {
  const auto plan = plan_image(processor, image);
  if (!plan) {
    CHECK(!plan.error().message.empty());
    return;
  }
  CHECK(plan->grid.columns >= 1 && plan->grid.rows >= 1 && plan->canvas.pixels() >= 1);
  const int64_t tokens = token_count(processor, *plan);
  CHECK(tokens >= 1 && tokens <= plan->canvas.pixels() + plan->whole.pixels());
  // Large ones take time and tell nothing new.
  int64_t pixels = plan->canvas.pixels() + plan->whole.pixels();
  for (const Size step : plan->resizes) pixels += step.pixels();
  if (pixels > 1 << 16 || image.pixels() > 1 << 16 || tokens > 1 << 12) return;
  const Image picture(static_cast<int>(image.width), static_cast<int>(image.height));
  CHECK(static_cast<int64_t>(pixel_values(processor, *plan, picture).views.size()) ==
        plan->views());
  CHECK(count_of(placeholder_text(processor, *plan), processor.placeholder.image) == tokens);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const auto doc =
      weir::card::parse_config({reinterpret_cast<const char*>(data) + 4, size - 4});
  if (!doc) return 0;
  const auto preprocessor = doc->root()["preprocessor"], config = doc->root()["config"];
  if (preprocessor.error() != simdjson::SUCCESS || config.error() != simdjson::SUCCESS) return 0;
  const auto processor = read_processor(preprocessor.value_unsafe(), config.value_unsafe());
  if (!processor) {
    CHECK(!processor.error().message.empty());
    return 0;
  }
  const Size frame = {1 + (data[0] << 8 | data[1]), 1 + (data[2] << 8 | data[3])};
  check_plan(*processor, frame);
  check_video(*processor, frame, 1 + data[0] % 9);
  return 0;
}
