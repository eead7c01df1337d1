// ExpertBank: the experts of all layers of a model that does not keep them in memory. It knows
// what an expert's matrices look like in a slot, makes the catalogue of where their bytes are, and
// puts what was read as stored into the form that kernels want.
//
// A slot holds what kernels read, in the order in which they do: the words and scales of gate and
// up (part 0), then of down (part 1), each at a multiple of 64 bytes; float matrices as stored.
//
// Threads: filled by one thread, at load. begin() and next() are the leader's; what they leave is
// read by all members after a barrier. unpack() may be called by any member.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "card/checkpoint.h"
#include "model/layers/expert_plan.h"
#include "model/layers/ffn.h"
#include "ssd/expert_bundle.h"
#include "ssd/expert_store.h"
#include "ssd/route_trace.h"
#include "ssd/routing_table.h"

namespace weir::model {

class ExpertBank {
 public:
  explicit ExpertBank(const card::Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  // The three matrices of each expert of the next layer; `gate` is empty where there is none.
  // Returns the layer's number among those with experts. An error names what differs: all experts
  // of a layer are stored alike.
  Result<int32_t> add_layer(int32_t top_k, std::span<const StoredLinear> gate,
                            std::span<const StoredLinear> up, std::span<const StoredLinear> down);
  // Where experts are and how large; after the last add_layer().
  const ssd::ExpertCatalogue& catalogue() const { return *catalogue_; }
  int32_t top_k() const { return top_k_; }
  bool empty() const { return layers_.empty(); }

  // Where the checkpoint lies. REQUIRES: it is a folder's.
  std::string folder() const;
  // Names the checkpoint's files as they are now, and how experts lie in slots.
  Result<ssd::SourceHash> source() const;
  // Experts come from this bundle from open() on; refused where it is unfinished, or not of this
  // checkpoint.
  Result<void> use_bundle(const std::string& path);

  // Opens the files and takes the memory. REQUIRES: the checkpoint is a folder's.
  Result<void> open(std::unique_ptr<ssd::Disk> disk, ssd::StoreOptions options, int32_t rows_max);
  ssd::ExpertStore* store() const { return store_.get(); }

  // One layer's run. By the leader: demands from the plan, and the first wave.
  void begin(int32_t layer, const Pass& pass, const ExpertPlan& plan);
  // By the leader, while the others finish the wave at hand: the next one.
  void next();
  void end();
  // By the leader: what the router of `layer` said of this layer's input: experts [rows, top_k],
  // for rows of generated tokens.
  void looked_ahead(int32_t layer, const Pass& pass, const int32_t* choice);
  // Not null: takes the place of what routers choose.
  const ssd::RoutingTable* routing() const { return routing_; }
  // Whether this layer's run is to look ahead; decided by begin().
  bool wants_lookahead() const { return wants_lookahead_; }
  // The wave at hand, by turn: 0, 1, 2, ...
  const ssd::ExpertWave& wave(int turn) const { return waves_[static_cast<size_t>(turn & 1)]; }
  // An expert of a wave, by its place among the active ones of the plan: where its matrices are.
  void point(int32_t layer, int32_t place, FfnWeights& expert) const;

  // Units of work in a wave's unpacking and checking.
  int32_t unpack_units(const ssd::ExpertWave& wave) const;
  void unpack(const ssd::ExpertWave& wave, int32_t unit) const;
  // Makes zeros of what lies between an expert's matrices: nobody reads it, but what is written to
  // a bundle is always the same.
  void clear_gaps(int32_t layer, std::byte* slot) const;

 private:
  // A matrix in a slot.
  struct Matrix {
    Linear linear;  // Without weights.
    int32_t bits = 0;
    uint64_t words = 0;   // Offset in its part: of words, or of floats.
    uint64_t scales = 0;  // Of scales with biases.
  };
  struct Layer {
    std::array<std::vector<Matrix>, ssd::kParts> parts;
  };

  static uint64_t lay_out(std::vector<Matrix>& part);
  void record(int32_t layer, const Pass& pass, const int32_t* choice);
  void unpack_unit(const ssd::ExpertWave::Unpack& job, int32_t unit) const;
  int32_t units_of(const ssd::ExpertWave::Unpack& job) const;

  const card::Checkpoint& checkpoint_;
  std::optional<ssd::ExpertCatalogue> catalogue_;
  std::vector<Layer> layers_;
  int32_t top_k_ = 0;
  std::unique_ptr<ssd::ExpertStore> store_;
  const ssd::RoutingTable* routing_ = nullptr;
  ssd::RouteTrace* trace_ = nullptr;
  int32_t traced_step_ = -1;
  std::vector<ssd::ExpertDemand> demands_;
  std::vector<ssd::RoutedRow> rows_;
  std::array<ssd::ExpertWave, 2> waves_;
  int turn_ = 0;
  bool wants_lookahead_ = false;
};

}  // namespace weir::model
