#include "encoder/encoder.h"

#include <algorithm>

#include "base/check.h"
#include "encoder/families.h"

namespace weir::encoder {

namespace {

// Far above any published tower's: a view has at most kViewPixelsMax pixels, and a sound frames of
// some minutes.
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
    : spec_(std::move(spec)),
      options_(options),
      ops_(ops),
      pairs_(kernels::pair_ops_for(ops.isa)),
      spans_(kernels::span_ops_for(ops.isa)) {}

Result<std::unique_ptr<Encoder>> Encoder::bind(const card::ModelCard& card,
                                               const EncoderOptions& options,
                                               const kernels::Ops& ops, int members) {
  WEIR_ASSIGN(EncoderSpec spec, spec_from_config(card.config.root(), options.medium));
  for (Stage& stage : spec.stages)
    if (auto* local = std::get_if<LocalAttention>(&stage.op)) local->turned = options.turned_masks;
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
  struct Shape {
    int32_t width = 0;
    int64_t patches = 1;  // Of a row.
  };
  int64_t widest = 0;
  const auto add = [&](const Stage& stage, Shape& shape, int32_t level) {
    scratch_.next_sublayer();
    const int32_t width_before = shape.width;
    steps_.push_back({.layer = make_layer({.binder = binder,
                                           .scratch = scratch_,
                                           .spec = spec_,
                                           .stage = stage,
                                           .ops = ops_,
                                           .width = shape.width,
                                           .exact = !fast,
                                           .pairs = fast && pairs_.fast,
                                           .spans = fast && spans_.fast,
                                           .angles = angles},
                                          shape.width),
                      .width = std::max(width_before, shape.width),
                      .level = level});
    shape.patches *= steps_.back().layer->patches_joined();
    widest = std::max(widest, (shape.width + shape.patches - 1) / shape.patches);
  };
  Shape shape;
  int32_t level = 0;
  for (size_t i = 0; i < spec_.stages.size() && !binder.failed(); ++i) {
    add(spec_.stages[i], shape, -1);
    for (; level < levels() && spec_.levels[static_cast<size_t>(level)].after == i; ++level) {
      Shape of_level = shape;
      const size_t first = steps_.size();
      for (const Stage& stage : spec_.levels[static_cast<size_t>(level)].stages)
        add(stage, of_level, level);
      CHECK(steps_[first].layer->moves_rows());
      steps_[first].begins = steps_.back().ends = true;
      width_ = of_level.width;
    }
  }
  if (binder.failed()) return binder.finish();
  CHECK(level == levels() && (level == 0 || width_ == shape.width));
  steps_.back().ends = true;
  // A level's rows have two, beside the one that the tower's wait in.
  for (int i = 0; i < (levels() > 0 ? 3 : 2); ++i)
    streams_.push_back(scratch_.ask<float>(model::BufferUse::kWholePass, {.per_row = widest}));
  width_ = shape.width;
  tally_ = binder.tally();
  return binder.finish();
}

Result<void> Encoder::make_workspace(int members) {
  const bool sounds = spec_.medium == Medium::kSound;
  const int64_t patch_pixels = int64_t{spec_.patch} * spec_.patch;
  // A class row besides.
  const int64_t rows = sounds ? options_.frames_max : options_.view_pixels_max / patch_pixels + 1;
  if (rows > kRowsMax)
    return fail(ErrorCode::kConfig,
                (sounds ? "sounds: expected at most " : "pictures: expected at most ") +
                    std::to_string(kRowsMax) + (sounds ? " frames" : " patches") +
                    " of one, found " + std::to_string(rows));
  rows_max_ = static_cast<int32_t>(rows);
  if (sounds) {
    const View longest = {.height = std::max(rows_max_, 1), .width = 1};
    rows_max_ = std::max(rows_of(longest), LocalAttention::kPositionsMax);
  }
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
          .block = spec_.layout == media::PixelLayout::kBlocks ? spec_.merge : 1,
          .window = spec_.window};
}

View Encoder::view_of(const media::SoundFeatures& values) const {
  const int64_t multiple = spec_.frames_multiple;
  const int64_t heard = (values.heard + multiple - 1) / multiple * multiple;
  const auto frames = static_cast<int32_t>(values.frames);
  const auto computed =
      spec_.all_frames ? frames : static_cast<int32_t>(std::min(values.frames, heard));
  return {.numbers = values.numbers.data(),
          .height = computed,
          .width = 1,
          .beyond = frames - computed};
}

std::string Encoder::refusal(View view) const {
  View of_level;
  for (const Step& step : steps_) {
    if (step.begins) of_level = view;
    View& at = step.level < 0 ? view : of_level;
    if (std::string why = step.layer->refusal(at); !why.empty()) return why;
    step.layer->reshape(at);
  }
  return {};
}

Result<void> Encoder::check(media::Size pixels) const {
  const auto wrong = [&](const std::string& why) {
    return fail(ErrorCode::kInvalid, "a picture of " + std::to_string(pixels.width) + " x " +
                                         std::to_string(pixels.height) + " pixels: " + why);
  };
  if (pixels.width < spec_.patch || pixels.height < spec_.patch ||
      pixels.width % spec_.patch != 0 || pixels.height % spec_.patch != 0)
    return wrong("expected sides of a multiple of " + std::to_string(spec_.patch));
  if (pixels.pixels() > options_.view_pixels_max)
    return wrong("expected at most " + std::to_string(options_.view_pixels_max));
  if (const std::string why = refusal(view_of(nullptr, pixels)); !why.empty()) return wrong(why);
  return {};
}

Result<void> Encoder::check(const media::SoundFeatures& values) const {
  const auto wrong = [&](const std::string& why) {
    return fail(ErrorCode::kInvalid,
                "a sound of " + std::to_string(values.frames) + " frames: " + why);
  };
  if (values.frames < 1 || values.frames > options_.frames_max)
    return wrong("expected 1 to " + std::to_string(options_.frames_max));
  if (values.heard < 1 || values.heard > values.frames)
    return wrong("expected as many to be heard at most, found " + std::to_string(values.heard));
  if (const int64_t found = std::ssize(values.numbers); found != values.frames * spec_.bands)
    return wrong("expected " + std::to_string(spec_.bands) + " numbers of each, found " +
                 std::to_string(found) + " of all");
  if (const std::string why = refusal(view_of(values)); !why.empty()) return wrong(why);
  return {};
}

int32_t Encoder::rows_of(View view) const {
  int32_t rows = 0;
  for (const Step& step : steps_) {
    if (step.level >= 0) continue;  // Fewer than those it is made of.
    step.layer->reshape(view);
    rows = std::max(rows, view.rows());
  }
  return rows;
}

int64_t Encoder::features_of(View view) const {
  for (const Step& step : steps_)
    if (step.level < 0) step.layer->reshape(view);
  return view.rows();
}

int64_t Encoder::feature_rows(std::span<const media::Size> views) const {
  int64_t rows = 0;
  for (const media::Size& size : views) rows += features_of(view_of(nullptr, size));
  return rows;
}

int64_t Encoder::sound_rows(const media::SoundFeatures& values) const {
  return features_of(view_of(values));
}

void Encoder::add(const View& view, const Output& output) {
  const int32_t rows = rows_of(view);
  if (groups_.empty() || groups_.back().rows + rows > rows_max_ ||
      std::ssize(groups_.back().views) == kViewsMax)
    groups_.emplace_back();
  Group& group = groups_.back();
  group.views.push_back(view);
  group.outputs.push_back(output);
  group.rows += rows;
}

Result<void> Encoder::begin(std::span<const Picture> pictures) {
  CHECK(!busy() && spec_.medium == Medium::kPicture);
  for (const Picture& picture : pictures) {
    int64_t numbers = 0;
    for (const media::Size& size : picture.values->views) {
      WEIR_TRY(check(size));
      numbers += size.pixels() * 3 * spec_.frames;
    }
    if (const int64_t found = std::ssize(picture.values->numbers); found != numbers)
      return fail(ErrorCode::kInvalid, "a picture: expected " + std::to_string(numbers) +
                                           " numbers, found " + std::to_string(found));
  }
  abandon();
  for (const Picture& picture : pictures) {
    const float* numbers = picture.values->numbers.data();
    const int64_t size_of_level = feature_rows(picture.values->views) * width_;
    Output output = {picture.features.data(), size_of_level};
    CHECK(std::ssize(picture.features) == (1 + levels()) * size_of_level);
    for (const media::Size& size : picture.values->views) {
      const View view = view_of(numbers, size);
      add(view, output);
      numbers += size.pixels() * 3 * spec_.frames;
      output.features += features_of(view) * width_;
    }
  }
  begin_groups();
  return {};
}

Result<void> Encoder::begin(std::span<const Sound> sounds) {
  CHECK(!busy() && spec_.medium == Medium::kSound);
  for (const Sound& sound : sounds) WEIR_TRY(check(*sound.values));
  abandon();
  for (const Sound& sound : sounds) {
    CHECK(std::ssize(sound.features) == sound_rows(*sound.values) * width_);
    add(view_of(*sound.values), {.features = sound.features.data()});
  }
  begin_groups();
  return {};
}

void Encoder::begin_groups() {
  for (Group& group : groups_) line_up(group.views);
  if (busy()) begin_group();
}

void Encoder::begin_group() {
  tower_ = {.views = groups_[group_].views};
  begin_step(0);
}

void Encoder::begin_step(size_t step) {
  step_ = step;
  claims_ = 0;
  if (steps_[step].begins) level_ = tower_;
  after_ = steps_[step].level < 0 ? tower_.views : level_.views;
  for (View& view : after_) steps_[step].layer->reshape(view);
  line_up(after_);
}

Unit Encoder::run_unit(ThreadTeam& team, int64_t work) {
  const Step& step = steps_[step_];
  const Rows& rows = step.level < 0 ? tower_ : level_;
  const Unit begun(claims_, work, team.members());
  Unit ended = begun;  // Every member's; the leader's is kept.
  team.run([&](int member) {
    Unit unit = begun;
    step.layer->run({.ops = ops_,
                     .pairs = pairs_,
                     .spans = spans_,
                     .team = team,
                     .ws = workspace_,
                     .views = rows.views,
                     .after = after_,
                     .rows = workspace_.at(streams_[rows.stream]),
                     .next = workspace_.at(streams_[free_stream()]),
                     .width = step.width,
                     .member = member,
                     .unit = unit});
    if (member == 0) ended = unit;
  });
  return ended;
}

// Where a step puts rows that move.
size_t Encoder::free_stream() const {
  const Rows& rows = steps_[step_].level < 0 ? tower_ : level_;
  size_t next = 0;
  while (next == rows.stream || next == tower_.stream) ++next;
  return next;
}

void Encoder::end_step() {
  const Step& step = steps_[step_];
  Rows& rows = step.level < 0 ? tower_ : level_;
  if (step.layer->moves_rows()) rows.stream = free_stream();
  rows.views = after_;
  if (step.ends) hand_over(rows, step.level);
  if (step_ + 1 < steps_.size()) return begin_step(step_ + 1);
  ++group_;
  if (busy()) begin_group();
}

void Encoder::hand_over(const Rows& rows, int32_t level) const {
  for (size_t i = 0; i < rows.views.size(); ++i) {
    const View& view = rows.views[i];
    const Output& output = groups_[group_].outputs[i];
    std::copy_n(workspace_.at(streams_[rows.stream]) + int64_t{view.row_begin} * width_,
                int64_t{view.rows()} * width_, output.features + (level + 1) * output.level_stride);
  }
}

bool Encoder::advance(ThreadTeam& team, int64_t work) {
  while (busy() && work > 0) {
    const Unit unit = run_unit(team, work);
    work -= unit.work();
    work_done_ += unit.work();
    claims_ = unit.done();
    if (unit.ends_stage()) end_step();
  }
  return !busy();
}

}  // namespace weir::encoder
