#include "host/local_host.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>

#include "base/byte_size.h"
#include "base/check.h"
#include "base/log.h"
#include "host/weight_placement.h"
#include "hub/model_name.h"
#include "program/adapters.h"
#include "program/allocator.h"
#include "program/api_config.h"
#include "program/expert_streaming.h"
#include "program/loaded_model.h"
#include "program/model_choice.h"
#include "program/model_source.h"
#include "program/prompt_cache.h"
#include "program/start_report.h"
#include "program/text_parts.h"
#include "program/weight_watch.h"
#include "sched/engine.h"
#include "ssd/expert_store.h"
#include "text/vocabulary_check.h"

namespace weir::host {

namespace {

constexpr int64_t kAll = -2;  // Of LocalHost::stopping_.

// Messages in flight to an engine beyond one submission and one cancellation per queued request.
constexpr size_t kInboxSlack = 64;

// Where models share the cores, a step with a long prompt keeps the others waiting no longer.
constexpr double kStepMsBesideModels = 100;

// Models that a server knows, those that are gone included.
constexpr size_t kModelsEverMax = 16 * kModelsMax;

api::KnownModel known_model(const ModelPreset& preset, bool gone) {
  api::KnownModel model;
  model.id = preset.id;
  model.aliases = split_list(preset.options.alias);
  model.any_name = std::erase(model.aliases, "*") > 0;
  model.adapters = adapter_names(preset.options);
  if (hub::ModelName::parse(preset.options.model)) model.hub_name = preset.options.model;
  model.on_startup = preset.load_on_startup || preset.pin;
  model.pinned = preset.pin;
  model.idle_unload = preset.options.idle_unload;
  model.created = std::time(nullptr);
  model.gone = gone;
  return model;
}

// The page cache has a file's pages before the team reads them, so that no step waits for a disk;
// of a model larger than this, or than half of what is free, that is left to the system.
constexpr size_t kReadAheadMax = size_t{16} << 30;
constexpr size_t kPageBytes = 4096;

// One byte a page: what is not in memory yet is read.
void read_ahead(const FileView& file, size_t& left, const std::function<bool()>& stop) {
  const std::span<const std::byte> bytes = file.bytes();
  const size_t count = std::min(bytes.size(), left);
  left -= count;
  constexpr size_t kLookEvery = size_t{16} << 20;
  for (size_t at = 0; at < count; at += kPageBytes) {
    if (at % kLookEvery == 0 && stop()) return;
    static_cast<void>(*static_cast<const volatile std::byte*>(bytes.data() + at));
  }
}

}  // namespace

// In the order in which they are made.
struct LocalHost::Parts {
  std::shared_ptr<const ModelPreset> preset;
  Options options;
  ModelChoice choice;
  std::unique_ptr<model::Model> model;
  MediaTowers towers;
  ModelFootprint footprint;
  MemoryPlan plan;
  std::unique_ptr<TextParts> text;
  std::unique_ptr<api::Adapters> adapters;
  std::unique_ptr<exec::Executor> executor;
  DraftSources drafts;
  std::unique_ptr<sched::EngineHandle> handle;
  std::unique_ptr<kv::disk::DiskCache> disk_cache;  // Null: there is none.
  std::unique_ptr<sched::Engine> engine;
  std::optional<WeightWatch> watch;  // The loop's.
};

struct LocalHost::Task {
  size_t model = 0;
  std::shared_ptr<const ModelPreset> preset;
  api::LoadOptions options{};
  std::function<void(const Progress&)> progress{};
};

LocalHost::LocalHost(const HostParts& parts, const Options& options, PresetSource source,
                     std::vector<ModelPreset> presets, const MemoryLimit& limit)
    : parts_(parts),
      options_(options),
      source_(std::move(source)),
      limit_(limit),
      plan_(plan_process(options, limit)),
      thread_(std::make_unique<BackgroundThread>("weir-load")) {
  take(std::move(presets));
}

LocalHost::~LocalHost() { CHECK(closed_); }

int64_t LocalHost::room() const { return std::max(int64_t{0}, limit_.bytes - plan_.total); }

// --- The loop.

// Each model keeps its number for ever: what is gone may still be loaded, or come back.
void LocalHost::take(std::vector<ModelPreset> presets) {
  for (Preset& known : presets_) known.gone = true;
  for (ModelPreset& preset : presets) {
    const auto known = std::ranges::find_if(
        presets_, [&](const Preset& each) { return each.is->id == preset.id; });
    const size_t number = static_cast<size_t>(known - presets_.begin());
    // Ids without end would take memory without end.
    if (number == kModelsEverMax) continue;
    if (known == presets_.end()) presets_.emplace_back();
    presets_[number] = {std::make_shared<const ModelPreset>(std::move(preset)), false};
  }
  loaded_.resize(presets_.size());
}

std::vector<api::KnownModel> LocalHost::models() const {
  std::vector<api::KnownModel> models;
  for (const Preset& preset : presets_) models.push_back(known_model(*preset.is, preset.gone));
  return models;
}

std::vector<std::string> LocalHost::paths() const {
  std::vector<std::string> paths;
  for (const std::unique_ptr<Parts>& parts : loaded_)
    if (parts) paths.push_back(parts->choice.model_card.files.path());
  return paths;
}

void LocalHost::look_again(std::function<void(Result<std::vector<api::KnownModel>>)> done) {
  auto found = std::make_shared<Result<std::vector<ModelPreset>>>();
  const bool begun = parts_.loop.run_in_pool([this, found] { *found = source_(); },
                                             [this, found, done] {
                                               if (!*found)
                                                 return done(tl::unexpected(found->error()));
                                               take(std::move(**found));
                                               done(models());
                                             });
  if (!begun) done(fail(ErrorCode::kOverloaded, "Too much is being read; try again later."));
}

std::function<void(const LocalHost::Progress&)> LocalHost::teller(
    std::function<void(const Progress&)> progress) {
  return [this, progress = std::move(progress),
          last = Progress{api::ModelState::kUnloaded, -1}](const Progress& now) mutable {
    if (now.state == last.state && now.percent == last.percent) return;
    last = now;
    parts_.loop.post([progress, now] { progress(now); });
  };
}

void LocalHost::open(size_t model, const api::LoadOptions& options,
                     std::function<void(const Progress&)> progress,
                     std::function<void(Result<int64_t>)> done) {
  stopping_.store(-1, std::memory_order_relaxed);
  thread_->run([this, model, preset = presets_[model].is, options,
                progress = teller(std::move(progress)), done = std::move(done)] {
    Task task{model, preset, options, progress};
    Result<int64_t> needs = open_model(task);
    if (!needs) opened_.reset();
    parts_.loop.post([needs = std::move(needs), done] { done(needs); });
  });
}

void LocalHost::load(size_t model, int64_t free, std::function<void(const Progress&)> progress,
                     std::function<void(Result<std::shared_ptr<api::HostedModel>>)> done) {
  stopping_.store(-1, std::memory_order_relaxed);
  thread_->run([this, model, free, progress = teller(std::move(progress)), done = std::move(done)] {
    Task task{model, opened_->preset, {}, progress};
    Result<std::shared_ptr<api::HostedModel>> hosted = load_model(task, free);
    auto parts = std::make_shared<std::unique_ptr<Parts>>(std::move(opened_));
    if (!hosted && *parts) free_model(std::move(*parts));
    parts_.loop.post([this, model, hosted = std::move(hosted), parts, done] {
      if (hosted) {
        const std::lock_guard lock(mutex_);
        if (closed_) return;
        loaded_[model] = std::move(*parts);
        Parts& now = *loaded_[model];
        if (const auto files = now.model->files().in_place; !files.empty())
          now.watch.emplace(files, *now.handle);
      }
      done(hosted);
    });
  });
}

void LocalHost::stop(size_t model) {
  stopping_.store(static_cast<int64_t>(model), std::memory_order_relaxed);
}

bool LocalHost::stopped(size_t model) const {
  const int64_t stopping = stopping_.load(std::memory_order_relaxed);
  return stopping == kAll || stopping == static_cast<int64_t>(model);
}

void LocalHost::unload(size_t model, std::function<void()> done) {
  auto parts = std::make_shared<std::unique_ptr<Parts>>(std::move(loaded_[model]));
  CHECK(*parts);
  thread_->run([this, parts, done = std::move(done)] {
    log::info("models unloaded id=" + (*parts)->preset->id);
    free_model(std::move(*parts));
    parts_.loop.post([done] {
      purge_allocator();
      done();
    });
  });
}

void LocalHost::look_at_files() {
  for (const std::unique_ptr<Parts>& parts : loaded_) {
    if (!parts) continue;
    if (parts->watch) parts->watch->look();
    if (ssd::ExpertStore* experts = parts->model->experts())
      while (const auto notice = experts->take_notice())
        log::warn("experts " + parts->preset->id + ": " + *notice);
  }
}

// As PressureWatch, for all engines; what has no leases goes whole.
void LocalHost::look_at_memory(const std::function<void()>& shed) {
  const PressureAdvice advice =
      pressure_.observe(memory_pressure(), std::chrono::steady_clock::now());
  if (advice == PressureAdvice::kNothing) return;
  const bool high = advice == PressureAdvice::kGiveBack;
  for (const std::unique_ptr<Parts>& parts : loaded_) {
    if (!parts) continue;
    if (ssd::ExpertStore* experts = parts->model->experts()) experts->allow(pressure_.share());
    if (high) parts->engine->shed_memory();
    parts->engine->wake();
  }
  if (high) shed();
}

void LocalHost::drain() {
  stopping_.store(kAll, std::memory_order_relaxed);
  for (const std::unique_ptr<Parts>& parts : loaded_)
    if (parts) parts->handle->drain();
}

// --- The stage's thread, after its run.

void LocalHost::close() {
  stopping_.store(kAll, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (placement_ != nullptr) placement_->give_up();
  }
  thread_.reset();
  for (const std::unique_ptr<Parts>& parts : loaded_) {
    if (!parts || !parts->engine) continue;
    parts->engine->finish();
    parts->engine.reset();
    parts->disk_cache.reset();
    parts->executor.reset();
  }
}

// --- The thread that loads.

// Where the model's files are; pulled first where they are not here.
Result<void> LocalHost::find_files(Task& task) {
  Options& options = opened_->options;
  WEIR_ASSIGN(const ModelSource source, find_source(options));
  if (!source.name || !source.path.empty()) {
    options.model = source.path;
    return {};
  }
  PullWatch watch;
  watch.stop = [this, model = task.model] { return stopped(model); };
  watch.on_progress = [&task](const hub::Progress& now) {
    constexpr int64_t kHundred = 100;
    const int64_t percent = now.bytes > 0 ? now.bytes_done * kHundred / now.bytes : 0;
    task.progress({api::ModelState::kDownloading, static_cast<int32_t>(percent)});
  };
  task.progress({api::ModelState::kDownloading, -1});
  WEIR_ASSIGN(const hub::Snapshot snapshot, pull_model(options, *source.name, watch));
  options.model = snapshot.model_path;
  return {};
}

Result<int64_t> LocalHost::open_model(Task& task) {
  opened_ = std::make_unique<Parts>();
  Parts& parts = *opened_;
  parts.preset = task.preset;
  parts.options = task.preset->options;
  Options& options = parts.options;
  if (task.options.ctx_size) options.ctx_size = *task.options.ctx_size;
  if (task.options.kv_memory) options.kv_memory = *task.options.kv_memory;
  if (!options.max_step_ms) options.max_step_ms = kStepMsBesideModels;
  WEIR_TRY(find_files(task));
  task.progress({api::ModelState::kLoading, 0});
  WEIR_ASSIGN(parts.choice, choose_model(options));
  const kernels::Ops& ops = kernels::ops_for(parts.choice.isa);
  WEIR_ASSIGN(parts.model, bind_model(parts.choice.model_card, model_options(options, parts.choice),
                                      limit_, ops, parts_.team.members()));
  WEIR_ASSIGN(parts.towers, bind_media_towers(parts.choice, ops, parts_.team.members()));
  WEIR_TRY(check_hearing(*parts.model, parts.towers));
  WEIR_ASSIGN(parts.footprint, footprint(*parts.model, parts.choice.kv_format, parts.towers));
  return least_model_bytes(options, limit_, plan_, parts.footprint);
}

Result<std::shared_ptr<api::HostedModel>> LocalHost::load_model(Task& task, int64_t free) {
  CHECK(opened_ && opened_->preset == task.preset);
  Parts& parts = *opened_;
  const Options& options = parts.options;
  WEIR_ASSIGN(parts.plan, plan_model(options, limit_, plan_, room() - free, parts.footprint));
  WEIR_ASSIGN(TextParts text, load_text(parts.choice.model_card, options));
  parts.text = std::make_unique<TextParts>(std::move(text));
  WEIR_ASSIGN(const std::string lacking,
              text::check_vocabulary(*parts.text->tokenizer, parts.model->spec().vocab_size));
  if (!lacking.empty()) log::warn("model " + lacking);
  parts.executor = make_executor(*parts.model, parts.towers, kernels::ops_for(parts.choice.isa),
                                 parts_.team);
  WEIR_TRY(place_weights(task));
  WEIR_ASSIGN(parts.adapters, load_adapters(options, *parts.model, parts.plan));
  WEIR_TRY(open_experts(*parts.model, options, parts.plan.expert_bytes,
                        sched::sequences_max(options.queue, parts.plan.parallel)));
  WEIR_ASSIGN(kv::MemoryLayout layout,
              kv::MemoryLayout::make(parts.model->memory_needs(), parts.choice.kv_format,
                                     parts.model->options().tape_tokens));
  WEIR_TRY(take_kv(*parts.executor, std::move(layout), parts.plan));
  if (stopped(task.model)) return fail(ErrorCode::kCancelled, "the load was stopped");
  make_engine(parts, options);

  auto hosted = std::make_shared<api::HostedModel>();
  hosted->bytes = parts.plan.model_bytes;
  parts.text->take_media(parts.choice.model_card, parts.towers);
  parts.text->hear_speech(parts.choice.model_card);
  hosted->config = api_config(options, parts.choice, *parts.model, parts.plan, *parts.text);
  const ModelPreset& preset = *parts.preset;
  hosted->config.model_id = preset.id;
  hosted->config.aliases.push_back(preset.id);
  hosted->config.adapters = parts.adapters.get();
  hosted->config.engine = parts.handle.get();
  hosted->config.loop = &parts_.loop;
  log::info("models loaded id=" + preset.id + " bytes=" + human_bytes(hosted->bytes));
  log_start(options, parts.choice, *parts.model, parts.plan, *parts.text);
  return hosted;
}

Result<void> LocalHost::place_weights(Task& task) {
  const auto stop = [this, model = task.model] { return stopped(model); };
  size_t left =
      std::min(kReadAheadMax, static_cast<size_t>(std::max(int64_t{0}, limit_.bytes)) / 2);
  for (const FileView& file : opened_->model->files().all) read_ahead(file, left, stop);
  WeightPlacement placement(
      *opened_->executor,
      [&task](int64_t done, int64_t total) {
        constexpr int64_t kHundred = 100;
        task.progress({api::ModelState::kLoading,
                       static_cast<int32_t>(total > 0 ? done * kHundred / total : kHundred)});
      },
      stop);
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return fail(ErrorCode::kCancelled, "the server is shutting down");
    placement_ = &placement;
  }
  parts_.stage.add(placement);
  const Result<void> placed = placement.wait();
  parts_.stage.remove(placement);
  const std::lock_guard lock(mutex_);
  placement_ = nullptr;
  return placed;
}

