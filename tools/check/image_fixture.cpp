#include "image_fixture.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "base/concat.h"
#include "base/file.h"
#include "media/image/decode.h"
#include "media/processor/image_plan.h"
#include "media/processor/pixel_values.h"
#include "media/processor/placeholder.h"
#include "media_fixture.h"

namespace weir::check {

namespace {

namespace fs = std::filesystem;

// Recorded numbers are multiples of 2^-13; the rest is float32's rounding.
constexpr double kBound = 1.0 / (1 << 14) + 2e-6;

std::optional<media::Image> read_picture(const card::Checkpoint& file, std::string_view name) {
  const card::StoredTensor* stored = file.find(name);
  if (stored == nullptr) return std::nullopt;
  media::Image image;
  image.height = static_cast<int>(stored->tensor.shape[0]);
  image.width = static_cast<int>(stored->tensor.shape[1]);
  image.rgb = read_tensor<uint8_t>(file, name, DType::kU8);
  return image;
}

// How often a mark stands in a text, as long as nothing is between: the lengths of its runs.
std::vector<int64_t> runs_of(std::string_view text, std::string_view mark) {
  std::vector<int64_t> runs;
  size_t end = std::string_view::npos;
  for (size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, end)) {
    if (at != end) runs.push_back(0);
    ++runs.back();
    end = at + mark.size();
  }
  return runs;
}

// What the reference lacks are zeros: it fills up to a fixed number of patches.
double difference(const std::vector<float>& ours, const std::vector<float>& theirs) {
  if (ours.size() > theirs.size()) return HUGE_VAL;
  double largest = 0;
  for (size_t i = 0; i < theirs.size(); ++i)
    largest = std::max<double>(largest, std::fabs(theirs[i] - (i < ours.size() ? ours[i] : 0)));
  return largest;
}

std::string wrong(const char* what, double found) {
  return concat(
      {what, " differ by ", std::to_string(found), ", more than ", std::to_string(kBound)});
}

struct Computed {
  std::vector<float> numbers{};
  std::vector<int64_t> runs{};
  int64_t tokens = 0;
  std::string error{};
};

Computed compute(const media::Processor& processor, const std::vector<media::Image>& pictures) {
  Computed out;
  for (const media::Image& picture : pictures) {
    const auto plan = media::plan_image(processor, {picture.width, picture.height});
    if (!plan) return {.error = plan.error().message};
    const media::PixelValues values = media::pixel_values(processor, *plan, picture);
    out.numbers.insert(out.numbers.end(), values.numbers.begin(), values.numbers.end());
    const std::string text = media::placeholder_text(processor, *plan);
    const std::vector<int64_t> runs = runs_of(text, processor.placeholder.image);
    out.runs.insert(out.runs.end(), runs.begin(), runs.end());
    out.tokens += media::token_count(processor, *plan);
  }
  return out;
}

}  // namespace

Result<ImageFixture> ImageFixture::open(const std::string& folder) {
  ImageFixture fixture;
  fixture.name = fs::path(folder).filename().string();
  std::vector<std::string> names;
  for (const char* name : {"image", "image2"})
    if (fs::exists(concat({folder, "/", name, ".png"}))) names.emplace_back(name);
  if (names.empty()) return fail(ErrorCode::kUnsupported, "it has no picture");
  WEIR_ASSIGN(const MediaFiles files, MediaFiles::open(folder));
  for (const std::string& name : names) {
    WEIR_ASSIGN(const std::string bytes,
                read_file(concat({folder, "/", name, ".png"}), kFixtureFileMax));
    WEIR_ASSIGN(media::Image picture, media::decode_image(bytes, {}));
    fixture.pictures.push_back(std::move(picture));
    if (auto recorded = read_picture(files.expected, name))
      fixture.recorded.push_back(*std::move(recorded));
  }
  WEIR_ASSIGN(fixture.processor,
              media::read_processor(files.preprocessor.root(), files.config.root()));
  fixture.pixel_values = read_tensor<float>(files.expected, "pixel_values", DType::kF32);
  fixture.pixel_values_pil = read_tensor<float>(files.expected, "pixel_values_pil", DType::kF32);
  fixture.image_runs = files.placeholder_runs("image");
  if (const card::StoredTensor* features = files.expected.find("image_features"))
    fixture.features = features->tensor.shape[0];
  return fixture;
}

ImageComparison compare_images(const ImageFixture& fixture) {
  ImageComparison out;
  const Computed torch = compute(fixture.processor, fixture.pictures);
  out.failure = torch.error;
  if (!out.failure.empty()) return out;
  out.tokens = torch.tokens;
  out.difference = difference(torch.numbers, fixture.pixel_values);
  if (!fixture.pixel_values_pil.empty()) {
    media::Processor pillow = fixture.processor;
    pillow.arithmetic = media::Arithmetic::kPillow;
    out.pil_difference =
        difference(compute(pillow, fixture.pictures).numbers, fixture.pixel_values_pil);
  }
  // A prompt of one placeholder that the model itself expands says nothing of its length.
  const bool expanded = fixture.image_runs != std::vector<int64_t>{1};
  if (fixture.recorded != fixture.pictures) {
    out.failure = "the decoded picture is another than the recorded one";
  } else if (!(out.difference <= kBound)) {
    out.failure = wrong("pixel_values", out.difference);
  } else if (!(out.pil_difference <= kBound)) {
    out.failure = wrong("pixel_values_pil", out.pil_difference);
  } else if (expanded && torch.runs != fixture.image_runs) {
    out.failure = "the image's tokens lie otherwise than in the recorded prompt";
  } else if (fixture.features != 0 && out.tokens != fixture.features) {
    out.failure = concat({std::to_string(out.tokens), " rows of features, expected ",
                          std::to_string(fixture.features)});
  }
  return out;
}

}  // namespace weir::check
