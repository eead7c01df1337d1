// Experts that a table of tokens says: against the formulas in plain words and double precision,
// and tables that are wrong.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "model/hand_made_model.h"

namespace weir::model {
namespace {

constexpr size_t kExperts = 8, kTopK = 2, kWidth = 24;
const std::string kMlp = "model.layers.0.mlp.";

Moe moe() {
  return {.num_experts = kExperts,
          .top_k = kTopK,
          .expert = {.width = kWidth},
          .router = {.score = Router::kSqrtSoftplus,
                     .token_table = kVocab,
                     .renormalise = true,
                     .scale = 1.5f}};
}

std::vector<int64_t> table() {
  std::vector<int64_t> t;
  for (int64_t token = 0; token < kVocab; ++token) {
    t.push_back(token * 5 % kExperts);
    t.push_back((token * 5 + 1 + token % 3) % kExperts);
  }
  return t;
}

std::string expert(size_t e, const char* part) {
  return concat({kMlp, "experts.", std::to_string(e), ".", part, "_proj.weight"});
}

Weights drawn_experts(const std::vector<int64_t>& tokens) {
  Weights w = drawn(plain(16));
  std::ranges::fill(w.at(in_layer(0, "o_proj")), 0.0f);  // Attention gives nothing.
  w.draw(kMlp + "gate.weight", kExperts, kHidden);
  w.put(kMlp + "gate.tid2eid", kVocab, kTopK, tokens);
  for (size_t e = 0; e < kExperts; ++e) {
    w.draw(expert(e, "gate"), kWidth, kHidden);
    w.draw(expert(e, "up"), kWidth, kHidden);
    w.draw(expert(e, "down"), kHidden, kWidth);
  }
  return w;
}

using Row = std::vector<double>;

Row product(const std::vector<float>& matrix, const Row& x) {
  Row y(matrix.size() / x.size());
  for (size_t i = 0; i < matrix.size(); ++i) y[i / x.size()] += double{matrix[i]} * x[i % x.size()];
  return y;
}

TEST(TokenExperts, AreWhatTheTableSays) {
  const Weights w = drawn_experts(table());
  const std::vector<float> found = logits_of(spec_of({{.op = plain(16)}, {.op = moe()}}), w);
  const std::vector<float>& embedding = w.at("model.embed_tokens.weight");
  std::vector<float> expected;
  for (const int32_t token : prompt_tokens()) {
    const auto* first = &embedding[static_cast<size_t>(token) * kHidden];
    const Row x(first, first + kHidden);
    const Row logits = product(w.at(kMlp + "gate.weight"), x);
    Row y = x;
    std::array<double, kTopK> score{};
    double sum = 0;
    const auto expert_of = [&](size_t rank) {
      return static_cast<size_t>(table()[static_cast<size_t>(token) * kTopK + rank]);
    };
    for (size_t rank = 0; rank < kTopK; ++rank)
      sum += score[rank] = std::sqrt(std::log(1 + std::exp(logits[expert_of(rank)])));
    for (size_t rank = 0; rank < kTopK; ++rank) {
      const size_t e = expert_of(rank);
      Row inner = product(w.at(expert(e, "gate")), x);
      const Row up = product(w.at(expert(e, "up")), x);
      for (size_t i = 0; i < inner.size(); ++i) inner[i] *= up[i] / (1 + std::exp(-inner[i]));
      const Row out = product(w.at(expert(e, "down")), inner);
      for (size_t h = 0; h < out.size(); ++h) y[h] += 1.5 * score[rank] / sum * out[h];
    }
    double squares = 0;
    for (const double v : y) squares += v * v;
    for (size_t h = 0; h < y.size(); ++h)
      y[h] *= double{w.at("model.norm.weight")[h]} / std::sqrt(squares / kHidden + 1e-6);
    for (const double logit : product(embedding, y)) expected.push_back(static_cast<float>(logit));
  }
  EXPECT_LT(largest_difference(found, expected), 2e-5);
}

// What binding says of a table that has `number` as the second expert of token 3.
std::string error_with(int64_t number) {
  std::vector<int64_t> tokens = table();
  tokens[3 * kTopK + 1] = number;
  const std::string config = R"({"architectures":["LlamaForCausalLM"]})";
  const std::string file = drawn_experts(tokens).file();
  const auto card = card::ModelCard::open(
      card::ModelFiles::embedded("m", {{"config.json", std::as_bytes(std::span(config))},
                                       {"model.safetensors", std::as_bytes(std::span(file))}}));
  if (!card) return card.error().message;
  const auto bound = Decoder::bind(*card, spec_of({{.op = plain(16)}, {.op = moe()}}),
                                   {.compute = Compute::kExact, .rows_max = 64, .context_max = 64},
                                   kernels::ops_for(kernels::Isa::kScalar), 1);
  return bound ? "" : bound.error().message;
}

TEST(TokenExperts, OfATableThatIsWrongAreRefused) {
  EXPECT_EQ(error_with(table()[3 * kTopK + 1]), "");
  for (const int64_t number :
       {int64_t{kExperts}, int64_t{-1}, table()[3 * kTopK], std::numeric_limits<int64_t>::max()}) {
    const std::string error = error_with(number);
    EXPECT_NE(error.find("tid2eid"), std::string::npos) << error;
    EXPECT_NE(error.find("found " + std::to_string(number) + " in row 3"), std::string::npos)
        << error;
  }
}

TEST(TokenExperts, AreOfEveryToken) {
  ModelSpec spec = spec_of({{.op = plain(16)}, {.op = moe()}});
  EXPECT_TRUE(check_spec(spec));
  EXPECT_NE(describe(spec).find("sqrt softplus chosen by token"), std::string::npos);
  spec.vocab_size = kVocab + 1;
  const auto checked = check_spec(spec);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("vocab_size"), std::string::npos);
}

}  // namespace
}  // namespace weir::model
