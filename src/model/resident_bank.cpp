#include "model/resident_bank.h"

#include <utility>

namespace weir::model {

Result<ExpertBank::Layer> ResidentBank::add_layer(int32_t, std::vector<FfnWeights> experts) {
  layers_.push_back(std::move(experts));
  while (places_.size() < layers_.back().size())
    places_.push_back(static_cast<int32_t>(places_.size()));
  return Layer{.number = static_cast<int32_t>(layers_.size()) - 1, .experts = layers_.back()};
}

}  // namespace weir::model
