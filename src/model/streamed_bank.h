// StreamedBank: the ExpertBank of a model that does not keep its experts in memory. It makes the
// catalogue of where their bytes are, asks an ssd::ExpertStore for what a layer's rows were routed
// to, and hands out waves of what is there, in the form that kernels want.
//
// While a wave is computed the leader sees to the disk, and in next() makes the one after it, once
// it finds nothing left to claim. Members agree on what each wave has: it is written after one
// barrier and before another.
//
// Threads: as ExpertBank. unpack() may be called by any thread for different units.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "card/checkpoint.h"
#include "model/expert_bank.h"
#include "model/slot_form.h"
#include "model/slot_placer.h"
#include "ssd/expert_bundle.h"
#include "ssd/expert_store.h"

namespace weir::model {

class StreamedBank final : public ExpertBank {
 public:
  explicit StreamedBank(const card::Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  Placer& placer() override { return placer_; }
  // Refuses what the store cannot do. It wants the experts of a layer stored alike, as many experts
  // in every layer, and as many of them for a token.
  Result<Layer> add_layer(int32_t top_k, std::vector<FfnWeights> experts) override;
  // Where experts are and how large; after the last add_layer().
  const ssd::ExpertCatalogue& catalogue() const { return *catalogue_; }
  int32_t top_k() const { return top_k_; }
  bool empty() const { return layers_.empty(); }

  // Where the checkpoint lies. REQUIRES: it is a folder's.
  std::string folder() const;
  // What the path of a bundle beside it begins with: the folder, and of a GGUF file its name, as
  // others may lie there.
  std::string bundle_prefix() const;
  // The checkpoint's files are not here, but for their headers.
  bool only_headers() const { return checkpoint_.files()[0].only_beginning(); }
  // Names the checkpoint's files as they are now, and how experts lie in slots. REQUIRES: they are
  // here.
  Result<ssd::SourceHash> source() const;
  // Experts come from this bundle from open() on; refused where it is unfinished, or not of this
  // checkpoint.
  Result<void> use_bundle(const std::string& path);

  // Opens the files and takes the memory. REQUIRES: the checkpoint is a folder's.
  Result<void> open(std::unique_ptr<ssd::Disk> disk, ssd::StoreOptions options, int32_t rows_max);
  ssd::ExpertStore* store() const { return store_.get(); }

  Wave begin(const Pass& pass, int32_t layer, const ExpertPlan& plan) override;
  std::optional<Wave> next(const Pass& pass, const Wave& done) override;
  bool reads() const override { return true; }
  void expect(int32_t layer, std::span<const int32_t> experts) override {
    store_->expect(layer, experts);
  }
  void looked_ahead(const Pass& pass, int32_t layer, const int32_t* choice) override;

  // Units of work in a wave's unpacking and checking.
  int32_t unpack_units(const ssd::ExpertWave& wave) const;
  void unpack(const ssd::ExpertWave& wave, int32_t unit) const;
  // Makes zeros of what lies between an expert's matrices.
  void clear_gaps(int32_t layer, std::byte* slot) const;

 private:
  struct StreamedLayer {
    SlotForm form;
    // They point to where the waves of the layer's last run had them: written by the leader. The
    // vector's memory never moves.
    std::vector<FfnWeights> experts;
  };

  const SlotForm& form(int32_t layer) const { return layers_[static_cast<size_t>(layer)].form; }
  Result<void> check(int32_t top_k, size_t experts) const;
  static Result<SlotForm> form_of(std::span<const StoredMatrix> matrices, size_t experts);
  void add_to_catalogue(const SlotForm& form, std::span<const StoredMatrix> matrices,
                        size_t experts);
  void ask(const Pass& pass);
  ssd::ExpertWave& wave(int turn) { return waves_[static_cast<size_t>(turn & 1)]; }
  void make_wave(int turn);
  Wave ready(const Pass& pass, int turn);
  void report_failures(const Pass& pass, const ssd::ExpertWave& wave) const;

  const card::Checkpoint& checkpoint_;
  SlotPlacer placer_;
  std::optional<ssd::ExpertCatalogue> catalogue_;
  std::vector<StreamedLayer> layers_;
  int32_t top_k_ = 0;
  std::unique_ptr<ssd::ExpertStore> store_;

  // The run at hand, the leader's.
  int32_t layer_ = -1;
  const ExpertPlan* plan_ = nullptr;
  std::vector<ssd::ExpertDemand> demands_;  // By place in the plan.
  std::vector<ssd::RoutedRow> rows_;
  std::array<ssd::ExpertWave, 2> waves_;  // Of even turns, and of odd ones.
  bool wants_lookahead_ = false;
};

}  // namespace weir::model