void LocalHost::make_engine(Parts& parts, const Options& options) {
  parts.drafts = make_draft_sources(options, *parts.executor, parts.plan);
  sched::EngineOptions engine = plan_engine(options, parts.plan, parts.drafts, *parts.model);
  parts.disk_cache = open_prompt_cache(options, parts.choice, *parts.model, parts.footprint,
                                       open_caches_);
  engine.disk = parts.disk_cache.get();
  engine.on_rest = [this] {
    parts_.team.run([](int) { purge_allocator(); });
    parts_.loop.post(purge_allocator);
  };
  if (ssd::ExpertStore* experts = parts.model->experts())
    engine.on_idle = [experts] { experts->adjust_memory(); };
  parts.handle = std::make_unique<sched::EngineHandle>(
      options.queue, std::bit_ceil(2 * static_cast<size_t>(options.queue) + kInboxSlack),
      parts_.stage.bell());
  parts.engine = std::make_unique<sched::Engine>(engine, *parts.executor, *parts.handle,
                                                 [this] { parts_.loop.wake(); });
  parts_.stage.add(*parts.engine);
}

// In the background: to give gigabytes back takes longer than a step.
void LocalHost::free_model(std::unique_ptr<Parts> parts) {
  if (parts->engine) {
    parts_.stage.remove(*parts->engine);
    parts->engine->finish();
  }
  parts.reset();
  purge_allocator();
}

}  // namespace weir::host
