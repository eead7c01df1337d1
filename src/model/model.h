// Model: weights bound to a ModelSpec, and the forward pass. Knows layers, not requests.
//
// Threads: load() and pack() run on the caller with the team's help; forward() is called by every
// member of the team inside ThreadTeam::run(), with the same arguments. Nothing is allocated in
// forward().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
struct ModelCard;
}  // namespace weir::card

namespace weir::ssd {
class Disk;
class ExpertCatalogue;
class ExpertStore;
struct StoreOptions;
}  // namespace weir::ssd

namespace weir::model {

class StreamedBank;

// decision 17: kExact is float32 activations throughout; kFast quantises activations to int8 per
// group for quantised weights, and rounds those of prompts to bf16 where that is faster.
enum class Compute : uint8_t { kFast, kExact };

struct ModelOptions {
  Compute compute = Compute::kFast;
  int32_t rows_max = 512;   // Tokens of one batch.
  int32_t context_max = 0;  // Positions; 0: the model's max_position_embeddings.
  // Experts stay in the checkpoint until they are needed: open_experts() comes before forward().
  bool stream_experts = false;
  // With stream_experts: tokens of a slab (forward_slab()); 0: none.
  int32_t slab_rows = 0;
};

// What a forward pass gives its caller. Called from inside ThreadTeam::run().
class ForwardClient {
 public:
  virtual ~ForwardClient() = default;
  // One row of logits [vocab_size], in the order of Batch::sample_rows by `sample_index` but on any
  // member and in any order. The memory is the model's and may be overwritten by the callee; it is
  // reused after the return.
  virtual void on_logits(int32_t sample_index, std::span<float> logits, int member) = 0;
  // The hidden states after the final norm of entry `index` of Batch::hidden_rows, [rows,
  // hidden_size]; on any member and in any order. Read-only, and void after the return.
  virtual void on_hidden(int32_t /*index*/, std::span<const float> /*states*/, int /*member*/) {}
  // Slice `slice` of the batch cannot be computed: a weight could not be read, or not be believed.
  // What else is said of its rows in this pass means nothing, nor do its keys and values. On member
  // 0.
  virtual void on_failed(int32_t /*slice*/, const std::string& /*why*/) {}
  // Called once a pass on member 0 while the others compute: the place to plan the next step.
  virtual void while_computing() {}
};

// Where a model's memory goes, in bytes; the start-up lines and the budget read it.
struct ModelMemory {
  int64_t packed_weights = 0;  // Anonymous, repacked.
  int64_t mapped_weights = 0;  // Used in place from the file.
  int64_t scratch = 0;         // Activations and logits.
  std::string formats;         // "4-bit g32 79 %, 8-bit g32 21 %"
  int64_t parameters = 0;      // Numbers in matrices and vectors; a tied head counts once.
};

class Model {
 public:
  // Describes the model by its config.json, checks and binds every tensor, plans the memory:
  // quick, and touches no weight. `members`: of the team that will run it.
  static Result<std::unique_ptr<Model>> bind(const card::ModelCard& card,
                                             const ModelOptions& options, const kernels::Ops& ops,
                                             int members);
  // Repacks the quantised weights with the team's help; before the first forward().
  // `progress(done, total)` in bytes of weights, from the calling thread.
  virtual void pack(ThreadTeam&, const std::function<void(int64_t, int64_t)>&) {}
  // bind() and pack().
  static Result<std::unique_ptr<Model>> load(
      const card::ModelCard& card, const ModelOptions& options, const kernels::Ops& ops,
      ThreadTeam& team, const std::function<void(int64_t, int64_t)>& progress = {});
  virtual ~Model() = default;

  // With stream_experts: where the experts are, and how large. Null: they are weights like others.
  virtual const ssd::ExpertCatalogue* expert_catalogue() const { return nullptr; }
  // Experts that one token needs in a layer.
  virtual int32_t experts_per_token() const { return 0; }
  // Takes memory for experts and reads them from `disk` from then on.
  virtual Result<void> open_experts(std::unique_ptr<ssd::Disk> disk,
                                    const ssd::StoreOptions& options);
  virtual ssd::ExpertStore* experts() const { return nullptr; }
  // The bank that has them, to make or choose a bundle of them. Null as expert_catalogue().
  virtual StreamedBank* streamed_bank() const { return nullptr; }

  // The files that some weight is used from in place: what is computed is right as long as these do
  // not change. Empty where all weights were packed or copied.
  virtual std::span<const FileView* const> mapped_files() const { return {}; }
  // After pack(): an error if a file of the checkpoint has been changed since bind(), and so may
  // have been read as it never was.
  virtual Result<void> check_files() const { return {}; }

  virtual const ModelSpec& spec() const = 0;
  virtual const ModelOptions& options() const = 0;
  virtual ModelMemory memory() const = 0;
  virtual int32_t context_max() const = 0;
  // Tokens of prompts are computed in other arithmetic than generated ones, so that the same token
  // at the same place leaves other keys and values. Then generated tokens come first in a batch,
  // and no slice has both.
  virtual bool prompts_differ() const { return false; }
  // Bytes of weights that one decoded token reads (all of a dense model; the chosen experts of a
  // MoE).
  virtual int64_t weight_bytes_per_token() const = 0;
  // Multiply-adds of one token's linear layers, for the share of the core's peak.
  virtual int64_t macs_per_token() const = 0;
  // What each layer remembers of a sequence, by the number with which it asks KvCache for it.
  virtual std::vector<kv::MemoryNeed> memory_needs() const = 0;

  // REQUIRES: called by every member; batch.tokens.size() <= rows_max; every slice's pages cover
  // it.
  virtual void forward(const Batch& batch, const kv::KvCache& kv, ForwardClient& client,
                       ThreadTeam& team, int member) = 0;

  // Scratch memory goes back to the system until the next forward(), which takes it again.
  // REQUIRES: no pass is running, and no slab is begun.
  virtual void give_back_scratch() {}

  // A slab: a batch that is computed a few layers at a time, between other batches, in memory of
  // its own. Prompts of a model whose experts are streamed: each expert is read once for all of a
  // slab, which takes a while, and generated tokens need not wait for it.
  int32_t slab_rows() const { return options().slab_rows; }
  virtual int32_t slab_steps() const { return 0; }
  // Step `step` of the slab. REQUIRES: as forward(), but for slab_rows; steps in order from 0; the
  // batch is the same, and nobody else writes to its pages, until the last step is done. Logits
  // come in the last step; while_computing() is not called.
  virtual void forward_slab(const Batch&, const kv::KvCache&, ForwardClient&, ThreadTeam&,
                            int /*member*/, int32_t /*step*/) {}
};

}  // namespace weir::model
