// ModelRegistry: the models that this server may serve: how requests call them, which of them are
// loaded, who uses them, and which goes when another needs its memory.
//
// A request leases its model before it is prepared, and holds the lease to its end. A model that is
// not loaded is loaded for it, one at a time: idle models that are not pinned go first, the one
// that was used least recently before others, until the new one fits. What is leased never goes: if
// only that is in the way the load waits, first come, first served, and after a while such a model
// takes no more requests until it has answered those that it has, and has gone.
//
// Threads: the loop's. Callbacks may be called before the call that names them returns; they may
// call the registry.
//
// Invariants:
// (1) A model with leases is kLoaded or kDraining, and is not unloaded.
// (2) At most one model is opened, loaded or unloaded at a time.
// (3) The planned bytes of all loaded models are at most the host's room().
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/models/known_model.h"
#include "api/models/model_host.h"
#include "api/models/model_status.h"
#include "base/result.h"

namespace weir::api {

class ModelRegistry;

// One request's use of a loaded model; given back when it is destroyed. Movable.
class ModelLease {
 public:
  ModelLease() = default;
  ModelLease(ModelLease&& other) noexcept;
  ModelLease& operator=(ModelLease&& other) noexcept;
  ~ModelLease();

  explicit operator bool() const { return registry_ != nullptr; }
  size_t model() const { return model_; }  // Its number.

 private:
  friend class ModelRegistry;
  ModelLease(ModelRegistry& registry, size_t model);
  void give_back();

  ModelRegistry* registry_ = nullptr;
  size_t model_ = 0;
};

class ModelRegistry {
 public:
  using Clock = std::chrono::steady_clock;

  struct Limits {
    bool autoload = true;         // Requests load what they need.
    int32_t waiting_max = 16;     // Models that wait to be loaded.
    double load_timeout_s = 300;  // How long a request waits for its model.
    // A model that was just loaded stays so long, whatever waits; and what waits does so for so
    // long before models that are used take no more requests for its sake.
    double stay_s = 10;
    Clock::time_point (*now)() = &Clock::now;
  };
  struct Hooks {
    // A model has been loaded: what answers requests of it is made now.
    std::function<void(size_t model, std::shared_ptr<HostedModel>)> on_loaded;
    // There is one more model than before; its number is the largest.
    std::function<void()> on_added;
    // It has no leases, and gets none: what answers its requests goes now. False:
    // something of it still runs; poll() asks again.
    std::function<bool(size_t model)> on_unloading;
    // A lease was given back, perhaps in the midst of a request's work: poll() is to be called
    // soon.
    std::function<void()> on_freed;
  };

  // The models' states as they change, and how far they are; for /models/sse. Of kReread the status
  // says nothing.
  using Listener = std::function<void(ModelEvent event, const ModelStatus& status)>;
  using Done = std::function<void(Result<void>)>;
  using Leased = std::function<void(Result<ModelLease>)>;

  // `host` outlives the registry. Null: there is one model, which is loaded all the time.
  ModelRegistry(std::vector<KnownModel> models, const Limits& limits, ModelHost* host, Hooks hooks);
  ModelRegistry(const ModelRegistry&) = delete;
  ModelRegistry& operator=(const ModelRegistry&) = delete;
  // REQUIRES: no lease is out.
  ~ModelRegistry();

  // Loads what is to be loaded at the start.
  void start();
  // The only model is loaded: of a registry without a host.
  void set_loaded(int64_t bytes, int32_t context_max);
  // Once a second or so: models that were not used for long go, and who waited for too long.
  void tick();
  // After on_freed(), and after anything that on_unloading() may have waited for.
  void poll();
  // Memory is short: idle models that are not pinned go.
  void shed();
  // Everybody who waits gets `error`, and so does who comes.
  void end(const Error& error);

  size_t count() const { return models_.size(); }
  // A model that is always here is, or there is none; for probes.
  bool ready() const;
  // There is one, and there will be no other.
  bool only_one() const { return host_ == nullptr; }
  std::vector<ModelStatus> list() const;  // Of those that are there.
  ModelStatus status(size_t model) const;
  // By id or alias; an empty name is the first model's. kNotFound, code model_not_found.
  Result<size_t> find(std::string_view name) const;

