#include "encoder/encoder.h"

#include <algorithm>

#include "base/check.h"
#include "encoder/families.h"

namespace weir::encoder {

namespace {

// Far above any published tower's: a view has at most kViewPixelsMax pixels.
constexpr int64_t kRowsMax = int64_t{1} << 20;

int32_t head_dim_of(const EncoderSpec& spec) {
  for (const Stage& stage : spec.stages)
    if (const auto* attention = std::get_if<Attention>(&stage.op)) return attention->head_dim;
  return 0;
}

// Sets where each view's rows begin.
void line_up(std::vector<View>& views) {
  int32_t row = 0;
  for (View& view : views) {
    view.row_begin = row;
    row = view.row_end();
  }
}

}  // namespace

Encoder::Encoder(EncoderSpec spec, const EncoderOptions& options, const kernels::Ops& ops)
    : spec_(std::move(spec)), options_(options), ops_(ops) {}

Result<std::unique_ptr<Encoder>> Encoder::bind(const card::ModelCard& card,
                                               const EncoderOptions& options,
                                               const kernels::Ops& ops, int members) {
  WEIR_ASSIGN(EncoderSpec spec, spec_from_config(card.config.root()));
  std::unique_ptr<Encoder> encoder(new Encoder(std::move(spec), options, ops));
  WEIR_TRY(encoder->bind_weights(card));
  WEIR_TRY(encoder->make_workspace(members));
  return encoder;
}

Result<std::unique_ptr<Encoder>> Encoder::load(const card::ModelCard& card,
                                               const EncoderOptions& options,
                                               const kernels::Ops& ops, ThreadTeam& team) {
  WEIR_ASSIGN(auto encoder, bind(card, options, ops, team.members()));
  encoder->pack_until(team, {}, Clock::time_point::max());
  WEIR_TRY(encoder->files().check());
  return encoder;
}

Result<void> Encoder::bind_weights(const card::ModelCard& card) {
  checkpoint_ = card.tensors;
  const bool fast = options_.compute == model::Compute::kFast;
  TowerBinder binder(*checkpoint_, spec_, card.weights,
                     {.int8 = fast, .bf16_prompts = fast && ops_.prompts_in_bf16}, store_);
  const model::Buffer<float> angles =
      scratch_.ask<float>(model::BufferUse::kWholePass,
                          {.per_row = spec_.rope.kind == Rope::kNone ? 0 : head_dim_of(spec_)});
  // The streams hold what any stage gives, for each row that the first one gives: of rows that
  // stand for several patches there are fewer.
  int32_t width = 0;
  int64_t patches_of_row = 1, widest = 0;
  for (const Stage& stage : spec_.stages) {
    scratch_.next_sublayer();
    layers_.push_back(make_layer({.binder = binder,
                                  .scratch = scratch_,
                                  .spec = spec_,
                                  .stage = stage,
                                  .width = width,
                                  .exact = !fast,
                                  .angles = angles},
                                 width));
    if (binder.failed()) return binder.finish();
    patches_of_row *= layers_.back()->patches_joined();
    widest = std::max(widest, (width + patches_of_row - 1) / patches_of_row);
  }
  for (model::Buffer<float>& stream : streams_)
    stream = scratch_.ask<float>(model::BufferUse::kWholePass, {.per_row = widest});
  width_ = width;
  tally_ = binder.tally();
  return binder.finish();
}

Result<void> Encoder::make_workspace(int members) {
  const int64_t patch_pixels = int64_t{spec_.patch} * spec_.patch;
  // A class row besides.
  const int64_t rows = options_.view_pixels_max / patch_pixels + 1;
  if (rows > kRowsMax)
    return fail(ErrorCode::kConfig, "pictures: expected at most " + std::to_string(kRowsMax) +
                                        " patches of one, found " + std::to_string(rows));
  rows_max_ = static_cast<int32_t>(rows);
  WEIR_ASSIGN(workspace_, Workspace::create(scratch_, rows_max_, members));
  return {};
}

bool Encoder::pack_until(ThreadTeam& team, const std::function<void(int64_t, int64_t)>& progress,
                         Clock::time_point until) {
  return store_.pack(team, progress, until);
}

model::ModelMemory Encoder::memory() const {
  return {.packed_weights = store_.packed_bytes(),
          .mapped_weights = store_.mapped_bytes(),
          .scratch = workspace_.bytes(),
          .formats = tally_.formats(),
          .parameters = tally_.numbers()};
}

model::WeightFiles Encoder::files() const {
  return {.all = checkpoint_->files(), .in_place = store_.mapped_files(), .fault = store_.fault()};
}

View Encoder::view_of(const float* numbers, media::Size pixels) const {
  return {.numbers = numbers,
          .height = static_cast<int32_t>(pixels.height / spec_.patch),
          .width = static_cast<int32_t>(pixels.width / spec_.patch),
          .block = spec_.layout == media::PixelLayout::kBlocks ? spec_.merge : 1};
}

Result<void> Encoder::check(View view, media::Size pixels) const {
  const auto wrong = [&](const std::string& why) {
    return fail(ErrorCode::kInvalid, "a picture of " + std::to_string(pixels.width) + " x " +
                                         std::to_string(pixels.height) + " pixels: " + why);
  };
  if (pixels.width < spec_.patch || pixels.height < spec_.patch ||
      pixels.width % spec_.patch != 0 || pixels.height % spec_.patch != 0)
    return wrong("expected sides of a multiple of " + std::to_string(spec_.patch));
  if (pixels.pixels() > options_.view_pixels_max)
    return wrong("expected at most " + std::to_string(options_.view_pixels_max));
  for (const auto& layer : layers_) {
    if (const std::string why = layer->refusal(view); !why.empty()) return wrong(why);
    layer->reshape(view);
  }
  return {};
}

int32_t Encoder::rows_of(View view) const {
  int32_t rows = 0;
  for (const auto& layer : layers_) {
    layer->reshape(view);
    rows = std::max(rows, view.rows());
  }
  return rows;
}

int64_t Encoder::features_of(View view) const {
  for (const auto& layer : layers_) layer->reshape(view);
  return view.rows();
}

int64_t Encoder::feature_rows(std::span<const media::Size> views) const {
  int64_t rows = 0;
  for (const media::Size& size : views) rows += features_of(view_of(nullptr, size));
  return rows;
}

void Encoder::add(const View& view, float* features) {
  const int32_t rows = rows_of(view);
  if (groups_.empty() || groups_.back().rows + rows > rows_max_ ||
      std::ssize(groups_.back().views) == kViewsMax)
    groups_.emplace_back();
  Group& group = groups_.back();
  group.views.push_back(view);
  group.features.push_back(features);
  group.rows += rows;
}

Result<void> Encoder::begin(std::span<const Picture> pictures) {
  CHECK(!busy());
  for (const Picture& picture : pictures)
    for (const media::Size& size : picture.values->views)
      WEIR_TRY(check(view_of(nullptr, size), size));
  abandon();
  for (const Picture& picture : pictures) {
    const float* numbers = picture.values->numbers.data();
    float* features = picture.features.data();
    CHECK(std::ssize(picture.features) == feature_rows(picture.values->views) * width_);
    for (const media::Size& size : picture.values->views) {
      const View view = view_of(numbers, size);
      add(view, features);
      numbers += size.pixels() * 3 * spec_.frames;
      features += features_of(view) * width_;
    }
  }
  for (Group& group : groups_) line_up(group.views);
  stage_ = stream_ = 0;
  return {};
}

void Encoder::run_stage(ThreadTeam& team) {
  Group& group = groups_[group_];
  const Layer& layer = *layers_[stage_];
  std::vector<View> after = group.views;
  for (View& view : after) layer.reshape(view);
  line_up(after);
  team.run([&](int member) {
    layer.run({.ops = ops_,
               .team = team,
               .ws = workspace_,
               .views = group.views,
               .after = after,
               .rows = workspace_.at(streams_[stream_]),
               .next = workspace_.at(streams_[1 - stream_]),
               .member = member});
  });
  group.views = std::move(after);
  if (layer.moves_rows()) stream_ = 1 - stream_;
}

// The rows that the last stage has left are the views' features.
void Encoder::hand_over() {
  const Group& group = groups_[group_];
  for (size_t i = 0; i < group.views.size(); ++i) {
    const View& view = group.views[i];
    std::copy_n(workspace_.at(streams_[stream_]) + int64_t{view.row_begin} * width_,
                int64_t{view.rows()} * width_, group.features[i]);
  }
}

bool Encoder::advance(ThreadTeam& team, int64_t units) {
  for (; busy() && units > 0; --units) {
    run_stage(team);
    if (++stage_ < layers_.size()) continue;
    hand_over();
    ++group_;
    stage_ = stream_ = 0;
  }
  return !busy();
}

}  // namespace weir::encoder
