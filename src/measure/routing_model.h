// RoutingModel draws routing that behaves like that of a real mixture of experts, without a model:
// for replays of cache and prefetch policies, and for tests of streaming with models whose own
// routing is too small or too even. Figures made with it say "modelled routing".
//
// An expert's logit is a sum of four independent parts, each drawn once and weighted:
//   popularity  Zipf's law over the experts of a layer, the same for every request
//   topic       what the request is about: a vector that drifts, seen through each layer's own map
//   token       what is said now: a vector with some memory, shared by all layers of a token, so
//               that layers are correlated and neighbouring tokens overlap
//   noise       what nothing else explains
// and the top_k largest are chosen. The weights are fitted to published traces (RoutingParams).
//
// Threads: a model is immutable and shared; a stream belongs to one thread. The same seeds give the
// same routing on the same machine and standard library.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace weir::measure {

struct RoutingParams {
  int32_t layers = 48;
  int32_t experts = 128;
  int32_t top_k = 8;
  // Weights of the parts. Only their ratios matter.
  float popularity = 0.44f;  // Union growth of independent requests.
  float topic = 0.57f;  // With `token`, overlap with the previous token; what a cache can keep.
  float token = 0.57f;  // What only the layers before tell.
  float noise = 0.40f;
  float token_kept = 0.27f;       // Correlation of the token vector with the previous token's.
  float topic_drift = 0.11f;      // Share of the topic vector that is new with each token.
  float lookahead_noise = 0.14f;  // Of the next layer's router on this layer's state.
  int32_t dims = 11;              // Of the topic and token vectors.
};

class RoutingModel {
 public:
  RoutingModel(const RoutingParams& params, uint64_t seed);
  const RoutingParams& params() const { return params_; }

 private:
  friend class RoutingStream;
  const float* map(const std::vector<float>& maps, int32_t layer) const {
    return maps.data() + static_cast<size_t>(layer) * static_cast<size_t>(params_.experts) *
                             static_cast<size_t>(params_.dims);
  }

  RoutingParams params_;
  std::vector<float> popularity_;  // [layers, experts]
  std::vector<float> topic_map_;   // [layers, dims, experts]
  std::vector<float> token_map_;   // [layers, dims, experts]
};

// The routing of one request's tokens, one after another.
class RoutingStream {
 public:
  RoutingStream(const RoutingModel& model, uint64_t seed);

  // Draws the next token. A new topic, if asked for, replaces the old one at once.
  void next_token(bool new_topic = false);
  // Draws it about what `other` is about: requests that share a topic and are independent beside
  // it, which is how the union growth of published traces was computed.
  void next_token_about(const RoutingStream& other);
  // The experts of a layer for the current token, best first. [top_k]
  std::span<const int32_t> routed(int32_t layer) const { return slice(routed_, layer, top_k()); }
  // What the layer's router would say one layer early, best first. [2 * top_k]
  std::span<const int32_t> lookahead(int32_t layer) const {
    return slice(lookahead_, layer, ahead_);
  }

 private:
  size_t top_k() const { return static_cast<size_t>(model_->params().top_k); }
  static std::span<const int32_t> slice(const std::vector<int32_t>& all, int32_t layer, size_t n) {
    return std::span(all).subspan(static_cast<size_t>(layer) * n, n);
  }
  void drift(std::vector<float>& vector, float kept);
  void draw_token();
  void choose(std::vector<int32_t>& into, int32_t layer, size_t n);

  const RoutingModel* model_;
  const size_t ahead_;
  std::mt19937_64 random_;
  std::normal_distribution<float> normal_;
  std::vector<float> topic_, token_;  // [dims]
  std::vector<float> logits_;         // [experts]
  std::vector<int32_t> order_;        // [experts]
  std::vector<int32_t> routed_;       // [layers, top_k]
  std::vector<int32_t> lookahead_;    // [layers, 2 * top_k]
};

}  // namespace weir::measure