  // Calls `leased` once the model is loaded: at once, where it is. An error where it is not known,
  // cannot be loaded, or is not loaded and `autoload` is false (kUnavailable, code
  // model_not_loaded). Returns a number for leave().
  uint64_t lease(std::string_view name, bool autoload, Leased leased);
  // Who waits for a lease waits no more, and is not called. One that has got it is left alone.
  void leave(uint64_t waiter);

  // Loads a model, or changes what is said of a loaded one. `done` when it is loaded, or is not.
  void load(std::string_view name, const LoadOptions& options, Done done);
  // Also ends a load that runs or waits. Of a leased one kInvalid, code model_in_use, unless
  // `force`: then it takes no more requests, and goes when those that it has are answered.
  void unload(std::string_view name, bool force, Done done);
  // Has the host look again which models there are. One that is there no more is found no more, and
  // goes when the requests that use it are answered.
  void reread(Done done);
  // A loaded model goes so many seconds after its last use; negative: never; 0: with its last
  // lease.
  void keep_alive(size_t model, int64_t seconds);

  // Called with each change until forgotten.
  uint64_t listen(Listener listener);
  void forget(uint64_t listener);

  void check() const;

 private:
  friend class ModelLease;

  // A request, or an order to load, that waits for a model.
  struct Waiter {
    uint64_t id = 0;
    Clock::time_point since{};
    Leased leased{};  // One of both.
    Done done{};
  };
  struct Model {
    KnownModel entry;
    LoadOptions options{};
    ModelState state = ModelState::kUnloaded;
    int32_t progress = -1;
    std::string failure{};
    int32_t leases = 0;
    int64_t bytes = 0;  // Planned while it is loaded.
    int32_t context_max = 0;
    Clock::time_point loaded_at{};
    Clock::time_point used_at{};
    int64_t used_wall = 0;  // The same, in seconds since the epoch.
    std::vector<Waiter> waiters{};
    std::vector<Done> leavers{};  // Who waits for its end.
  };
  // What the host does.
  enum class Work : uint8_t { kNone, kOpen, kLoad, kUnload };

  ModelLease take_lease(size_t model);
  void give_back(size_t model);
  void enqueue(size_t model, Waiter waiter);
  void dequeue(size_t model);
  void forget_load(size_t model);
  void advance();
  bool unload_drained();
  void begin_open(size_t model);
  void opened(size_t model, const Result<int64_t>& needs);
  bool make_room(size_t model);
  void begin_load(size_t model);
  void loaded(size_t model, const Result<std::shared_ptr<HostedModel>>& hosted);
  void unloaded(size_t model);
  void give_up(size_t model, const Error& error);
  void answer_waiters(size_t model, const Error& error);
  void expire_waiters(size_t model);
  void drain(size_t model);
  std::optional<size_t> idle_model(Clock::duration loaded_for) const;
  std::optional<size_t> used_model() const;
  std::optional<Clock::duration> idle_time(const Model& model) const;
  int64_t taken() const;
  Error too_large() const;
  Error not_found(std::string_view name) const;
  void set_state(size_t model, ModelState state, int32_t progress = -1);
  void note(size_t model, const ModelHost::Progress& progress);
  void tell(ModelEvent event, const ModelStatus& status);
  void begin_reread();
  void take(std::vector<KnownModel> known);
  void withdraw(size_t model);
  Clock::duration stay() const;

  // References stay good while others come.
  std::deque<Model> models_;
  const Limits limits_;
  ModelHost* const host_;
  const Hooks hooks_;
  std::deque<size_t> queue_;  // Models that are to be loaded, in the order in which that was asked.
  Work work_ = Work::kNone;
  size_t working_ = 0;  // The model that it is about.
  int64_t needs_ = -1;  // Bytes that the first of the queue needs; negative: it is not opened.
  bool advancing_ = false;
  bool freed_ = false;  // Since the last poll().
  bool rereading_ = false;
  std::vector<Done> rereaders_;  // That the next reread() answers.
  std::optional<Error> ended_;
  uint64_t next_id_ = 1;
  struct Listening {
    uint64_t id = 0;
    Listener call;
  };
  std::vector<Listening> listeners_;
};

}  // namespace weir::api
