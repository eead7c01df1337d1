#include "picture_check.h"

#include <algorithm>

#include "card/safetensors.h"
#include "difference.h"
#include "encoder_check.h"
#include "family_fixture.h"
#include "image_fixture.h"
#include "media/processor/image_plan.h"
#include "media/processor/pixel_values.h"
#include "media_fixture.h"
#include "sched/prompt_media.h"

namespace weir::check {

namespace {

class PictureCheck : public EncoderCheck {
 public:
  // `features`: what the tower gave, where that was recorded.
  PictureCheck(const ImageFixture& images, std::vector<float> features, const card::ModelCard& card,
               const Runtime& runtime)
      : EncoderCheck(card, runtime), images_(images), features_(std::move(features)) {}

  Result<std::vector<Encoded>> encode(bool recorded) override {
    std::vector<media::PixelValues> all;
    std::vector<Encoded> out;
    size_t at = 0;
    for (const media::Image& picture : images_.pictures) {
      WEIR_ASSIGN(const media::ImagePlan plan,
                  media::plan_image(images_.processor, {picture.width, picture.height}));
      media::PixelValues& values =
          all.emplace_back(media::pixel_values(images_.processor, plan, picture));
      std::vector<float>& numbers = values.numbers;
      if (recorded && at + numbers.size() <= images_.pixel_values.size())
        std::copy_n(images_.pixel_values.begin() + static_cast<std::ptrdiff_t>(at), numbers.size(),
                    numbers.begin());
      at += numbers.size();
      if (!recorded) round_as_given(numbers);
      out.push_back(room(encoder_->feature_rows(values.views)));
      out.back().grid = media::token_grid(images_.processor, values.views[0]);
    }
    std::vector<encoder::Picture> pictures;
    for (size_t i = 0; i < all.size(); ++i) pictures.push_back({&all[i], out[i].rows});
    WEIR_TRY(run(pictures));
    return out;
  }

 private:
  Result<encoder::EncoderOptions> options() const override {
    return encoder::EncoderOptions{.view_pixels_max = media::view_pixels_max(images_.processor)};
  }
  int64_t token() const override { return placeholder_id(card_.config.root(), "image"); }

  std::string compare_rows(const std::vector<Encoded>& recorded, const std::string&,
                           Report&) const override {
    std::vector<float> found;
    for (const Encoded& encoded : recorded)
      found.insert(found.end(), encoded.rows.begin(),
                   encoded.rows.begin() + static_cast<std::ptrdiff_t>(encoded.of_level));
    return found.size() == features_.size()
               ? figure("features", largest_difference(found, features_))
               : "";
  }

  void place(FamilyFixture& fixture, const std::vector<Encoded>& pictures) const override {
    if (model::has_three_positions(model_->spec())) add_positions(fixture, pictures);
    add_spans(fixture);
  }

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
    const std::vector<int32_t>& ids = fixture.input_ids;
    sched::PromptMedia media;
    auto place = ids.begin();
    for (const Encoded& encoded : pictures) {
      place = std::find(place, ids.end(), static_cast<int32_t>(token()));
      sched::Medium& picture = media.items.emplace_back();
      picture.first = static_cast<int32_t>(place - ids.begin());
      picture.tokens = static_cast<int32_t>(encoded.grid.pixels());
      picture.grid_rows = static_cast<int32_t>(encoded.grid.height);
      picture.grid_columns = static_cast<int32_t>(encoded.grid.width);
      place += picture.tokens;
    }
    fixture.rope_positions.resize(ids.size());
    sched::rope_positions(media, 0, fixture.rope_positions);
    fixture.rope_shift = sched::shift_of(media);
  }

  const ImageFixture& images_;
  const std::vector<float> features_;
};

}  // namespace

Result<void> check_pictures(const std::string& folder, const card::ModelCard& card,
                            const Runtime& runtime, Report& report) {
  const auto plain = FamilyFixture::open(folder, Answers::kImages);
  if (!plain && plain.error().code == ErrorCode::kUnsupported) return {};
  if (!plain) return tl::unexpected(plain.error());
  WEIR_ASSIGN(const ImageFixture images, ImageFixture::open(folder));
  WEIR_ASSIGN(const MediaFiles files, MediaFiles::open(folder));
  PictureCheck check(images, read_tensor<float>(files.expected, "image_features", DType::kF32),
                     card, runtime);
  return check.check_answers(*plain, images.name + ", pictures", report);
}

}  // namespace weir::check
