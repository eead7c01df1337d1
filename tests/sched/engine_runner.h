// EngineRunner: an engine on a thread of its own, as the server has it, with any model.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <thread>

#include "base/check.h"
#include "exec/cpu_encoder.h"
#include "exec/cpu_executor.h"
#include "kv/disk/disk_cache.h"
#include "sched/computed_drafts.h"
#include "sched/engine.h"
#include "sched/stage.h"

namespace weir::sched {

struct RunnerOptions {
  EngineOptions engine;
  int32_t page_count = 256;
  int32_t checkpoints = 64;  // Where the model has states,
  int32_t tape_tokens = 15;  // and for so many drafts of a sequence.
  int members = 1;
  kv::Format kv_format = kernels::FloatType::kF32;
  bool keeps_all = false;      // Windows drop no pages: the plain way, for comparison.
  std::function<void()> wake;  // Called besides, if given.
  // The engine waits for begin(), so that its first step knows all requests, whatever the threads'
  // turns are.
  bool held = false;
  exec::Encoder* encoder = nullptr;     // Null: prompts have no pictures,
  encoder::Encoder* tower = nullptr;    // or this reads them,
  encoder::Encoder* ear = nullptr;      // and this their sounds.
  bool computed_drafts = false;  // Of the model's drafter, if it has one, as many as it can.
};

class EngineRunner {
 public:
  using Options = RunnerOptions;

  EngineRunner(model::Model& model, const kernels::Ops& ops, const Options& options)
      : handle_(options.engine.queue_max, 1, stage_.bell()), wake_(options.wake) {
    std::promise<Engine*> ready;
    std::future<Engine*> engine = ready.get_future();
    thread_ = std::thread([this, &model, &ops, options, &ready] {
      ThreadTeam team(options.members);
      exec::CpuExecutor executor(model, ops, team);
      std::optional<exec::CpuEncoder> tower;
      if (options.encoder != nullptr) executor.use(*options.encoder);
      if (options.tower != nullptr || options.ear != nullptr)
        executor.use(tower.emplace(options.tower, options.ear, team));
      CHECK(take_memory(executor, model, options).has_value());
      EngineOptions engine_options = options.engine;
      std::optional<ComputedDrafts> drafts;
      if (options.computed_drafts && executor.drafter() != nullptr) {
        drafts.emplace(*executor.drafter(), options.engine.running_max);
        engine_options.speculation.sources.push_back(&*drafts);
      }
      Engine runs(engine_options, executor, handle_, [this] {
        wakes_.fetch_add(1, std::memory_order_release);
        wakes_.notify_all();
        if (wake_) wake_();
      });
      ready.set_value(&runs);
      begun_.wait();
      stage_.add(runs);
      stage_.run();
      runs.finish();
      runs.check();
      CHECK(runs.idle());
    });
    engine_ = engine.get();
    if (!options.held) begin();
  }
  ~EngineRunner() { stop(); }

  // Of a held engine; once.
  void begin() { begun_.count_down(); }

  void stop() {
    if (!thread_.joinable()) return;
    stage_.stop();
    thread_.join();
  }

  EngineHandle& handle() { return handle_; }
  Engine& engine() { return *engine_; }
  uint64_t wakes() const { return wakes_.load(std::memory_order_acquire); }

  // As the network loop waits: for a wake, then it looks.
  void wait(const Request& request) {
    wait_until([&] { return request.log.finished(); });
  }
  template <typename Done>
  void wait_until(const Done& done) {
    while (true) {
      const uint64_t seen = wakes();
      if (done()) return;
      wakes_.wait(seen, std::memory_order_acquire);
    }
  }

 private:
  // With as many pages of windows as a server has.
  static Result<void> take_memory(exec::Executor& executor, const model::Model& model,
                                  const Options& options) {
    std::vector<kv::MemoryNeed> needs = model.memory_needs();
    for (kv::MemoryNeed& need : needs)
      if (auto* paged = std::get_if<kv::PagedNeed>(&need); paged != nullptr && options.keeps_all) {
        paged->takes_codes = paged->takes_codes && paged->window == 0;
        paged->window = 0;
      }
    WEIR_ASSIGN(kv::MemoryLayout layout,
                kv::MemoryLayout::make(std::move(needs), options.kv_format, options.tape_tokens));
    const kv::disk::DiskCache* const disk = options.engine.disk;
    const kv::MemoryLoad load = {
        .running_max = options.engine.running_max,
        .rows_max = options.engine.step_tokens_max + model.slab_rows(),
        .loads = disk == nullptr ? 0 : kv::disk::loads_at_once(disk->shape())};
    const std::vector<int32_t> counts = kv::page_counts(layout.groups(), options.page_count, load);
    return executor.take_memory(
        std::move(layout), counts,
        {.running = options.engine.running_max,
                                 .checkpoints = options.checkpoints,
                                 .cross = options.engine.running_max + 1});
  }

  Stage stage_;
  EngineHandle handle_;
  const std::function<void()> wake_;
  std::atomic<uint64_t> wakes_{0};
  std::latch begun_{1};
  Engine* engine_ = nullptr;
  std::thread thread_;
};

}  // namespace weir::sched
