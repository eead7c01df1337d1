// ModelStatus: what pages say of one of the models that this server may serve.
//
// Threads: a plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::api {

// A model comes and goes in this order; what cannot be loaded falls back to kUnloaded, with the
// reason in ModelStatus::failure.
enum class ModelState : uint8_t {
  kUnloaded,     // Its files may not even be here.
  kQueued,       // Others are loaded first, or what is used must leave first.
  kDownloading,  // From the hub.
  kLoading,
  kLoaded,
  kDraining,  // It answers what it has, and takes nothing more.
};

// "unloaded", "queued", "downloading", "loading", "loaded", "draining".
std::string_view name_of(ModelState state);

struct ModelStatus {
  size_t number = 0;  // Of the registry.
  std::string id;
  std::vector<std::string> aliases{};  // Other names that requests may use.
  std::string hub_name{};              // Of a model of the hub; empty: it is none.
  ModelState state = ModelState::kUnloaded;
  int32_t progress = -1;  // Of a download or a load, in per cent; -1: not known.
  std::string failure{};  // Why the latest load came to nothing; empty: it did not.
  bool pinned = false;    // It goes only when that is asked for.
  int32_t leases = 0;     // Requests that use it.
  // When it was last used and when it goes if it is not used again, in seconds since the epoch; 0:
  // never.
  int64_t last_used = 0;
  int64_t expires_at = 0;
  int64_t bytes = 0;        // Of memory that is planned for it, while it is loaded; else 0.
  int32_t context_max = 0;  // Positions of one sequence, while it is loaded; else 0.
  int64_t created = 0;      // Seconds since the epoch: when the server learnt of it.
};

// What those who listen to the registry are told.
enum class ModelEvent : uint8_t {
  kStatus,   // A model's state has changed.
  kRemoved,  // It is there no more.
  kReread,   // The list of models was read again.
};

// What a request to load a model may say of it; absent: as it was.
struct LoadOptions {
  std::optional<int32_t> ctx_size{};
  std::optional<int64_t> kv_memory{};  // Bytes.
  std::optional<bool> pin{};
  std::optional<int64_t> keep_alive{};  // Seconds after its last use; negative: for ever.
};

}  // namespace weir::api
