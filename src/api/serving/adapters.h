// Adapters: the model's low-rank adapters (LoRA) by the names under which requests ask for them, as
// vLLM has it, and by their numbers and scales, as llama-server has it.
//
// What an adapter's weights are is the model's business: here they are an address that goes with a
// request. A request that has them keeps them, also when the adapter is unloaded meanwhile.
//
// Threads: any; a lock is held for a look-up or a change, never while files are read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/request/adapter_scale.h"
#include "base/result.h"

namespace weir::model {
class Adapter;
}  // namespace weir::model

namespace weir::api {

// An adapter's weights as the model computes with them.
struct AdapterWeights {
  std::shared_ptr<const model::Adapter> weights;
  int64_t bytes = 0;    // What they take in memory.
  // Another number for other weights, the same after a restart; 0: it is not known.
  uint64_t digest = 0;
  bool scales = false;  // Their effect is a multiple of a scale; else they are there or not.
};

struct ServedAdapter {
  int64_t id = 0;  // llama-server's number, from 0 on; never used again.
  std::string name;
  std::string path;     // As it was given.
  int64_t created = 0;  // Seconds since the epoch.
  AdapterWeights loaded;
};

// What a request is computed with; without weights: the model as it is.
struct ChosenAdapter {
  std::string name;
  std::shared_ptr<const model::Adapter> weights;
  float scale = 1;
  uint64_t key = 0;  // sched::Request::adapter_key.
};

class Adapters {
 public:
  // Reads an adapter that may take so many bytes of memory. Any thread; slow.
  using Loader = std::function<Result<AdapterWeights>(const std::string& path, int64_t bytes_max)>;
  struct Limits {
    int32_t count_max = 0;    // Loaded at once (--max-cpu-loras),
    int64_t bytes_max = 0;    // and the memory that all of them may take.
    int32_t in_step_max = 0;  // In one step (--max-loras); for pages.
  };
  // `loader`: for what requests ask to load; empty: nothing.
  Adapters(const Limits& limits, Loader loader) : limits_(limits), loader_(std::move(loader)) {}

  const Limits& limits() const { return limits_; }
  // kInvalid where the name is taken or no name; kOverloaded where there is no room.
  Result<void> add(const std::string& name, const std::string& path, AdapterWeights weights,
                   int64_t now);
  // Reads it first.
  Result<void> load(const std::string& name, const std::string& path, int64_t now);
  // kNotFound: there is none of that name.
  Result<void> remove(const std::string& name);

  std::optional<ServedAdapter> find(std::string_view name) const;
  std::vector<ServedAdapter> list() const;
  // The scale that requests have which ask for no adapter.
  double default_scale(int64_t id) const;
  // One adapter at most has a scale that is not 0.
  Result<void> set_defaults(const std::vector<AdapterScale>& scales);

  // By the request's model name and its `lora`, where it has one.
  Result<ChosenAdapter> choose(std::string_view model,
                               const std::optional<std::vector<AdapterScale>>& scales) const;

 private:
  Result<void> check_name(const std::string& name) const;
  Result<std::optional<AdapterScale>> only_one(const std::vector<AdapterScale>& scales) const;
  int64_t bytes() const;
  static ChosenAdapter chosen(const ServedAdapter& adapter, double scale);

  const Limits limits_;
  const Loader loader_;
  mutable std::mutex mutex_;
  std::vector<ServedAdapter> adapters_;
  std::optional<AdapterScale> default_;
  int64_t next_id_ = 0;
};

}  // namespace weir::api
