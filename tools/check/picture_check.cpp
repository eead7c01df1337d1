#include "picture_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/concat.h"
#include "card/safetensors.h"
#include "difference.h"
#include "encoder/encoder.h"
#include "family_fixture.h"
#include "image_fixture.h"
#include "media/processor/image_plan.h"
#include "media/processor/pixel_values.h"
#include "sched/prompt_media.h"

namespace weir::check {

namespace {

// The prompt's token that a row of features takes the place of.
int64_t picture_token(JsonValue config) {
  int64_t id = -1;
  for (const char* key : {"image_token_id", "image_token_index"})
    if (config[key].get(id) == simdjson::SUCCESS) break;
  return id;
}

// The reference was given its processor's numbers rounded to multiples of 2^-13.
float as_given(float number) { return std::nearbyint(number * 0x1p13f) * 0x1p-13f; }

// A picture's numbers, as the tower reads them, and its rows of features with their levels.
struct Encoded {
  media::PixelValues values{};
  std::vector<float> features{};
  size_t of_level = 0;  // Numbers of features.
};

class PictureCheck {
 public:
  PictureCheck(const ImageFixture& images, const card::ModelCard& card, const Runtime& runtime)
      : images_(images), card_(card), runtime_(runtime) {}

  Result<void> load() {
    WEIR_ASSIGN(encoder_, encoder::Encoder::load(
                              card_,
                              {.compute = runtime_.compute,
                               .view_pixels_max = media::view_pixels_max(images_.processor)},
                              *runtime_.ops, *runtime_.team));
    const model::ModelOptions options = {
        .compute = runtime_.compute, .rows_max = 256, .context_max = 512};
    WEIR_ASSIGN(model_, model::Model::load(card_, options, *runtime_.ops, *runtime_.team));
    return {};
  }

  // By the picture's file; `recorded`: with the recorded numbers in place of its own.
  Result<std::vector<Encoded>> encode(bool recorded) {
    std::vector<Encoded> out;
    size_t at = 0;
    for (const media::Image& picture : images_.pictures) {
      WEIR_ASSIGN(const media::ImagePlan plan,
                  media::plan_image(images_.processor, {picture.width, picture.height}));
      Encoded& encoded = out.emplace_back();
      encoded.values = media::pixel_values(images_.processor, plan, picture);
      std::vector<float>& numbers = encoded.values.numbers;
      if (recorded && at + numbers.size() <= images_.pixel_values.size())
        std::copy_n(images_.pixel_values.begin() + static_cast<std::ptrdiff_t>(at), numbers.size(),
                    numbers.begin());
      at += numbers.size();
      if (!recorded) std::ranges::transform(numbers, numbers.begin(), as_given);
      const auto rows = static_cast<size_t>(encoder_->feature_rows(encoded.values.views));
      encoded.of_level = rows * static_cast<size_t>(encoder_->width());
      encoded.features.resize(encoded.of_level * static_cast<size_t>(1 + encoder_->levels()), NAN);
    }
    std::vector<encoder::Picture> pictures;
    for (Encoded& encoded : out) pictures.push_back({&encoded.values, encoded.features});
    WEIR_TRY(encoder_->begin(pictures));
    while (!encoder_->advance(*runtime_.team, 1)) {
    }
    return out;
  }

  // The fixture's prompt, whose placeholders begin with the features.
  Result<FamilyFixture> prompt(FamilyFixture fixture, const std::vector<Encoded>& pictures) const {
    const int64_t token = picture_token(card_.config.root());
    std::vector<model::VectorRows> features;
    for (const Encoded& encoded : pictures)
      for (size_t i = 0; i < encoded.of_level; i += static_cast<size_t>(encoder_->width()))
        features.push_back({.rows = 1,
                            .vectors = encoded.features.data() + i,
                            .levels = encoder_->levels(),
                            .level_stride = static_cast<int64_t>(encoded.of_level)});
    auto& ids = fixture.input_ids;
    // One that the model itself expands.
    if (std::ranges::count(ids, token) == 1 && features.size() > 1) {
      const auto place = std::ranges::find(ids, static_cast<int32_t>(token));
      ids.insert(place, features.size() - 1, static_cast<int32_t>(token));
    }
    if (std::cmp_not_equal(std::ranges::count(ids, token), features.size()))
      return fail(ErrorCode::kConfig,
                  concat({fixture.name,
                          ": expected as many rows of features as the prompt has "
                          "places for, ",
                          std::to_string(std::ranges::count(ids, token)), ", found ",
                          std::to_string(features.size())}));
    if (model::has_three_positions(model_->spec())) add_positions(fixture, pictures);
    fixture.rows.assign(ids.size(), {});
    size_t next = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != token) continue;
      fixture.rows[i] = features[next++];
      ids[i] = 0;  // An id that the vocabulary has.
    }
    add_spans(fixture);
    return fixture;
  }

  Result<FamilyComparison> compare(const FamilyFixture& fixture) {
    return compare_family(fixture, *model_, *runtime_.team, runtime_.kv_format);
  }
  const encoder::Encoder& encoder() const { return *encoder_; }

