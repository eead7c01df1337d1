// Models described by hand, of attention alone and with drawn weights, for tests that compare what
// a pass computes with something simpler.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/concat.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/decoder.h"
#include "model/families.h"
#include "model/session.h"

namespace weir::model {

inline constexpr int32_t kHidden = 32, kVocab = 48, kTokens = 40;

// Matrices of a checkpoint, drawn once by name, so that two models have the same ones.
class Weights {
 public:
  std::vector<float>& draw(const std::string& name, int32_t n, int32_t k = 0) {
    Matrix& m = matrices_[name];
    m.n = n, m.k = k;
    std::mt19937 random(static_cast<unsigned>(std::hash<std::string>{}(name)));
    std::normal_distribution<float> normal(0, 0.3f);
    m.data.resize(static_cast<size_t>(n) * static_cast<size_t>(std::max(k, 1)));
    for (float& x : m.data) x = normal(random);
    return m.data;
  }
  // A table of integers.
  void put(const std::string& name, int32_t n, int32_t k, std::vector<int64_t> integers) {
    matrices_[name] = {.n = n, .k = k, .integers = std::move(integers)};
  }
  void copy(const std::string& from, const std::string& to) { matrices_[to] = matrices_.at(from); }
  // Another's matrix of that name, under a name of its own.
  void take(const Weights& other, const std::string& name, const std::string& as) {
    matrices_[as] = other.matrices_.at(name);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, matrix] : matrices_) all.push_back(name);
    return all;
  }
  void erase(const std::string& name) { matrices_.erase(name); }
  std::vector<float>& at(const std::string& name) { return matrices_.at(name).data; }
  const std::vector<float>& at(const std::string& name) const { return matrices_.at(name).data; }
  const std::vector<float>* find(const std::string& name) const {
    const auto found = matrices_.find(name);
    return found == matrices_.end() ? nullptr : &found->second.data;
  }

  std::string file() const {
    std::string header = "{", data;
    for (const auto& [name, m] : matrices_) {
      const std::string begin = std::to_string(data.size());
      const bool integers = !m.integers.empty();
      if (integers)
        data.append(reinterpret_cast<const char*>(m.integers.data()), m.integers.size() * 8);
      else
        data.append(reinterpret_cast<const char*>(m.data.data()), m.data.size() * 4);
      const std::string shape =
          std::to_string(m.n) + (m.k > 0 ? "," + std::to_string(m.k) : std::string());
      header += concat({header.size() > 1 ? ",\"" : "\"", name, R"(":{"dtype":")",
                        integers ? "I64" : "F32", R"(","shape":[)", shape, R"(],"data_offsets":[)",
                        begin, ",", std::to_string(data.size()), "]}"});
    }
    header += "}";
    while (header.size() % 8 != 0) header += " ";
    const uint64_t length = header.size();
    std::string out(sizeof length, '\0');
    std::memcpy(out.data(), &length, sizeof length);
    return out + header + data;
  }

 private:
  struct Matrix {
    int32_t n = 0, k = 0;
    std::vector<float> data{};
    std::vector<int64_t> integers{};  // In place of those.
  };
  std::map<std::string, Matrix> matrices_;
};

inline Attention plain(int32_t head_dim) {
  return {.num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = head_dim,
          .scale = 0.25f,
          .rope = {.dim = head_dim}};
}

inline std::string in_layer(int layer, const char* part) {
  return concat({"model.layers.", std::to_string(layer), ".self_attn.", part, ".weight"});
}

// A layer's projections; those of one name and shape are the same in all models.
inline void draw_attention(Weights& w, int layer, const Attention& a) {
  w.draw(in_layer(layer, "q_proj"), a.num_heads * a.q_rows(), kHidden);
  w.draw(in_layer(layer, "k_proj"), a.num_kv_heads * a.head_dim, kHidden);
  w.draw(in_layer(layer, "v_proj"), a.num_kv_heads * a.v_dim(), kHidden);
  w.draw(in_layer(layer, "o_proj"), kHidden, a.num_heads * a.v_dim());
}

inline Weights drawn(const Attention& a) {
  Weights w;
  w.draw("model.embed_tokens.weight", kVocab, kHidden);
  w.draw("model.norm.weight", kHidden);
  draw_attention(w, 0, a);
  return w;
}

inline ModelSpec spec_of(std::vector<Sublayer> sublayers) {
  ModelSpec spec;
  spec.family = "test";
  spec.vocab_size = kVocab;
  spec.hidden_size = kHidden;
  spec.context_max = 64;
  spec.tied_head = true;
  spec.final_norm.module = "norm";
  spec.sublayers = std::move(sublayers);
  return spec;
}

// The tokens of the tests' one prompt.
inline std::vector<int32_t> prompt_tokens() {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < kTokens; ++i) tokens.push_back(i * 7 % kVocab);
  return tokens;
}

// The decoder of a spec with these weights, and their file, from which it uses them in place. Null,
// and a failure, where it cannot be had.
struct HandMade {
  HandMade(const ModelSpec& spec, const Weights& weights, const kernels::Ops& ops,
           const ThreadTeam& team)
      : file(weights.file()) {
    const Result<void> checked = check_spec(spec);
    EXPECT_TRUE(checked) << checked.error().message;
    const auto card = card::ModelCard::open(
        card::ModelFiles::embedded("m", {{"config.json", std::as_bytes(std::span(config))},
                                         {"model.safetensors", std::as_bytes(std::span(file))}}));
    EXPECT_TRUE(card) << card.error().message;
    auto bound =
        Decoder::bind(*card, spec, {.compute = Compute::kExact, .rows_max = 64, .context_max = 64},
                      ops, team.members());
    EXPECT_TRUE(bound) << bound.error().message;
    if (bound) decoder = std::move(*bound);
  }

  const std::string config = R"({"architectures":["LlamaForCausalLM"]})";
  const std::string file;
  std::unique_ptr<Decoder> decoder;
};

// The logits of all rows of the prompt, or of the vectors [kTokens, kHidden] in place of it.
inline std::vector<float> logits_of(
    const ModelSpec& spec, const Weights& weights, std::span<const float> vectors = {},
    Mask mask = {}, const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa())) {
  ThreadTeam team(2);
  const HandMade model(spec, weights, ops, team);
  if (!model.decoder) return {};
  auto session = Session::create(*model.decoder, team, {.kv_format = kernels::FloatType::kF32});
  EXPECT_TRUE(session) << session.error().message;
  const std::vector<int32_t> tokens = prompt_tokens();
  session->begin(0, kTokens);
  std::vector<float> out(size_t{kTokens} * kVocab);
  const Session::Slice slice = {
      .tokens = tokens, .all_logits = true, .vectors = vectors, .mask = mask};
  session->forward({&slice, 1}, [&](size_t, size_t token, std::span<float> logits) {
    std::ranges::copy(logits, out.begin() + static_cast<long>(token * kVocab));
  });
  return out;
}

inline double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    most = std::max(most, std::abs(double{a[i]} - b[i]));
  return most;
}

}  // namespace weir::model
