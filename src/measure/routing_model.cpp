// Drawing of popularity, maps, topics and tokens.
#include "measure/routing_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace weir::measure {
namespace {

// Zipf's law as logits: minus the logarithm of an expert's rank, with mean 0 and variance 1.
std::vector<float> zipf_logits(int32_t experts) {
  std::vector<float> logits(static_cast<size_t>(experts));
  for (size_t rank = 0; rank < logits.size(); ++rank)
    logits[rank] = -std::log(static_cast<float>(rank + 1));
  const float n = static_cast<float>(experts);
  const float mean = std::accumulate(logits.begin(), logits.end(), 0.0f) / n;
  float square = 0;
  for (float& logit : logits) {
    logit -= mean;
    square += logit * logit;
  }
  for (float& logit : logits) logit /= std::sqrt(std::max(square / n, 1e-6f));
  return logits;
}

}  // namespace

RoutingModel::RoutingModel(const RoutingParams& params, uint64_t seed) : params_(params) {
  CHECK(params.layers > 0 && params.top_k > 0 && params.top_k <= params.experts && params.dims > 0);
  std::mt19937_64 random(seed);
  std::vector<float> zipf = zipf_logits(params.experts);
  for (int32_t layer = 0; layer < params.layers; ++layer) {
    std::shuffle(zipf.begin(), zipf.end(), random);
    popularity_.insert(popularity_.end(), zipf.begin(), zipf.end());
  }
  std::normal_distribution<float> weight(0, 1 / std::sqrt(static_cast<float>(params.dims)));
  for (std::vector<float>* maps : {&topic_map_, &token_map_}) {
    maps->resize(popularity_.size() * static_cast<size_t>(params.dims));
    for (float& x : *maps) x = weight(random);
  }
}

RoutingStream::RoutingStream(const RoutingModel& model, uint64_t seed)
    : model_(&model),
      ahead_(static_cast<size_t>(std::min(2 * model.params().top_k, model.params().experts))),
      random_(seed) {
  const RoutingParams& p = model.params();
  const size_t layers = static_cast<size_t>(p.layers);
  topic_.resize(static_cast<size_t>(p.dims));
  token_.resize(static_cast<size_t>(p.dims));
  logits_.resize(static_cast<size_t>(p.experts));
  order_.resize(static_cast<size_t>(p.experts));
  routed_.resize(layers * top_k());
  lookahead_.resize(layers * ahead_);
  for (float& x : token_) x = normal_(random_);
  next_token(true);
}

void RoutingStream::next_token(bool new_topic) {
  const float drift_of_topic = model_->params().topic_drift;
  drift(topic_, new_topic ? 0 : std::sqrt(1 - drift_of_topic * drift_of_topic));
  draw_token();
}

void RoutingStream::next_token_about(const RoutingStream& other) {
  topic_ = other.topic_;
  draw_token();
}

// A step of an autoregressive process of variance 1.
void RoutingStream::drift(std::vector<float>& vector, float kept) {
  for (float& x : vector) x = kept * x + std::sqrt(1 - kept * kept) * normal_(random_);
}

void RoutingStream::draw_token() {
  const RoutingParams& p = model_->params();
  drift(token_, p.token_kept);
  const size_t experts = static_cast<size_t>(p.experts);
  for (int32_t layer = 0; layer < p.layers; ++layer) {
    const float* popularity = model_->popularity_.data() + static_cast<size_t>(layer) * experts;
    for (size_t e = 0; e < experts; ++e)
      logits_[e] = p.popularity * popularity[e] + p.noise * normal_(random_);
    const float* topic_map = model_->map(model_->topic_map_, layer);
    const float* token_map = model_->map(model_->token_map_, layer);
    for (size_t d = 0; d < topic_.size(); ++d) {
      const float topic = p.topic * topic_[d], token = p.token * token_[d];
      for (size_t e = 0; e < experts; ++e)
        logits_[e] += topic * topic_map[d * experts + e] + token * token_map[d * experts + e];
    }
    choose(routed_, layer, top_k());
    for (float& logit : logits_) logit += p.lookahead_noise * normal_(random_);
    choose(lookahead_, layer, ahead_);
  }
}

void RoutingStream::choose(std::vector<int32_t>& into, int32_t layer, size_t n) {
  std::iota(order_.begin(), order_.end(), 0);
  std::partial_sort(order_.begin(), order_.begin() + static_cast<ptrdiff_t>(n), order_.end(),
                    [&](int32_t a, int32_t b) {
                      return logits_[static_cast<size_t>(a)] > logits_[static_cast<size_t>(b)];
                    });
  std::copy_n(order_.begin(), n,
              into.begin() + static_cast<ptrdiff_t>(layer * static_cast<int64_t>(n)));
}

}  // namespace weir::measure
