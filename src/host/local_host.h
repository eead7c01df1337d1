// LocalHost: the models that come and go in this process. A thread of its own reads their files
// and takes their memory; their weights are placed, and their engines compute, on one stage.
//
// Threads: the network loop's, but for close(), which is the stage's after its run. The thread that
// loads has one task at a time, and a model's parts are that thread's while it loads or unloads
// them, and constant or their own owner's otherwise.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/models/model_host.h"
#include "base/background_thread.h"
#include "base/thread_team.h"
#include "net/loop.h"
#include "program/memory_limit.h"
#include "program/memory_plan.h"
#include "program/model_presets.h"
#include "program/pressure_watch.h"
#include "sched/stage.h"

namespace weir::host {

class WeightPlacement;

// All outlive the host.
struct HostParts {
  net::Loop& loop;
  sched::Stage& stage;
  ThreadTeam& team;  // The stage's.
};

class LocalHost final : public api::ModelHost {
 public:
  // Reads which models there are; any thread.
  using PresetSource = std::function<Result<std::vector<ModelPreset>>()>;

  // `presets`: what `source` gave first.
  LocalHost(const HostParts& parts, const Options& options, PresetSource source,
            std::vector<ModelPreset> presets, const MemoryLimit& limit);
  // REQUIRES: close() was called, and what the models' configs point to is used no more.
  ~LocalHost() override;

  int64_t room() const override;
  void open(size_t model, const api::LoadOptions& options,
            std::function<void(const Progress&)> progress,
            std::function<void(Result<int64_t>)> done) override;
  void load(size_t model, int64_t free, std::function<void(const Progress&)> progress,
            std::function<void(Result<std::shared_ptr<api::HostedModel>>)> done) override;
  void stop(size_t model) override;
  void look_again(std::function<void(Result<std::vector<api::KnownModel>>)> done) override;
  void unload(size_t model, std::function<void()> done) override;

  // All models, by number.
  std::vector<api::KnownModel> models() const;
  // The paths of those that are loaded.
  std::vector<std::string> paths() const;
  // What is the same for all models.
  const ProcessPlan& plan() const { return plan_; }
  // Now and then: files that were changed, disks, and memory that is short: `shed` is called then.
  void look_at_files();
  void look_at_memory(const std::function<void()>& shed);
  // Engines take no more requests; before the last are cancelled.
  void drain();
  // The stage is over: every engine ends what it has, and goes.
  void close();

 private:
  struct Parts;  // Of a model.
  struct Task;   // What its thread is asked to do.

  void take(std::vector<ModelPreset> presets);
  Result<int64_t> open_model(Task& task);
  Result<void> find_files(Task& task);
  Result<std::shared_ptr<api::HostedModel>> load_model(Task& task, int64_t free);
  Result<void> place_weights(Task& task);
  void make_engine(Parts& parts, const Options& options);
  void free_model(std::unique_ptr<Parts> parts);
  std::function<void(const Progress&)> teller(std::function<void(const Progress&)> progress);
  bool stopped(size_t model) const;

  const HostParts parts_;
  const Options options_;
  const PresetSource source_;
  // By number. The loop's; a model that is loaded has the one that it was opened with.
  struct Preset {
    std::shared_ptr<const ModelPreset> is;
    bool gone = false;
  };
  std::vector<Preset> presets_;
  const MemoryLimit limit_;
  const ProcessPlan plan_;
  std::vector<std::unique_ptr<Parts>> loaded_;  // By number.
  std::unique_ptr<Parts> opened_;               // What was opened last; the thread's.
  PressurePolicy pressure_;
  std::atomic<int64_t> stopping_{-1};  // The model whose load is to end; kAll: any.
  std::mutex mutex_;
  WeightPlacement* placement_ = nullptr;      // That is waited for; guarded by mutex_.
  bool closed_ = false;                       // Likewise.
  std::unique_ptr<BackgroundThread> thread_;  // Last: what it does finds everything else.
};

}  // namespace weir::host
