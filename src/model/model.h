// Model: weights bound to a ModelSpec, and the forward pass. Knows layers, not requests.
//
// Threads: load() and pack() run on the calling thread with the team's help; forward() is called by
// every member of the team inside ThreadTeam::run(), with the same arguments. Nothing is allocated
// in forward().
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/ops.h"
#include "kv/kv_cache.h"
#include "model/batch.h"
#include "model/spec.h"

namespace weir::card {
class AdapterCard;
struct ModelCard;
}  // namespace weir::card

namespace weir::ssd {
class Disk;
class ExpertCatalogue;
class ExpertStore;
struct StoreOptions;
}  // namespace weir::ssd

namespace weir::model {

class Adapter;
class Drafter;
class StreamedBank;

// Of a drafter (model/drafts/drafter.h), which is loaded with the model that it drafts for.
struct DraftOptions {
  // Its own files, until bind() has returned; null: it is a module of the model's checkpoint.
  const card::ModelCard* card = nullptr;
  int32_t drafts_max = 7;  // Of a sequence, in one round.
  // Matrices that are stored in floats are held in so many bits; 0: as they are stored.
  int32_t quantise_bits = 0;
  // It chooses among so many of the first tokens, where it has the model's head; 0: among all.
  int32_t vocabulary = 0;
};

struct ModelOptions {
  Compute compute = Compute::kFast;
  int32_t rows_max = 512;   // Tokens of one batch.
  // Where layers have states (kv::StateNeed): drafts of one batch, or replayed in one, and those of
  // one slice; 0: none.
  int32_t draft_rows_max = 0, tape_tokens = 0;
  int32_t context_max = 0;  // Positions; 0: the model's max_position_embeddings.
  // Experts stay in the checkpoint until they are needed: open_experts() comes before forward().
  bool stream_experts = false;
  // With stream_experts: tokens of a slab (Lane::kSlab); 0: none.
  int32_t slab_rows = 0;
  // Matrices that are stored in floats are held in so many bits; 0: as they are stored.
  int32_t quantise_bits = 0;
  // The largest rank of an adapter; 0: there are no adapters.
  int32_t adapter_rank = 0;
  std::optional<DraftOptions> draft{};  // None: nothing drafts.
};

// Rows of numbers that a pass gives, one after another.
struct Rows {
  float* data = nullptr;  // [count, width]
  int32_t count = 0;
  int32_t width = 0;

  std::span<float> row(int32_t i) const {
    return {data + int64_t{i} * width, static_cast<size_t>(width)};
  }
};

// Where a forward pass puts what is wanted of it. Called from inside ThreadTeam::run().
class RowSink {
 public:
  virtual ~RowSink() = default;
  // Rows [first, first + rows.count) of entry `wanted` of Batch::wanted: hidden states
  // [count, hidden_size], which are read-only, or logits [count, vocab_size], which the callee may
  // overwrite; void after the return. An entry comes in one call, on one member, its rows in their
  // order; but rows of kScore, which stand each for itself, come in calls of their own, on any
  // member. Entries come in any order.
  virtual void on_rows(int32_t wanted, int32_t first, Rows rows, int member) = 0;
  // Slice `slice` of the batch cannot be computed: a weight could not be read, or not be believed.
  // What else is said of its rows in this pass means nothing, nor do its keys and values. On member
  // 0.
  virtual void on_failed(int32_t /*slice*/, const std::string& /*why*/) {}
  // Called once a pass each, on member 0 while the others compute: with its first sublayer, and
  // with its last, which is early enough to plan what is computed next.
  virtual void while_beginning() {}
  virtual void while_ending() {}
};

// Rows of logits that a pass has in memory at once. So many rows of a slice may be verified.
inline constexpr int32_t kLogitRowsMax = 64;

// Sublayers [begin, end) of one batch. The whole of a pass begins with sublayer 0, takes the others
// in order, in one piece or in many, and ends with the last, which gives what is wanted.
struct Forward {
  const Batch& batch;
  const kv::KvCache& kv;
  RowSink& sink;
  ThreadTeam& team;
  Lane lane = Lane::kStep;
  int32_t begin = 0;
  int32_t end = 0;
};

// Rows of an encoder, of which one layer with cross attention keeps keys and values in a slot
// (kv::CrossNeed): its rows [first, first + count).
struct CrossFill {
  const kv::KvCache& kv;
  ThreadTeam& team;
  int32_t slot = 0;
  int32_t layer = 0;  // Of those that have it, below Model::cross_layers().
  int32_t first = 0;
  int32_t count = 0;            // At most ModelOptions::rows_max.
  const float* rows = nullptr;  // [count, hidden_size]
};

// Where a model's memory goes, in bytes; the start-up lines and the budget read it.
struct ModelMemory {
  int64_t packed_weights = 0;  // Anonymous, repacked.
  int64_t mapped_weights = 0;  // Used in place from the file.
  int64_t scratch = 0;         // Activations and logits.
  std::string formats;         // "4-bit g32 79 %, 8-bit g32 21 %"
  int64_t parameters = 0;      // Numbers in matrices and vectors; a tied head counts once.
};

// What one generated token costs.
struct TokenWork {
  // Bytes of weights that it reads: all of a dense model, the chosen experts of a MoE.
  int64_t weight_bytes = 0;
  int64_t macs = 0;  // Multiply-adds of its linear layers.
};

// The files that weights come from.
class Model;
struct WeightFiles {
  std::span<const FileView> all;
  // The files that some weight is used from in place: what is computed is right as long as these do
  // not change. Empty where all weights were packed or copied.
  std::span<const FileView* const> in_place;
  // What pack() found in a tensor that cannot be a weight; empty: nothing.
  std::string fault{};
  // What drafts, whose weights have files besides; null: nothing does.
  const Model* draft = nullptr;

