// CpuExecutor: the Executor of the processor's cores: a model::Model, the team that runs it, keys
// and values in this process's memory, and samplers that run as the last phase of a pass.
//
// Threads: as Executor; the team's members enter it from the model, each with rows of its own.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/thread_team.h"
#include "exec/cpu_drafter.h"
#include "exec/executor.h"
#include "kv/kv_cache.h"
#include "model/model.h"

namespace weir::exec {

class CpuExecutor final : public Executor, private model::RowSink {
 public:
  // All outlive the executor. `ops`: those that the model was bound with.
  CpuExecutor(model::Model& model, const kernels::Ops& ops, ThreadTeam& team);

  ExecutorFacts facts() const override;
  Result<bool> place_weights(const std::function<void(int64_t, int64_t)>& progress,
                             Clock::time_point until) override;
  Result<void> take_memory(kv::MemoryLayout layout, std::span<const int32_t> page_counts,
                           const kv::StateSlots& slots) override;
  kv::PageMemory& memory() override { return *cache_; }
  void begin(Lane lane, const StepWork& work) override;
  bool advance(Lane lane, int32_t sublayers, const Meanwhile* meanwhile) override;
  Drafter* drafter() override { return drafter_ ? &*drafter_ : nullptr; }
  Encoder* encoder() override { return encoder_; }
  // What reads pictures and sounds for the model, before weights are placed. It outlives the executor.
  void use(Encoder& encoder) { encoder_ = &encoder; }
  std::string lost_weights() const override;
  void rest() override;

 private:
  // The batch of a lane, and its next sublayer.
  struct Running {
    std::optional<StepWork> work;
    int32_t next = 0;
  };
  Running& at(Lane lane) { return lanes_[static_cast<size_t>(lane)]; }

  void on_rows(int32_t wanted, int32_t first, model::Rows rows, int member) override;
  void on_failed(int32_t slice, const std::string& why) override;
  void while_beginning() override;
  void while_ending() override;

  void choose(const Choose& job, const model::Wanted& wanted, model::Rows rows,
              sample::SamplerScratch& scratch);
  void score(const Score& job, const model::Wanted& wanted, int32_t first, model::Rows rows,
             sample::SamplerScratch& scratch);

  model::Model& model_;
  const kernels::Ops& ops_;
  ThreadTeam& team_;
  std::optional<kv::KvCache> cache_;
  std::optional<CpuDrafter> drafter_;
  Encoder* encoder_ = nullptr;  // Null: prompts have neither.
  std::vector<sample::SamplerScratch> scratch_;  // By team member.
  std::array<Running, 2> lanes_;
  const StepWork* work_ = nullptr;  // Of the call of advance() at hand.
  const Meanwhile* meanwhile_ = nullptr;
};

}  // namespace weir::exec
