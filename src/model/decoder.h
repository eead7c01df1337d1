// Decoder: the Model of every architecture that a ModelSpec can describe.
//
// Threads: as Model.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "card/model_card.h"
#include "model/adapter.h"
#include "model/bound_module.h"
#include "model/drafts/drafter.h"
#include "model/layers/feature_projection.h"
#include "model/layers/head.h"
#include "model/layers/media_embedding.h"
#include "model/layers/token_table.h"
#include "model/model.h"
#include "model/rope.h"
#include "model/streamed_bank.h"
#include "model/weight_store.h"
#include "model/weight_tally.h"

namespace weir::model {

// Of a drafter's decoder.
struct DecoderPlace {
  const Embedding* embedding = nullptr;  // The target's; null: it has its own.
  const Head* head = nullptr;            // Whose matrix it has; null: its own.
  int32_t memories = 0;                  // Layers of the cache that come before its own.
  bool copies_floats = false;            // Nothing of its files stays mapped.
  // Of its checkpoint's tensors those whose names begin so are its own, all of them.
  std::string within{};
};

class Decoder final : public Model {
 public:
  static Result<std::unique_ptr<Decoder>> bind(const card::ModelCard& card,
                                               const ModelOptions& options, const kernels::Ops& ops,
                                               int members);
  // Binds to a spec that is the caller's. REQUIRES: check_spec() finds nothing wrong with it.
  static Result<std::unique_ptr<Decoder>> bind(const card::ModelCard& card, ModelSpec spec,
                                               const ModelOptions& options, const kernels::Ops& ops,
                                               int members, std::vector<FeatureTap> taps = {},
                                               const DecoderPlace& place = {});
  bool pack_until(ThreadTeam& team, const std::function<void(int64_t, int64_t)>& progress,
                  Clock::time_point until) override;

  ModelMemory memory() const override;
  TokenWork token_work() const override;
  // What of it may be stored quantised.
  const std::vector<BoundModule>& modules() const { return modules_; }
  WeightFiles files() const override;
  StreamedBank* streamed_bank() const override { return streamed_; }
  Drafter* drafter() const override { return drafter_.get(); }
  using Model::forward;
  void forward(const Forward& run, int member) override;
  // In place of forward(): rows leave keys and values in every attention layer, all of what their
  // features are projected to, and nothing else is computed of them. REQUIRES:
  // FeatureInput::kAlone.
  void remember(const Forward& run, int member);
  void fill_cross(const CrossFill& fill, int member) override;
  // What the taps have left of a row of the last pass in Lane::kStep, one after another.
  const float* left(int32_t row) const {
    return workspace_->at(left_) + int64_t{row} * left_width();
  }
  int32_t left_width() const { return static_cast<int32_t>(std::ssize(taps_)) * spec_.hidden_size; }
  const Embedding& embedding() const { return *embedding_; }
  const Head& head() const { return *head_; }
  Result<std::shared_ptr<const Adapter>> bind_adapter(const card::AdapterCard& card,
                                                      int64_t bytes_max) const override;
  int64_t adapter_bytes() const override;
  void give_back_scratch() override;

 private:
  Decoder(ModelSpec spec, const ModelOptions& options, const kernels::Ops& ops,
          std::vector<FeatureTap> taps);
  Result<void> bind_weights(const card::WeightFormat& format, const DecoderPlace& place);
  Result<void> bind_media_tokens(const card::ModelCard& card);
  Result<void> bind_drafter(DraftSpec draft, const card::ModelCard& card, int members);
  Result<void> check_mapped() const;
  Result<void> make_workspace(int members);
  static void begin_step(const Pass& pass, ssd::ExpertStore& store);
  static void end_step(const Pass& pass, ssd::ExpertStore& store);
  Pass make_pass(const Forward& run, int member) const;
  const Layer& cross_layer(int32_t index) const;
  void begin_rows(const Pass& pass) const;
  void begin_row(const Pass& pass, int32_t row) const;
  void add_levels(const Pass& pass, size_t i, int32_t begin, int32_t end) const;
  void enter(const Pass& pass, size_t i, const RowRange& rows) const;
  void leave_taps(const Pass& pass, int32_t sublayer, int32_t begin, int32_t end) const;
  void leave_last(const Pass& pass) const;
  void compute(const Pass& pass, size_t i) const;

  const kernels::Ops& ops_;
  std::shared_ptr<const card::Checkpoint> checkpoint_;  // Float weights stay mapped in it.
  WeightStore store_;
  WeightTally tally_;
  std::vector<BoundModule> modules_;
  std::vector<AdapterTarget> targets_;  // Where there may be adapters.
  bool paired_rows_ = false;            // Of q and k, as AdapterForm says it.
  std::unique_ptr<ExpertBank> bank_;
  StreamedBank* streamed_ = nullptr;  // The bank, where experts are streamed.
  std::vector<RopeTable> ropes_;      // The distinct ones.
  ScratchPlan scratch_;
  std::unique_ptr<Embedding> own_embedding_;
  const Embedding* embedding_ = nullptr;         // That, or the target's.
  std::unique_ptr<MediaEmbedding> media_;        // Where the family has media_tokens().
  std::unique_ptr<FeatureProjection> features_;  // Where ModelSpec::features is said.
  std::unique_ptr<StreamTable> streams_;         // Where ModelSpec::streams is said.
  std::unique_ptr<HyperStreams> hyper_;          // Where ModelSpec::hyper is said.
  std::unique_ptr<TokenTable> token_table_;      // Where ModelSpec::token_inputs is said.
  std::vector<std::unique_ptr<Layer>> layers_;   // One for each of the spec's sublayers.
  std::vector<LayerFacts> facts_;                // By layer.
  bool layers_leave_nothing_ = false;
  std::vector<int32_t> unnamed_;  // Tokens of rows that have none: [rows_max], where cross attention is.
  std::unique_ptr<Head> head_;
  const std::vector<FeatureTap> taps_;
  bool taps_last_ = false;  // Some of them come after the last sublayer.
  Buffer<float> left_;      // [rows, left_width()]
  std::unique_ptr<Drafter> drafter_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<Workspace> slab_;  // A slab's.
};

}  // namespace weir::model