 private:
  void add_spans(FamilyFixture& fixture) const {
    const auto end = static_cast<int32_t>(fixture.input_ids.size());
    const model::BothWays both_ways = model_->spec().both_ways;
    if (both_ways == model::BothWays::kPrompt) fixture.spans = {{0, end}};
    if (both_ways != model::BothWays::kRuns) return;
    for (int32_t i = 0; i < end; ++i) {
      if (fixture.rows[static_cast<size_t>(i)].vectors == nullptr) continue;
      if (fixture.spans.empty() || fixture.spans.back().end != i) fixture.spans.push_back({i, i});
      fixture.spans.back().end = i + 1;
    }
  }

  // Of pictures of one view each.
  void add_positions(FamilyFixture& fixture, const std::vector<Encoded>& pictures) const {
    const auto token = static_cast<int32_t>(picture_token(card_.config.root()));
    const std::vector<int32_t>& ids = fixture.input_ids;
    sched::PromptMedia media;
    auto place = ids.begin();
    for (const Encoded& encoded : pictures) {
      const media::Size grid = media::token_grid(images_.processor, encoded.values.views[0]);
      place = std::find(place, ids.end(), token);
      sched::Medium& picture = media.items.emplace_back();
      picture.first = static_cast<int32_t>(place - ids.begin());
      picture.tokens = static_cast<int32_t>(grid.pixels());
      picture.grid_rows = static_cast<int32_t>(grid.height);
      picture.grid_columns = static_cast<int32_t>(grid.width);
      place += picture.tokens;
    }
    fixture.rope_positions.resize(ids.size());
    sched::rope_positions(media, 0, fixture.rope_positions);
    fixture.rope_shift = sched::shift_of(media);
  }

  const ImageFixture& images_;
  const card::ModelCard& card_;
  const Runtime& runtime_;
  std::unique_ptr<encoder::Encoder> encoder_;
  std::unique_ptr<model::Model> model_;
};

std::vector<float> all_features(const std::vector<Encoded>& pictures, bool levels) {
  std::vector<float> out;
  for (const Encoded& encoded : pictures) {
    const size_t count = levels ? encoded.features.size() : encoded.of_level;
    out.insert(out.end(), encoded.features.begin(),
               encoded.features.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return out;
}

// The tower's output, where it was recorded.
Result<std::vector<float>> recorded_features(const std::string& folder) {
  WEIR_ASSIGN(FileView view, FileView::map(folder + "/expected.safetensors"));
  WEIR_ASSIGN(const card::Checkpoint expected, card::open_safetensors(std::move(view)));
  const card::StoredTensor* stored = expected.find("image_features");
  if (stored == nullptr || stored->tensor.type != DType::kF32) return {};
  std::vector<float> values(static_cast<size_t>(stored->tensor.elements()));
  std::memcpy(values.data(), stored->tensor.data, values.size() * sizeof(float));
  return values;
}

// One line: from the recorded numbers, or from the file.
Result<void> check_prompt(PictureCheck& check, const FamilyFixture& plain,
                          const std::vector<Encoded>& pictures, const std::string& name,
                          const std::string& about, bool exact, Report& report) {
  WEIR_ASSIGN(const FamilyFixture fixture, check.prompt(plain, pictures));
  WEIR_ASSIGN(const FamilyComparison c, check.compare(fixture));
  const std::string failure = family_failure(fixture, c, exact);
  char detail[200];
  std::snprintf(detail, sizeof detail,
                "%sone pass %.1e, greedy %.1e (bound %.1e), %d of %zu tokens equal", about.c_str(),
                c.pass_difference, c.greedy_difference, static_cast<double>(fixture.bound),
                c.greedy_equal, fixture.gen_ids.size());
  failure.empty() ? report.pass(name, detail) : report.fail(name, failure + "; " + detail);
  return {};
}

std::string number(const char* what, double value) {
  char text[80];
  std::snprintf(text, sizeof text, "%s %.1e, ", what, value);
  return text;
}

}  // namespace

Result<void> check_pictures(const std::string& folder, const card::ModelCard& card,
                            const Runtime& runtime, Report& report) {
  const auto plain = FamilyFixture::open(folder, Answers::kImages);
  if (!plain && plain.error().code == ErrorCode::kUnsupported) return {};
  if (!plain) return tl::unexpected(plain.error());
  const std::string name = folder_name(folder) + ", pictures";
  WEIR_ASSIGN(const ImageFixture images, ImageFixture::open(folder));
  PictureCheck check(images, card, runtime);
  if (const auto loaded = check.load(); !loaded) {
    if (loaded.error().code != ErrorCode::kUnsupported) return tl::unexpected(loaded.error());
    report.skip(name, loaded.error().message);
    return {};
  }
  WEIR_ASSIGN(const std::vector<Encoded> recorded, check.encode(/*recorded=*/true));
  WEIR_ASSIGN(const std::vector<Encoded> of_file, check.encode(/*recorded=*/false));
  WEIR_ASSIGN(const std::vector<float> expected, recorded_features(folder));
  std::string about;
  if (const std::vector<float> features = all_features(recorded, /*levels=*/false);
      expected.size() == features.size())
    about = number("features", largest_difference(features, expected));
  const bool exact =
      runtime.compute == model::Compute::kExact && runtime.kv_format == kernels::FloatType::kF32;
  WEIR_TRY(check_prompt(check, *plain, recorded, name, about, exact, report));
  about = number("features by", largest_difference(all_features(of_file, /*levels=*/true),
                                                   all_features(recorded, /*levels=*/true)));
  return check_prompt(check, *plain, of_file, name + " from the file", about, exact, report);
}

}  // namespace weir::check
