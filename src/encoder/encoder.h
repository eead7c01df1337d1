// Encoder: a tower of vision or of hearing and its projector, from numbers of pixels, or frames of
// a sound, to the rows of features that a model of text reads in place of embedded tokens. Loaded
// beside the text's model, from the same checkpoint. It knows pictures and sounds, not requests.
//
// Pictures are computed in units, each of so much work as is asked for: parts of stages (unit.h),
// for as many views (pictures, or tiles of them, or sounds) as there is room for together. Between
// two units the team may do anything else. The bits of a picture's features do not depend on which
// other pictures were begun with it, nor on units.
//
// Threads: one thread uses it, the team's leader; it calls ThreadTeam::run() itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "card/model_card.h"
#include "encoder/layers/layer.h"
#include "encoder/spec.h"
#include "encoder/workspace.h"
#include "kernels/ops.h"
#include "kernels/pair_ops.h"
#include "kernels/span_ops.h"
#include "media/features/sound_features.h"
#include "media/processor/pixel_values.h"
#include "media/processor/processor.h"
#include "model/model.h"

namespace weir::encoder {

struct EncoderOptions {
  model::Compute compute = model::Compute::kFast;
  Medium medium = Medium::kPicture;
  // Pixels of the largest view (media::view_pixels_max()); larger ones are refused.
  int64_t view_pixels_max = 0;
  int64_t frames_max = 0;  // Of a sound, likewise.
  // For comparisons with recorded answers only: what local attention sees is turned around, as
  // transformers' eager form of gemma4's has it (decision 49).
  bool turned_masks = false;
};

// A picture as it is begun: its numbers, and where its features go. Both outlive the units.
struct Picture {
  const media::PixelValues* values = nullptr;
  std::span<float> features{};  // [1 + levels()][feature_rows(values->views), width()]
};

// The same of a sound.
struct Sound {
  const media::SoundFeatures* values = nullptr;
  std::span<float> features{};  // [sound_rows(*values), width()]
};

class Encoder {
 public:
  // Describes the tower by config.json, checks and binds its tensors, plans its memory: quick, and
  // touches few weights. kUnsupported where such media of the family are not computed here.
  // `members`: of the team that will run it.
  static Result<std::unique_ptr<Encoder>> bind(const card::ModelCard& card,
                                               const EncoderOptions& options,
                                               const kernels::Ops& ops, int members);
  // bind() and all of pack_until().
  static Result<std::unique_ptr<Encoder>> load(const card::ModelCard& card,
                                               const EncoderOptions& options,
                                               const kernels::Ops& ops, ThreadTeam& team);

  const EncoderSpec& spec() const { return spec_; }
  int32_t width() const { return width_; }  // Of a row of features: the text model's hidden size.
  // Of rows of features that the text's model adds later (encoder::Level), in order.
  int32_t levels() const { return static_cast<int32_t>(spec_.levels.size()); }
  // Rows that views of these sizes become, all together.
  int64_t feature_rows(std::span<const media::Size> views) const;
  // The same of a sound.
  int64_t sound_rows(const media::SoundFeatures& values) const;

  using Clock = std::chrono::steady_clock;
  // As model::Model::pack_until().
  bool pack_until(ThreadTeam& team, const std::function<void(int64_t, int64_t)>& progress,
                  Clock::time_point until);
  model::ModelMemory memory() const;
  model::WeightFiles files() const;

  // Takes pictures up, none being computed. An error names what of them the tower cannot take; then
  // nothing is begun.
  Result<void> begin(std::span<const Picture> pictures);
  Result<void> begin(std::span<const Sound> sounds);
  bool busy() const { return group_ < groups_.size(); }
  // Computes a unit of `work` multiply-adds, or of as few more as make a claim for each member of the
  // team, or what is left; true when all features are there. REQUIRES: pack_until() is done.
  bool advance(ThreadTeam& team, int64_t work);
  static constexpr int64_t kAllWork = INT64_MAX;
  // Multiply-adds that units have had so far, all together: of products exactly, but for the edges of
  // their blocks; of the rest by what it takes beside them.
  int64_t work_done() const { return work_done_; }
  void abandon() { groups_.clear(), group_ = 0; }
  // Scratch memory goes back to the system until it is next used. REQUIRES: nothing is begun.
  void give_back_scratch() { workspace_.give_back(); }

 private:
  // Where a view's features go, and how much further on those of each level.
  struct Output {
    float* features = nullptr;
    int64_t level_stride = 0;
  };
  // Views that are computed together.
  struct Group {
    std::vector<View> views{};
    std::vector<Output> outputs{};  // By view.
    int32_t rows = 0;               // Of the first stage's.
  };
  // The stages in the order in which they are computed: those of a level come after the stage of
  // the tower whose rows they read.
  struct Step {
    std::unique_ptr<Layer> layer{};
    int32_t width = 0;   // Numbers of a row before it or after it: the more of both.
    int32_t level = -1;  // The tower itself.
    bool begins = false, ends = false;
  };
  // Rows between two stages, and what of the views they are.
  struct Rows {
    std::vector<View> views{};
    size_t stream = 0;
  };

  Encoder(EncoderSpec spec, const EncoderOptions& options, const kernels::Ops& ops);
  Result<void> bind_weights(const card::ModelCard& card);
  Result<void> make_workspace(int members);
  View view_of(const float* numbers, media::Size pixels) const;
  View view_of(const media::SoundFeatures& values) const;
  // What of the view does not suit the tower; empty: nothing.
  std::string refusal(View view) const;
  Result<void> check(media::Size pixels) const;
  Result<void> check(const media::SoundFeatures& values) const;
  int32_t rows_of(View view) const;      // The most of any stage.
  int64_t features_of(View view) const;  // After the last one.
  void add(const View& view, const Output& output);
  void begin_groups();
  void begin_group();
  void begin_step(size_t step);
  Unit run_unit(ThreadTeam& team, int64_t work);
  void end_step();
  size_t free_stream() const;
  // The rows that the last stage has left are the views' features.
  void hand_over(const Rows& rows, int32_t level) const;

  EncoderSpec spec_;
  EncoderOptions options_;
  const kernels::Ops& ops_;
  const kernels::PairOps& pairs_;
  const kernels::SpanOps& spans_;
  std::shared_ptr<const card::Checkpoint> checkpoint_;
  model::WeightStore store_;
  model::WeightTally tally_;
  model::ScratchPlan scratch_;
  std::vector<Step> steps_;
  int32_t width_ = 0;
  int32_t rows_max_ = 0;  // Of a group.
  std::vector<model::Buffer<float>> streams_;
  Workspace workspace_;

  std::vector<Group> groups_;
  size_t group_ = 0;    // The one that is computed,
  size_t step_ = 0;     // its step,
  int64_t claims_ = 0;  // how many claims of that are done,
  Rows tower_, level_;  // its rows,
  std::vector<View> after_;  // and what becomes of their views in this step.
  int64_t work_done_ = 0;
};

}  // namespace weir::encoder
