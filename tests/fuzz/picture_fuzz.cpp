// Arbitrary bytes as an image's or a sound's address in a request: it is read, or refused with a sentence that
// names its field, and all memory that was lent for it comes back.
#include <cstdint>
#include <string_view>

#include "api/media/media_set.h"
#include "base/check.h"
#include "media/processor/image_plan.h"

namespace {

using namespace weir::api;

constexpr const char* kField = "messages[0].content[0].image_url";
constexpr int32_t kTokensMax = 64;

weir::media::Processor processor() {
  weir::media::Processor made;
  made.width = made.height = 28;
  made.unit = 14;
  return made;
}

weir::media::FrontEnd front_end() {
  weir::media::FrontEnd made;
  made.framing = weir::media::Framing::kCausal;
  made.samples_max = 4000;
  made.row_count = weir::media::RowCount::kSubsampled;
  made.rows_max = kTokensMax;
  return made;
}

void check_error(const weir::Error& error) {
  CHECK(!error.message.empty());
  CHECK(error.param == kField || error.code == weir::ErrorCode::kOverloaded);
}

void check_seen(const SeenMedium& seen, const ApiConfig& config) {
  const int64_t tokens = seen.tokens(config);
  CHECK(tokens >= 1 && tokens <= kTokensMax);
  const bool sound = seen.medium == Medium::kSound;
  CHECK((seen.input.sound != nullptr) == sound && (seen.input.picture != nullptr) != sound);
  CHECK(!(sound ? seen.input.sound->numbers : seen.input.picture->pixels.numbers).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view url(reinterpret_cast<const char*>(data), size);
  const weir::media::Processor made = processor();
  ApiConfig config;
  config.processor = &made;
  const weir::media::FrontEnd hears = front_end();
  config.front_end = &hears;
  config.media_limits.sound_file_bytes_max = 1 << 16;
  config.media_limits.image_file_bytes_max = 1 << 16;
  config.media_limits.pixels_max = 1 << 14;
  config.media_limits.folder = "/nonexistent";
  MemoryBudget budget(8 << 20);
  {
    const auto source = media_at(medium_of_address(url), kField, url);
    if (!source) {
      check_error(source.error());
      return 0;
    }
    MediaSet set;
    if (const auto checked = check_media(config, {&*source, 1}); !checked) {
      check_error(checked.error());
      return 0;
    }
    set.want(config, {*source}, {.tokens_max = kTokensMax});
    CHECK(set.is_wanted() && !set.seen());
    set.read(budget, {});
    const auto seen = set.seen();
    CHECK(!set.is_wanted() && seen);
    if (*seen)
      check_seen((*seen)->front(), config);
    else
      check_error(seen->error());
  }
  CHECK(budget.used() == 0);
  return 0;
}
