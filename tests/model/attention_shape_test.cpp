// What families may ask of attention beyond plain heads, on models described by hand: each beside
// another model that computes the same in a simpler way.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "base/concat.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/decoder.h"
#include "model/families.h"
#include "model/session.h"

namespace weir::model {
namespace {

constexpr int32_t kHidden = 32, kVocab = 48, kTokens = 40;

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
  void copy(const std::string& from, const std::string& to) { matrices_[to] = matrices_.at(from); }
  void erase(const std::string& name) { matrices_.erase(name); }
  std::vector<float>& at(const std::string& name) { return matrices_.at(name).data; }

  std::string file() const {
    std::string header = "{", data;
    for (const auto& [name, m] : matrices_) {
      const std::string begin = std::to_string(data.size());
      data.append(reinterpret_cast<const char*>(m.data.data()), m.data.size() * 4);
      const std::string shape =
          std::to_string(m.n) + (m.k > 0 ? "," + std::to_string(m.k) : std::string());
      header +=
          concat({header.size() > 1 ? ",\"" : "\"", name, R"(":{"dtype":"F32","shape":[)", shape,
                  R"(],"data_offsets":[)", begin, ",", std::to_string(data.size()), "]}"});
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
    std::vector<float> data;
  };
  std::map<std::string, Matrix> matrices_;
};

Attention plain(int32_t head_dim) {
  return {.num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = head_dim,
          .scale = 0.25f,
          .rope = {.dim = head_dim}};
}

std::string in_layer(int layer, const char* part) {
  return concat({"model.layers.", std::to_string(layer), ".self_attn.", part, ".weight"});
}

// A layer's projections; those of one name and shape are the same in all models.
void draw_attention(Weights& w, int layer, const Attention& a) {
  w.draw(in_layer(layer, "q_proj"), a.num_heads * a.q_rows(), kHidden);
  w.draw(in_layer(layer, "k_proj"), a.num_kv_heads * a.head_dim, kHidden);
  w.draw(in_layer(layer, "v_proj"), a.num_kv_heads * a.v_dim(), kHidden);
  w.draw(in_layer(layer, "o_proj"), kHidden, a.num_heads * a.v_dim());
}

Weights drawn(const Attention& a) {
  Weights w;
  w.draw("model.embed_tokens.weight", kVocab, kHidden);
  w.draw("model.norm.weight", kHidden);
  draw_attention(w, 0, a);
  return w;
}

ModelSpec spec_of(std::vector<Sublayer> sublayers) {
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

// The logits of all rows of one prompt.
std::vector<float> logits_of(const ModelSpec& spec, const Weights& weights) {
  const Result<void> checked = check_spec(spec);
  EXPECT_TRUE(checked) << checked.error().message;
  const std::string config = R"({"architectures":["LlamaForCausalLM"]})", file = weights.file();
  const auto card = card::ModelCard::open(
      card::ModelFiles::embedded("m", {{"config.json", std::as_bytes(std::span(config))},
                                       {"model.safetensors", std::as_bytes(std::span(file))}}));
  EXPECT_TRUE(card) << card.error().message;
  ThreadTeam team(2, false);
  auto model =
      Decoder::bind(*card, spec, {.compute = Compute::kExact, .rows_max = 64, .context_max = 64},
                    kernels::ops_for(kernels::detect_isa()), team.members());
  EXPECT_TRUE(model) << model.error().message;
  if (!model) return {};
  auto session = Session::create(**model, team, {.kv_type = kernels::FloatType::kF32});
  EXPECT_TRUE(session) << session.error().message;
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < kTokens; ++i) tokens.push_back(i * 7 % kVocab);
  session->begin(0, kTokens);
  std::vector<float> out(size_t{kTokens} * kVocab);
  const Session::Slice slice = {.tokens = tokens, .all_logits = true};
  session->forward({&slice, 1}, [&](size_t, size_t token, std::span<float> logits) {
    std::ranges::copy(logits, out.begin() + static_cast<long>(token * kVocab));
  });
  return out;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    most = std::max(most, std::abs(double{a[i]} - b[i]));
  return most;
}

// A gate that does not depend on the row scales columns of o_proj.
TEST(AttentionShape, AGateMultipliesWhatAHeadHasAttended) {
  Attention gated = plain(16), simple = plain(16);
  gated.out_gate = gated.qkv_bias = true;
  Weights a = drawn(gated), b = drawn(simple);
  const std::vector<float> gates = a.draw("gates", 4 * 16);
  a.erase("gates");
  std::vector<float>& bias = a.draw("model.layers.0.self_attn.q_proj.bias", 4 * 32);
  for (const char* part :
       {"model.layers.0.self_attn.k_proj.bias", "model.layers.0.self_attn.v_proj.bias"})
    std::ranges::fill(a.draw(part, 2 * 16), 0.0f);
  std::vector<float>&q = a.at(in_layer(0, "q_proj")), &o = b.at(in_layer(0, "o_proj"));
  const std::vector<float>& simple_q = b.at(in_layer(0, "q_proj"));
  for (size_t h = 0; h < 4; ++h)
    for (size_t d = 0; d < 16; ++d) {
      bias[h * 32 + d] = 0;
      bias[h * 32 + 16 + d] = 4 * gates[h * 16 + d];
      for (size_t i = 0; i < kHidden; ++i) {
        q[(h * 32 + d) * kHidden + i] = simple_q[(h * 16 + d) * kHidden + i];
        q[(h * 32 + 16 + d) * kHidden + i] = 0;
        o[i * 64 + h * 16 + d] /= 1 + std::exp(-4 * gates[h * 16 + d]);
      }
    }
  EXPECT_LT(largest_difference(logits_of(spec_of({{.op = gated}}), a),
                               logits_of(spec_of({{.op = simple}}), b)),
            1e-4);
}

// Values of 8 numbers are values of 16 of which o_proj ignores eight.
TEST(AttentionShape, ValuesMayBeNarrowerThanKeys) {
  Attention narrow = plain(16), wide = plain(16);
  narrow.v_head_dim = 8;
  Weights a = drawn(narrow), b = drawn(wide);
  const std::vector<float>&v = a.at(in_layer(0, "v_proj")), &o = a.at(in_layer(0, "o_proj"));
  std::vector<float>&wide_v = b.at(in_layer(0, "v_proj")), &wide_o = b.at(in_layer(0, "o_proj"));
  std::ranges::fill(wide_o, 0.0f);
  for (size_t d = 0; d < 8; ++d)
    for (size_t i = 0; i < kHidden; ++i) {
      for (size_t h = 0; h < 2; ++h)
        wide_v[(h * 16 + d) * kHidden + i] = v[(h * 8 + d) * kHidden + i];
      for (size_t h = 0; h < 4; ++h) wide_o[i * 64 + h * 16 + d] = o[i * 32 + h * 8 + d];
    }
  EXPECT_LT(largest_difference(logits_of(spec_of({{.op = narrow}}), a),
                               logits_of(spec_of({{.op = wide}}), b)),
            1e-4);
}

// With weights that are the same for both numbers of a pair, a norm and a rotation commute.
TEST(AttentionShape, ANormMayFollowTheRope) {
  Attention before = plain(16);
  before.qk_norm = Attention::kPerHead;
  Attention after = before;
  after.qk_norm_after_rope = true;
  Weights w = drawn(before);
  for (const char* part : {"q_norm", "k_norm"}) {
    std::vector<float>& norm = w.draw(in_layer(0, part), 16);
    std::copy_n(norm.begin(), 8, norm.begin() + 8);
  }
  const auto difference = [&] {
    return largest_difference(logits_of(spec_of({{.op = before}}), w),
                              logits_of(spec_of({{.op = after}}), w));
  };
  EXPECT_LT(difference(), 1e-4);
  w.draw(in_layer(0, "q_norm"), 16);
  w.draw(in_layer(0, "k_norm"), 16);
  EXPECT_GT(difference(), 1e-3);
}

// Two sublayers beside each other, of which the second has the first one's keys and values.
TEST(AttentionShape, ASublayerMayReadTheKeysOfOneBeforeIt) {
  const Attention op = plain(16);
  Weights w = drawn(op);
  draw_attention(w, 1, op);
  for (const char* part : {"k_proj", "v_proj"}) w.copy(in_layer(0, part), in_layer(1, part));
  Sublayer second = {.op = op, .input = Sublayer::kSameAsBefore, .stored_layer = 1};
  const std::vector<float> own = logits_of(spec_of({{.op = op}, second}), w);
  for (const char* part : {"k_proj", "v_proj"}) w.erase(in_layer(1, part));
  second.memory_of = 0;
  const ModelSpec shared = spec_of({{.op = op}, second});
  EXPECT_EQ(logits_of(shared, w), own);
  EXPECT_NE(describe(shared).find("keys of 1 sublayers before"), std::string::npos);
}

TEST(AttentionShape, OfKeysThatDoNotFitIsAnError) {
  Attention other = plain(16);
  other.num_kv_heads = 4;
  const auto error_of = [](std::vector<Sublayer> sublayers) {
    const auto checked = check_spec(spec_of(std::move(sublayers)));
    return checked ? "" : checked.error().message;
  };
  EXPECT_NE(error_of({{.op = other}, {.op = plain(16), .memory_of = 0}})
                .find("expected a sublayer before it with keys and values like its own"),
            std::string::npos);
  EXPECT_NE(error_of({{.op = plain(16), .memory_of = 0}}).find("found sublayer 0"),
            std::string::npos);
  EXPECT_NE(error_of({{.op = plain(16), .input = Sublayer::kSameAsBefore}})
                .find("expected a sublayer before it whose input it reads"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::model