  // After pack(): an error if a file has been changed since bind(), and so may have been read as it
  // never was; or the fault.
  Result<void> check() const;
};

class Model {
 public:
  // Describes the model by its config.json, checks and binds every tensor, plans the memory:
  // quick, and touches no weight. `members`: of the team that will run it.
  static Result<std::unique_ptr<Model>> bind(const card::ModelCard& card,
                                             const ModelOptions& options, const kernels::Ops& ops,
                                             int members);
  // bind() and pack().
  static Result<std::unique_ptr<Model>> load(
      const card::ModelCard& card, const ModelOptions& options, const kernels::Ops& ops,
      ThreadTeam& team, const std::function<void(int64_t, int64_t)>& progress = {});
  virtual ~Model() = default;

  const ModelSpec& spec() const { return spec_; }
  const ModelOptions& options() const { return options_; }
  int32_t context_max() const {
    if (options_.context_max <= 0) return spec_.context_max;
    return spec_.learned_positions > 0 ? std::min(options_.context_max, spec_.learned_positions)
                                       : options_.context_max;
  }
  int32_t sublayers() const { return static_cast<int32_t>(spec_.sublayers.size()); }
  // From this position on tokens of prompts are computed in other arithmetic than generated ones,
  // so that the same token at the same place leaves other keys and values. Then generated tokens
  // come first in a batch, and no slice has both. None: they are computed alike.
  std::optional<int32_t> prompts_differ_from() const { return prompts_differ_from_; }
  // What each layer remembers of a sequence, by the number with which it asks KvCache for it.
  const std::vector<kv::MemoryNeed>& memory_needs() const { return needs_; }
  // Tokens of a batch in Lane::kSlab: prompts of a model whose experts are streamed. Each expert is
  // read once for all of them, which takes a while, and generated tokens need not wait for it. 0:
  // there is no such lane.
  int32_t slab_rows() const { return options_.slab_rows; }

  using Clock = std::chrono::steady_clock;
  // Repacks the quantised weights with the team's help; before the first forward().
  // `progress(done, total)` in bytes of weights, from the calling thread.
  void pack(ThreadTeam& team, const std::function<void(int64_t, int64_t)>& progress) {
    pack_until(team, progress, Clock::time_point::max());
  }
  // As much of that as can be begun before `until`; true when all of it is done. To be called until
  // then: the team may do other things in between.
  virtual bool pack_until(ThreadTeam&, const std::function<void(int64_t, int64_t)>&,
                          Clock::time_point /*until*/) {
    return true;
  }
  virtual ModelMemory memory() const = 0;
  virtual TokenWork token_work() const = 0;
  virtual WeightFiles files() const { return {}; }
  // Where experts are streamed, the bank that has them. Null: they are weights like others.
  virtual StreamedBank* streamed_bank() const { return nullptr; }
  // What guesses further tokens (ModelOptions::draft); its layers' memory is the last of
  // memory_needs(). Null: nothing does.
  virtual Drafter* drafter() const { return nullptr; }

  // REQUIRES: called by every member with the same arguments; as many rows as the lane has room
  // for at most; every slice's memory covers it. Between two calls for one batch it is the same,
  // and nothing else writes to its sequences' memory.
  virtual void forward(const Forward& pass, int member) = 0;
  // The whole of a pass.
  void forward(const Batch& batch, const kv::KvCache& kv, RowSink& sink, ThreadTeam& team,
               int member) {
    forward({.batch = batch, .kv = kv, .sink = sink, .team = team, .end = sublayers()}, member);
  }
  // How many layers attend to what an encoder gives, and of how many rows; 0: the model has none.
  int32_t cross_layers() const;
  int32_t cross_rows() const;
  // Fills a part of a slot. Between the sublayers of a batch in Lane::kSlab, or between batches; by
  // every member, as forward(). Before the slot is attended to all rows of all layers are filled.
  // REQUIRES: cross_layers() > 0.
  virtual void fill_cross(const CrossFill& fill, int member);
  // An adapter's files as this model computes with them; `bytes_max`: what they may take in memory.
  // Any thread, after pack(), also while passes run. An error names what does not fit the model.
  virtual Result<std::shared_ptr<const Adapter>> bind_adapter(const card::AdapterCard& card,
                                                              int64_t bytes_max) const;
  // What an adapter of every linear layer outside experts takes, of the largest rank.
  virtual int64_t adapter_bytes() const { return 0; }

  // Scratch memory goes back to the system until the next forward(), which takes it again.
  // REQUIRES: no pass is begun.
  virtual void give_back_scratch() {}

  // What the bank says: where experts are, and how large; how many one token needs in a layer;
  // those that are open. Null, or 0: there is none.
  const ssd::ExpertCatalogue* expert_catalogue() const;
  int32_t experts_per_token() const;
  ssd::ExpertStore* experts() const;
  // Takes memory for experts and reads them from `disk` from then on.
  Result<void> open_experts(std::unique_ptr<ssd::Disk> disk, const ssd::StoreOptions& options);

 protected:
  Model() = default;

  // Set by bind(), or by a constructor.
  ModelSpec spec_;
  ModelOptions options_;
  std::optional<int32_t> prompts_differ_from_;
  std::vector<kv::MemoryNeed> needs_;
};

}  // namespace weir::model
