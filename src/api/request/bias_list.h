// BiasList: what logit_bias adds to each token. Tokens may be named more than once, as ids and in
// texts: the addends are summed, as llama-server does.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/request/generate_request.h"
#include "api/request/json_fields.h"

namespace weir::api {

class BiasList {
 public:
  // At most kLogitBiasMax different tokens: each choice has them in its memory and its answer.
  Result<void> add(int32_t token, float bias) {
    const auto [known, is_new] = places_.try_emplace(token, biases_.size());
    if (!is_new) {
      biases_[known->second].second += bias;
      return {};
    }
    if (biases_.size() == kLogitBiasMax)
      return out_of_range("logit_bias", "expected at most " + std::to_string(kLogitBiasMax) +
                                            " tokens, those of its texts included, found more");
    biases_.emplace_back(token, bias);
    return {};
  }

  // In the order in which they came.
  std::vector<std::pair<int32_t, float>> take() && { return std::move(biases_); }

 private:
  std::vector<std::pair<int32_t, float>> biases_;
  std::unordered_map<int32_t, size_t> places_;
};

}  // namespace weir::api
