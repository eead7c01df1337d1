#include "api/models/model_registry.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/byte_size.h"
#include "base/check.h"
#include "base/log.h"

namespace weir::api {

namespace {

std::string in_quotes(std::string_view name) {
  return "'" + std::string(name.substr(0, 256)) + "'";
}

int64_t seconds_of(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

std::chrono::steady_clock::duration of_seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

std::string_view name_of(ModelState state) {
  switch (state) {
    case ModelState::kUnloaded:
      return "unloaded";
    case ModelState::kQueued:
      return "queued";
    case ModelState::kDownloading:
      return "downloading";
    case ModelState::kLoading:
      return "loading";
    case ModelState::kLoaded:
      return "loaded";
    case ModelState::kDraining:
      return "draining";
  }
  CHECK(false);
}

ModelLease::ModelLease(ModelRegistry& registry, size_t model)
    : registry_(&registry), model_(model) {}

ModelLease::ModelLease(ModelLease&& other) noexcept
    : registry_(std::exchange(other.registry_, nullptr)), model_(other.model_) {}

ModelLease& ModelLease::operator=(ModelLease&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  registry_ = std::exchange(other.registry_, nullptr);
  model_ = other.model_;
  return *this;
}

ModelLease::~ModelLease() { give_back(); }

void ModelLease::give_back() {
  if (registry_ != nullptr) std::exchange(registry_, nullptr)->give_back(model_);
}

ModelRegistry::ModelRegistry(std::vector<KnownModel> models, const Limits& limits, ModelHost* host,
                             Hooks hooks)
    : limits_(limits), host_(host), hooks_(std::move(hooks)) {
  CHECK(!models.empty() && (host_ != nullptr || models.size() == 1));
  for (KnownModel& entry : models) models_.push_back({.entry = std::move(entry)});
}

ModelRegistry::~ModelRegistry() {
  for (const Model& model : models_) CHECK(model.leases == 0);
}

void ModelRegistry::start() {
  for (size_t i = 0; i < models_.size(); ++i)
    if (models_[i].entry.on_startup) enqueue(i, {.since = limits_.now(), .done = [](auto) {}});
  advance();
}

void ModelRegistry::set_loaded(int64_t bytes, int32_t context_max) {
  CHECK(only_one());
  models_[0].bytes = bytes;
  models_[0].context_max = context_max;
  models_[0].loaded_at = models_[0].used_at = limits_.now();
  models_[0].used_wall = std::time(nullptr);
  set_state(0, ModelState::kLoaded);
}

bool ModelRegistry::ready() const {
  const auto pinned = [](const Model& m) { return m.entry.pinned && !m.entry.gone; };
  const auto loaded = [](const Model& m) { return m.state == ModelState::kLoaded; };
  if (std::ranges::none_of(models_, pinned)) return true;
  return std::ranges::any_of(models_, [&](const Model& m) { return pinned(m) && loaded(m); });
}

// --- Names.

Result<size_t> ModelRegistry::find(std::string_view name) const {
  const auto has = [&](const std::vector<std::string>& names) {
    return std::ranges::find(names, name) != names.end();
  };
  for (size_t i = 0; i < models_.size(); ++i) {
    const KnownModel& entry = models_[i].entry;
    if (entry.gone) continue;
    if (name.empty() || name == entry.id || has(entry.aliases) || has(entry.adapters)) return i;
  }
  const auto any = std::ranges::find_if(
      models_, [](const Model& m) { return m.entry.any_name && !m.entry.gone; });
  if (any != models_.end()) return static_cast<size_t>(any - models_.begin());
  return tl::unexpected(not_found(name));
}

Error ModelRegistry::not_found(std::string_view name) const {
  constexpr size_t kNamedMax = 16;
  std::string list;
  size_t named = 0;
  for (const Model& model : models_) {
    if (model.entry.gone) continue;
    if (++named > kNamedMax) break;
    list += (named == 1 ? "" : ", ") + in_quotes(model.entry.id);
  }
  if (named > kNamedMax) list += " and more (GET /v1/models)";
  return {ErrorCode::kNotFound,
          "The model " + in_quotes(name) + " does not exist; this server has " +
              (named == 0 ? "none" : list) + ".",
          "model", "model_not_found"};
}

// --- What pages show.

ModelStatus ModelRegistry::status(size_t number) const {
  const Model& model = models_[number];
  ModelStatus status;
  status.number = number;
  status.id = model.entry.id;
  status.aliases = model.entry.aliases;
  status.hub_name = model.entry.hub_name;
  status.state = model.state;
  status.progress = model.progress;
  status.failure = model.failure;
  status.pinned = model.entry.pinned;
  status.leases = model.leases;
  status.last_used = model.used_wall;
  status.bytes = model.bytes;
  status.context_max = model.context_max;
  status.created = model.entry.created;
  const auto idle = idle_time(model);
  if (model.state == ModelState::kLoaded && idle)
    status.expires_at = model.used_wall + seconds_of(*idle);
  return status;
}

std::vector<ModelStatus> ModelRegistry::list() const {
  std::vector<ModelStatus> list;
  list.reserve(models_.size());
  for (size_t i = 0; i < models_.size(); ++i)
    if (!models_[i].entry.gone) list.push_back(status(i));
  return list;
}

uint64_t ModelRegistry::listen(Listener listener) {
  listeners_.push_back({next_id_, std::move(listener)});
  return next_id_++;
}

void ModelRegistry::forget(uint64_t listener) {
  std::erase_if(listeners_, [&](const Listening& l) { return l.id == listener; });
}

void ModelRegistry::set_state(size_t number, ModelState state, int32_t progress) {
  Model& model = models_[number];
  if (model.state == state && model.progress == progress) return;
  model.state = state;
  model.progress = progress;
  if (!model.entry.gone) tell(ModelEvent::kStatus, status(number));
}

void ModelRegistry::tell(ModelEvent event, const ModelStatus& status) {
  // One that hears of it may forget itself.
  const std::vector<Listening> listeners = listeners_;
  for (const Listening& listener : listeners) listener.call(event, status);
}

void ModelRegistry::note(size_t model, const ModelHost::Progress& progress) {
  if (work_ != Work::kNone && working_ == model) set_state(model, progress.state, progress.percent);
}

// --- Leases.

ModelLease ModelRegistry::take_lease(size_t number) {
  Model& model = models_[number];
  CHECK(model.state == ModelState::kLoaded);
  ++model.leases;
  model.used_at = limits_.now();
  model.used_wall = std::time(nullptr);
  return {*this, number};
}

void ModelRegistry::give_back(size_t number) {
  Model& model = models_[number];
  CHECK(model.leases > 0);
  model.used_at = limits_.now();
  model.used_wall = std::time(nullptr);
  if (--model.leases > 0 || host_ == nullptr) return;
  if (model.state == ModelState::kLoaded && idle_time(model) == Clock::duration::zero())
    drain(number);
  freed_ = true;
  hooks_.on_freed();
}

uint64_t ModelRegistry::lease(std::string_view name, bool autoload, Leased leased) {
  const uint64_t id = next_id_++;
  if (ended_) return leased(tl::unexpected(*ended_)), id;
  const Result<size_t> found = find(name);
  if (!found) return leased(tl::unexpected(found.error())), id;
  const Model& model = models_[*found];
  if (model.state == ModelState::kLoaded) return leased(take_lease(*found)), id;
  const bool comes = !model.waiters.empty();
  if (!comes && !(autoload && limits_.autoload))
    return leased(fail(ErrorCode::kUnavailable,
                       "The model " + in_quotes(model.entry.id) +
                           " is not loaded, and is not loaded for a request; POST /models/load "
                           "loads it.",
                       "model", "model_not_loaded")),
           id;
  enqueue(*found, {.id = id, .since = limits_.now(), .leased = std::move(leased)});
  advance();
  return id;
}

void ModelRegistry::leave(uint64_t waiter) {
  for (size_t i = 0; i < models_.size(); ++i) {
    Model& model = models_[i];
    if (std::erase_if(model.waiters, [&](const Waiter& w) { return w.id == waiter; }) == 0)
      continue;
    if (model.waiters.empty()) forget_load(i);
    return advance();
  }
}

// --- Orders.

void ModelRegistry::load(std::string_view name, const LoadOptions& options, Done done) {
  if (ended_) return done(tl::unexpected(*ended_));
  const Result<size_t> found = find(name);
  if (!found) return done(tl::unexpected(found.error()));
  Model& model = models_[*found];
  const bool other_size = (options.ctx_size && options.ctx_size != model.options.ctx_size) ||
                          (options.kv_memory && options.kv_memory != model.options.kv_memory);
  if (other_size && model.state != ModelState::kUnloaded)
    return done(fail(ErrorCode::kInvalid,
                     "The model " + in_quotes(model.entry.id) + " is " +
                         std::string(name_of(model.state)) +
                         ": another ctx_size or kv_memory needs it to be unloaded first.",
                     "model", "model_in_use"));
  if (options.ctx_size) model.options.ctx_size = options.ctx_size;
  if (options.kv_memory) model.options.kv_memory = options.kv_memory;
  if (options.keep_alive) model.options.keep_alive = options.keep_alive;
  if (options.pin) model.entry.pinned = *options.pin;
  if (model.state == ModelState::kLoaded) {
    model.used_at = limits_.now();
    model.used_wall = std::time(nullptr);
    return done({});
  }
  enqueue(*found, {.id = next_id_++, .since = limits_.now(), .done = std::move(done)});
  advance();
}

void ModelRegistry::unload(std::string_view name, bool force, Done done) {
  const Result<size_t> found = find(name);
  if (!found) return done(tl::unexpected(found.error()));
  Model& model = models_[*found];
  if (host_ == nullptr)
    return done(fail(ErrorCode::kUnsupported,
                     "This server serves one model, from its start to its end: --models FILE names "
                     "several, which come and go.",
                     "model"));
  if (model.state == ModelState::kLoaded && model.leases > 0 && !force)
    return done(fail(ErrorCode::kInvalid,
                     "The model " + in_quotes(model.entry.id) + " is used by " +
                         std::to_string(model.leases) +
                         " requests; with \"force\": true it takes no more, and goes when these "
                         "are answered.",
                     "model", "model_in_use"));
  const Error cancelled = {ErrorCode::kUnavailable,
                           "The model " + in_quotes(model.entry.id) + " was unloaded meanwhile."};
  answer_waiters(*found, cancelled);
  forget_load(*found);
  if (model.state == ModelState::kUnloaded) {
    advance();
    return done({});
  }
  model.leavers.push_back(std::move(done));
  if (model.state == ModelState::kDownloading || model.state == ModelState::kLoading)
    return host_->stop(*found);
  drain(*found);
  advance();
}

// --- Which models there are.

void ModelRegistry::reread(Done done) {
  if (ended_) return done(tl::unexpected(*ended_));
  if (host_ == nullptr) return done({});
  rereaders_.push_back(std::move(done));
  if (!rereading_) begin_reread();
}

// What comes while the host looks may ask for what it has not seen: it looks once more for these.
void ModelRegistry::begin_reread() {
  rereading_ = true;
  host_->look_again([this, rereaders = std::exchange(rereaders_, {})](
                        const Result<std::vector<KnownModel>>& known) {
    rereading_ = false;
    if (known && !ended_) take(*known);
    for (const Done& done : rereaders) done(known ? Result<void>() : tl::unexpected(known.error()));
    if (!rereaders_.empty()) begin_reread();
  });
}

void ModelRegistry::take(std::vector<KnownModel> known) {
  CHECK(known.size() >= models_.size());
  for (size_t i = 0; i < known.size(); ++i) {
    if (i == models_.size()) {
      models_.push_back({.entry = std::move(known[i])});
      hooks_.on_added();
      continue;
    }
    KnownModel& entry = models_[i].entry;
    CHECK(entry.id == known[i].id);
    const bool goes = !entry.gone && known[i].gone;
    // Orders have changed that, too; and it was learnt of when it came.
    const bool pinned = entry.pinned;
    const int64_t created = entry.created;
    entry = std::move(known[i]);
    entry.pinned = pinned && !entry.gone;
    entry.created = created;
    if (goes) withdraw(i);
  }
  tell(ModelEvent::kReread, {});
  advance();
}

void ModelRegistry::withdraw(size_t number) {
  Model& model = models_[number];
  log::info("models gone id=" + model.entry.id);
  tell(ModelEvent::kRemoved, status(number));
  answer_waiters(number, not_found(model.entry.id));
  forget_load(number);
  if (model.state == ModelState::kDownloading || model.state == ModelState::kLoading)
    return host_->stop(number);
  drain(number);
}

void ModelRegistry::keep_alive(size_t number, int64_t seconds) {
  Model& model = models_[number];
  model.options.keep_alive = seconds;
  if (host_ == nullptr || model.state != ModelState::kLoaded || model.leases > 0) return;
  if (seconds != 0 || model.entry.pinned) return;
  drain(number);
  advance();
}

void ModelRegistry::shed() {
  if (host_ == nullptr) return;
  for (size_t i = 0; i < models_.size(); ++i)
    if (const Model& model = models_[i];
        model.state == ModelState::kLoaded && model.leases == 0 && !model.entry.pinned) {
      log::info("models unload id=" + model.entry.id + " (memory is short)");
      drain(i);
    }
  advance();
}

void ModelRegistry::end(const Error& error) {
  ended_ = error;
  for (size_t i = 0; i < models_.size(); ++i) answer_waiters(i, error);
  queue_.clear();
  if (work_ == Work::kOpen || work_ == Work::kLoad) host_->stop(working_);
}

void ModelRegistry::tick() {
  if (host_ == nullptr) return;
  const Clock::time_point now = limits_.now();
  for (size_t i = 0; i < models_.size(); ++i) {
    expire_waiters(i);
    const Model& model = models_[i];
    const auto idle = idle_time(model);
    if (model.state == ModelState::kLoaded && model.leases == 0 && idle &&
        now - model.used_at >= *idle)
      drain(i);
  }
  advance();
}

void ModelRegistry::poll() {
  if (host_ == nullptr) return;
  const auto draining = [](const Model& m) { return m.state == ModelState::kDraining; };
  if (std::exchange(freed_, false) || std::ranges::any_of(models_, draining)) advance();
}

// --- The queue of loads.

void ModelRegistry::enqueue(size_t number, Waiter waiter) {
  Model& model = models_[number];
  const bool queued = std::ranges::find(queue_, number) != queue_.end();
  if (!queued && std::ssize(queue_) >= limits_.waiting_max) {
    const Error full = {ErrorCode::kUnavailable, std::to_string(limits_.waiting_max) +
                                                     " models wait to be loaded; try again later."};
    return waiter.leased ? waiter.leased(tl::unexpected(full)) : waiter.done(tl::unexpected(full));
  }
  model.waiters.push_back(std::move(waiter));
  if (queued) return;
  queue_.push_back(number);
  model.failure.clear();
  // One that drains is loaded again when it has gone.
  if (model.state == ModelState::kUnloaded) set_state(number, ModelState::kQueued);
}

void ModelRegistry::dequeue(size_t number) {
  const auto place = std::ranges::find(queue_, number);
  CHECK(place != queue_.end());
  if (place == queue_.begin()) needs_ = -1;
  queue_.erase(place);
  if (models_[number].state != ModelState::kDraining) set_state(number, ModelState::kUnloaded);
}

// It is wanted no more. What is being loaded is loaded all the same.
void ModelRegistry::forget_load(size_t number) {
  const ModelState state = models_[number].state;
  if (std::ranges::find(queue_, number) == queue_.end()) return;
  if (state == ModelState::kQueued || state == ModelState::kDraining) dequeue(number);
}

// Has the host do what comes next, if anything does.
void ModelRegistry::advance() {
  if (host_ == nullptr || ended_ || std::exchange(advancing_, true)) return;
  while (work_ == Work::kNone) {
    if (unload_drained()) break;
    if (queue_.empty()) break;
    const size_t first = queue_.front();
    if (models_[first].state == ModelState::kDraining) break;  // It goes before it comes again.
    if (needs_ < 0)
      begin_open(first);
    else if (!make_room(first))
      break;
  }
  advancing_ = false;
}

bool ModelRegistry::unload_drained() {
  for (size_t i = 0; i < models_.size(); ++i) {
    const Model& model = models_[i];
    if (model.state != ModelState::kDraining || model.leases > 0) continue;
    if (!hooks_.on_unloading(i)) continue;
    work_ = Work::kUnload;
    working_ = i;
    host_->unload(i, [this, i] { unloaded(i); });
    return true;
  }
  return false;
}

void ModelRegistry::begin_open(size_t number) {
  work_ = Work::kOpen;
  working_ = number;
  set_state(number, ModelState::kLoading);
  host_->open(
      number, models_[number].options,
      [this, number](const ModelHost::Progress& progress) { note(number, progress); },
      [this, number](const Result<int64_t>& needs) { opened(number, needs); });
}

void ModelRegistry::opened(size_t number, const Result<int64_t>& needs) {
  work_ = Work::kNone;
  if (!needs) {
    give_up(number, needs.error());
  } else if (queue_.empty() || queue_.front() != number) {  // It is wanted no more.
    CHECK(ended_.has_value());
    set_state(number, ModelState::kUnloaded);
  } else {
    needs_ = *needs;
    set_state(number, ModelState::kQueued);
  }
  advance();
}

// Begins to load the first of the queue, or has another go for it. False: it waits.
bool ModelRegistry::make_room(size_t number) {
  int64_t pinned = 0;
  for (const Model& model : models_) pinned += model.entry.pinned ? model.bytes : 0;
  if (pinned + needs_ > host_->room()) {
    give_up(number, too_large());
    return true;
  }
  if (taken() + needs_ <= host_->room()) {
    begin_load(number);
    return true;
  }
  // Room is being made already.
  if (std::ranges::any_of(models_, [](const Model& m) { return m.state == ModelState::kDraining; }))
    return false;
  auto leaving = idle_model(stay());
  if (!leaving) leaving = used_model();
  if (!leaving) return false;
  log::info("models unload id=" + models_[*leaving].entry.id + " for=" + models_[number].entry.id);
  drain(*leaving);
  return true;
}

void ModelRegistry::begin_load(size_t number) {
  work_ = Work::kLoad;
  working_ = number;
  set_state(number, ModelState::kLoading);
  host_->load(
      number, host_->room() - taken(),
      [this, number](const ModelHost::Progress& progress) { note(number, progress); },
      [this, number](const Result<std::shared_ptr<HostedModel>>& hosted) {
        loaded(number, hosted);
      });
}

void ModelRegistry::loaded(size_t number, const Result<std::shared_ptr<HostedModel>>& hosted) {
  work_ = Work::kNone;
  if (!hosted) {
    give_up(number, hosted.error());
    return advance();
  }
  Model& model = models_[number];
  if (const auto place = std::ranges::find(queue_, number); place != queue_.end()) {
    queue_.erase(place);
    needs_ = -1;
  }
  model.bytes = (*hosted)->bytes;
  model.context_max = (*hosted)->config.context_max;
  model.loaded_at = model.used_at = limits_.now();
  model.used_wall = std::time(nullptr);
  hooks_.on_loaded(number, *hosted);
  set_state(number, ModelState::kLoaded);
  for (Waiter& waiter : std::exchange(model.waiters, {})) {
    if (waiter.done)
      waiter.done({});
    else
      waiter.leased(take_lease(number));
  }
  const bool unwanted = ended_ || !model.leavers.empty() || model.entry.gone;
  if (unwanted) drain(number);  // It was too late to stop.
  advance();
}

void ModelRegistry::unloaded(size_t number) {
  work_ = Work::kNone;
  Model& model = models_[number];
  model.bytes = 0;
  model.context_max = 0;
  model.options.keep_alive.reset();
  const bool queued = std::ranges::find(queue_, number) != queue_.end();
  set_state(number, queued ? ModelState::kQueued : ModelState::kUnloaded);
  for (const Done& done : std::exchange(model.leavers, {})) done({});
  advance();
}

// A load has come to nothing.
void ModelRegistry::give_up(size_t number, const Error& error) {
  Model& model = models_[number];
  if (std::ranges::find(queue_, number) != queue_.end()) dequeue(number);
  if (error.code != ErrorCode::kCancelled) {
    model.failure = error.message;
    log::error("models load failed id=" + model.entry.id + ": " + error.message);
  }
  set_state(number, ModelState::kUnloaded);
  Error answer = error;
  // Neither a model's files nor what its options ask for is the client's fault.
  if (answer.code == ErrorCode::kConfig || answer.code == ErrorCode::kCapacity)
    answer.code = ErrorCode::kIo;
  if (answer.code == ErrorCode::kCancelled) answer.code = ErrorCode::kUnavailable;
  if (answer.kind.empty()) answer.kind = "model_load_failed";
  answer.message =
      "The model " + in_quotes(model.entry.id) + " could not be loaded: " + error.message;
  answer_waiters(number, answer);
  for (const Done& done : std::exchange(model.leavers, {})) done({});
}

void ModelRegistry::answer_waiters(size_t number, const Error& error) {
  for (Waiter& waiter : std::exchange(models_[number].waiters, {})) {
    if (waiter.done)
      waiter.done(tl::unexpected(error));
    else
      waiter.leased(tl::unexpected(error));
  }
}

void ModelRegistry::expire_waiters(size_t number) {
  Model& model = models_[number];
  const Clock::time_point now = limits_.now();
  std::vector<Waiter> late;
  for (Waiter& waiter : model.waiters)
    if (now - waiter.since >= of_seconds(limits_.load_timeout_s)) late.push_back(std::move(waiter));
  if (late.empty()) return;
  std::erase_if(model.waiters, [](const Waiter& w) { return !w.leased && !w.done; });
  if (model.waiters.empty()) forget_load(number);
  const Error error = {ErrorCode::kUnavailable,
                       "The model " + in_quotes(model.entry.id) + " was not loaded within " +
                           std::to_string(static_cast<int64_t>(limits_.load_timeout_s)) +
                           " s (--load-timeout); try again later.",
                       "model", "model_not_loaded"};
  for (const Waiter& waiter : late)
    waiter.leased ? waiter.leased(tl::unexpected(error)) : waiter.done(tl::unexpected(error));
}

// --- What goes.

void ModelRegistry::drain(size_t number) {
  if (models_[number].state == ModelState::kLoaded) set_state(number, ModelState::kDraining);
}

ModelRegistry::Clock::duration ModelRegistry::stay() const { return of_seconds(limits_.stay_s); }

// The one that was used least recently, of those without leases that were loaded for so long.
std::optional<size_t> ModelRegistry::idle_model(Clock::duration loaded_for) const {
  std::optional<size_t> idle;
  for (size_t i = 0; i < models_.size(); ++i) {
    const Model& model = models_[i];
    if (model.state != ModelState::kLoaded || model.leases > 0 || model.entry.pinned) continue;
    if (limits_.now() - model.loaded_at < loaded_for) continue;
    if (!idle || model.used_at < models_[*idle].used_at) idle = i;
  }
  return idle;
}

// What has waited for long goes before what came later to a model that is in its way: of those, the
// one that was loaded first.
std::optional<size_t> ModelRegistry::used_model() const {
  const Model& first = models_[queue_.front()];
  const Clock::time_point now = limits_.now();
  if (first.waiters.empty() || now - first.waiters.front().since < stay()) return std::nullopt;
  // An idle one that stays for a moment yet is waited for.
  if (idle_model({})) return std::nullopt;
  std::optional<size_t> used;
  for (size_t i = 0; i < models_.size(); ++i) {
    const Model& model = models_[i];
    if (model.state != ModelState::kLoaded || model.entry.pinned) continue;
    if (now - model.loaded_at < stay()) continue;
    if (!used || model.loaded_at < models_[*used].loaded_at) used = i;
  }
  return used;
}

// How long after its last use it goes; none: it stays.
std::optional<ModelRegistry::Clock::duration> ModelRegistry::idle_time(const Model& model) const {
  if (host_ == nullptr || model.entry.pinned) return std::nullopt;
  if (const auto seconds = model.options.keep_alive)
    return *seconds < 0 ? std::nullopt
                        : std::optional<Clock::duration>(of_seconds(double(*seconds)));
  if (model.entry.idle_unload == 0) return std::nullopt;
  return std::chrono::seconds(model.entry.idle_unload);
}

int64_t ModelRegistry::taken() const {
  int64_t bytes = 0;
  for (const Model& model : models_) bytes += model.bytes;
  return bytes;
}

Error ModelRegistry::too_large() const {
  int64_t pinned = 0;
  for (const Model& other : models_) pinned += other.entry.pinned ? other.bytes : 0;
  return {ErrorCode::kInvalid,
          "it needs " + human_bytes(needs_) + "; models may take " + human_bytes(host_->room()) +
              " together" +
              (pinned > 0 ? ", of which " + human_bytes(pinned) + " are pinned" : std::string()) +
              " (a smaller --ctx-size or --kv-memory of the model helps, or a larger --mem-limit).",
          "model", "model_too_large"};
}

void ModelRegistry::check() const {
  int64_t bytes = 0;
  for (const Model& model : models_) {
    CHECK(model.leases == 0 || model.state == ModelState::kLoaded ||
          model.state == ModelState::kDraining);
    bytes += model.bytes;
  }
  CHECK(host_ == nullptr || bytes <= host_->room());
  for (const size_t number : queue_) CHECK(models_[number].state != ModelState::kLoaded);
}

}  // namespace weir::api
