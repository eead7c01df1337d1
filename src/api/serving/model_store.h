// ModelStore: the models of this server by the names that requests may use: which there are, which
// of them are loaded, and what management does with them. Protocols that show or change them are
// written against it; only_model.h is the store of a server with one model.
//
// Threads: the loop's. The callbacks come on the loop, `done` once, perhaps before the function
// returns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/serving/api_config.h"
#include "api/serving/hub_desk.h"
#include "base/result.h"

namespace weir::api {

// What requests can ask of a model.
struct ModelAbilities {
  bool completion = false;
  bool tools = false;
  bool infill = false;
  bool thinking = false;
  bool embedding = false;  // It was made for that.
  bool vision = false;
  bool audio = false;
};

struct ModelEntry {
  std::string name{};
  ModelFacts facts{};
  ModelAbilities abilities{};
  int32_t context_max = 0;  // Positions of one sequence, as it is served.
  bool loaded = false;
  // When it leaves memory unless it is asked, in seconds since the epoch; absent: it stays.
  std::optional<int64_t> expires{};
};

// What a page about one model shows besides.
struct ModelDetails {
  ModelEntry entry{};
  std::string chat_template{};
  GenerationDefaults defaults{};
};

class ModelStore {
 public:
  using Done = HubDesk::Done;

  virtual ~ModelStore() = default;

  // Each model once, by the name that pages show.
  virtual std::vector<ModelEntry> list() const = 0;
  // By any of its names; empty is the one that is served where requests name none. kNotFound, code
  // model_not_found.
  virtual Result<ModelDetails> find(std::string_view name) const = 0;
  // Has it ready. `keep_alive_s`: how long it stays without requests; negative: for ever; absent:
  // as the server is configured.
  virtual void load(const std::string& name, std::optional<double> keep_alive_s, Done done) = 0;
  // Frees its memory, or says why not.
  virtual void unload(const std::string& name, Done done) = 0;
  // As HubDesk's. A model that is served is not removed.
  virtual std::function<void()> pull(const std::string& name, HubDesk::Progress progress,
                                     Done done) = 0;
  virtual void remove(const std::string& name, Done done) = 0;
};

}  // namespace weir::api
