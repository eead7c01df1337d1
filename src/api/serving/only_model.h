// OnlyModel: the ModelStore of a server that has one model, which stays loaded. What it pulls
// lies in the cache until a server is started with it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/serving/model_store.h"
#include "api/serving/serving_context.h"

namespace weir::api {

class OnlyModel final : public ModelStore {
 public:
  // `tokens_max`: of one sequence at present. `serving` outlives it.
  OnlyModel(const ServingContext& serving, std::function<int32_t()> tokens_max)
      : serving_(serving), tokens_max_(std::move(tokens_max)) {}

  std::vector<ModelEntry> list() const override;
  Result<ModelDetails> find(std::string_view name) const override;
  void load(const std::string& name, std::optional<double> keep_alive_s, Done done) override;
  void unload(const std::string& name, Done done) override;
  std::function<void()> pull(const std::string& name, HubDesk::Progress progress,
                             Done done) override;
  void remove(const std::string& name, Done done) override;

 private:
  ModelEntry entry() const;

  const ServingContext& serving_;
  const std::function<int32_t()> tokens_max_;
};

}  // namespace weir::api
