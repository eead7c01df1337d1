// ServedStore: the ModelStore of a server whose models come and go: what their registry says of
// them, and what is served of those that are loaded.
//
// Threads: the loop's.
#pragma once

#include <memory>
#include <vector>

#include "api/models/model_registry.h"
#include "api/served_model.h"
#include "api/serving/model_store.h"

namespace weir::api {

class ServedStore final : public ModelStore {
 public:
  // All outlive it. `served`: by the registry's numbers; null: not loaded.
  ServedStore(const ApiConfig& config, ModelRegistry& registry,
              const std::vector<std::shared_ptr<ServedModel>>& served)
      : config_(config), registry_(registry), served_(served) {}

  std::vector<ModelEntry> list() const override;
  Result<ModelDetails> find(std::string_view name) const override;
  void load(const std::string& name, std::optional<double> keep_alive_s, Done done) override;
  // With its last request: the one that asks for it uses it, too.
  void unload(const std::string& name, Done done) override;
  std::function<void()> pull(const std::string& name, HubDesk::Progress progress,
                             Done done) override;
  void remove(const std::string& name, Done done) override;

 private:
  Done then_reread(Done done);
  ModelDetails details(size_t number) const;

  const ApiConfig& config_;
  ModelRegistry& registry_;
  const std::vector<std::shared_ptr<ServedModel>>& served_;
};

}  // namespace weir::api
