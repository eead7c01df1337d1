// Residual streams with hyper-connections, on models described by hand: against a model of one
// stream where they must be the same, and against the formulas in plain words and double precision.
#include "model/layers/hyper_connections.h"

#include <gtest/gtest.h>

#include "model/hand_made_model.h"

namespace weir::model {
namespace {

constexpr size_t kStreams = 4, kWidth = 24, kWide = kHidden, kAll = kStreams * kWide;
constexpr int kRounds = 20;
constexpr double kEps = 1e-6;
const std::string kLayer = "model.layers.0.";

using Row = std::vector<double>;

ModelSpec connected(std::vector<Sublayer> sublayers) {
  ModelSpec spec = spec_of(std::move(sublayers));
  spec.hyper = HyperConnections{.streams = kStreams, .sinkhorn_rounds = kRounds};
  return spec;
}

void draw_module(Weights& w, const std::string& prefix, int32_t outputs, int32_t scales) {
  w.draw(prefix + "fn", outputs, kStreams * kHidden);
  w.draw(prefix + "base", outputs);
  w.draw(prefix + "scale", scales);
}

void draw_modules(Weights& w) {
  for (const char* module : {"attn_hc.", "ffn_hc."}) draw_module(w, kLayer + module, 24, 3);
  draw_module(w, "model.hc_head.hc_", kStreams, 1);
}

// Attention, so that there is something to remember, and a feed-forward network.
std::vector<Sublayer> two_sublayers() {
  return {{.op = plain(16), .hyper = "attn_hc"}, {.op = Dense{.width = kWidth}, .hyper = "ffn_hc"}};
}

Weights drawn_both() {
  Weights w = drawn(plain(16));
  for (const char* part : {"gate_proj", "up_proj"})
    w.draw(kLayer + "mlp." + part + ".weight", kWidth, kHidden);
  w.draw(kLayer + "mlp.down_proj.weight", kHidden, kWidth);
  return w;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Row product(const std::vector<float>& matrix, const Row& x) {
  Row y(matrix.size() / x.size());
  for (size_t i = 0; i < matrix.size(); ++i) y[i / x.size()] += double{matrix[i]} * x[i % x.size()];
  return y;
}

Row normed(Row x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  for (double& v : x) v /= std::sqrt(sum / static_cast<double>(x.size()) + 1e-6);
  return x;
}

// What a module gives, scaled and with what is added; the last scale is of all that is left.
Row outputs_of(const Weights& w, const std::string& prefix, const Row& streams) {
  Row m = product(w.at(prefix + "fn"), normed(streams));
  const auto& scale = w.at(prefix + "scale");
  for (size_t i = 0; i < m.size(); ++i)
    m[i] = m[i] * double{scale[std::min(i / kStreams, scale.size() - 1)]} +
           double{w.at(prefix + "base")[i]};
  return m;
}

Row mixture(const Row& m, const Row& streams) {
  Row x(kWide);
  for (size_t i = 0; i < kAll; ++i) x[i % kWide] += (sigmoid(m[i / kWide]) + kEps) * streams[i];
  return x;
}

void divide(Row& c, size_t first, size_t step, double eps) {
  double sum = eps;
  for (size_t i = 0; i < kStreams; ++i) sum += c[first + i * step];
  for (size_t i = 0; i < kStreams; ++i) c[first + i * step] /= sum;
}

template <class F>
void connect(const Weights& w, const std::string& module, Row& streams, F&& f) {
  const Row m = outputs_of(w, kLayer + module, streams);
  Row c(m.begin() + 2 * kStreams, m.end());
  for (double& x : c) x = std::exp(x);
  for (size_t i = 0; i < kStreams; ++i) divide(c, i * kStreams, 1, 0);
  for (double& x : c) x += kEps;
  for (size_t j = 0; j < kStreams; ++j) divide(c, j, kStreams, kEps);
  for (int round = 1; round < kRounds; ++round) {
    for (size_t i = 0; i < kStreams; ++i) divide(c, i * kStreams, 1, kEps);
    for (size_t j = 0; j < kStreams; ++j) divide(c, j, kStreams, kEps);
  }
  const Row given = f(mixture(m, streams));
  Row after(kAll);
  for (size_t j = 0; j < kStreams; ++j)
    for (size_t h = 0; h < kWide; ++h) {
      double& x = after[j * kWide + h];
      x = 2 * sigmoid(m[kStreams + j]) * given[h];
      for (size_t i = 0; i < kStreams; ++i) x += c[i * kStreams + j] * streams[i * kWide + h];
    }
  streams = after;
}

// Streams that begin alike, are read in equal parts and get the same are one, however they mix.
TEST(HyperConnections, StreamsThatAreAlikeAreOne) {
  Weights w = drawn_both();
  const ModelSpec one = spec_of({{.op = plain(16)}, {.op = Dense{.width = kWidth}}});
  const std::vector<float> expected = logits_of(one, w);
  draw_modules(w);
  for (const std::string& prefix :
       {kLayer + "attn_hc.", kLayer + "ffn_hc.", std::string("model.hc_head.hc_")}) {
    std::vector<float>& base = w.at(prefix + "base");
    std::ranges::fill(w.at(prefix + "scale"), 0.0f);
    std::fill_n(base.begin(), kStreams, std::log(1.0f / 3));  // Its sigmoid: one fourth.
    if (base.size() > kStreams) std::fill_n(base.begin() + kStreams, kStreams, 0.0f);
  }
  EXPECT_LT(largest_difference(logits_of(connected(two_sublayers()), w), expected), 1e-3);
  w.at(kLayer + "ffn_hc.base")[kStreams] = 1;  // One of them gets more.
  EXPECT_GT(largest_difference(logits_of(connected(two_sublayers()), w), expected), 1e-2);
}

TEST(HyperConnections, AreWhatTheirFormulasSay) {
  Weights w = drawn_both();
  draw_modules(w);
  std::ranges::fill(w.at(in_layer(0, "o_proj")),
                    0.0f);  // Streams mix, and attention gives nothing.
  const std::vector<float> found = logits_of(connected(two_sublayers()), w);
  const std::string mlp = kLayer + "mlp.";
  const std::vector<float>& embedding = w.at("model.embed_tokens.weight");
  std::vector<float> expected;
  for (const int32_t token : prompt_tokens()) {
    Row streams(kAll);
    for (size_t i = 0; i < kAll; ++i)
      streams[i] = double{embedding[static_cast<size_t>(token) * kWide + i % kWide]};
    connect(w, "attn_hc.", streams, [](const Row&) { return Row(kWide); });
    connect(w, "ffn_hc.", streams, [&](const Row& x) {
      Row inner = product(w.at(mlp + "gate_proj.weight"), x);
      const Row up = product(w.at(mlp + "up_proj.weight"), x);
      for (size_t i = 0; i < inner.size(); ++i) inner[i] *= sigmoid(inner[i]) * up[i];
      return product(w.at(mlp + "down_proj.weight"), inner);
    });
    Row last = normed(mixture(outputs_of(w, "model.hc_head.hc_", streams), streams));
    for (size_t h = 0; h < kWide; ++h) last[h] *= double{w.at("model.norm.weight")[h]};
    for (const double logit : product(embedding, last))
      expected.push_back(static_cast<float>(logit));
  }
  EXPECT_LT(largest_difference(found, expected), 2e-5);
}

TEST(HyperConnections, RowsAndColumnsOfAMixtureSumToOne) {
  std::vector<float> c = {3, -1, 0, 2, 0.5f, -4, 1, 0, 2};
  sinkhorn(3, kRounds, 1e-6f, c);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(c[3 * i] + c[3 * i + 1] + c[3 * i + 2], 1, 1e-3);
    EXPECT_NEAR(c[i] + c[3 + i] + c[6 + i], 1, 1e-5);
  }
  std::vector<float> once = {0, 0, 0, 0};
  sinkhorn(2, 1, 0, once);
  EXPECT_EQ(once, (std::vector<float>{0.5f, 0.5f, 0.5f, 0.5f}));
}

std::string error_of(const ModelSpec& spec) {
  const Result<void> checked = check_spec(spec);
  return checked ? "" : checked.error().message;
}

TEST(HyperConnections, AreOfAllSublayersAndAlone) {
  const ModelSpec good = connected(two_sublayers());
  EXPECT_EQ(error_of(good), "");
  EXPECT_NE(describe(good).find("4 streams with hyper-connections, 20 Sinkhorn rounds"),
            std::string::npos);
  ModelSpec spec = good;
  spec.sublayers[1].hyper.clear();
  EXPECT_NE(error_of(spec).find("of all sublayers or of none"), std::string::npos);
  spec = good;
  spec.hyper.reset();
  EXPECT_NE(error_of(spec).find("of all sublayers or of none"), std::string::npos);
  spec = good;
  spec.sublayers[1].scale = 0.5f;
  EXPECT_NE(error_of(spec).find("hyper-connections alone"), std::string::npos);
  spec = good;
  spec.hyper->streams = kHyperStreamsMax + 1;
  EXPECT_NE(error_of(spec).find("hc_mult"), std::string::npos);
  spec = good;
  spec.hyper->sinkhorn_rounds = 0;
  EXPECT_NE(error_of(spec).find("hc_sinkhorn_iters"), std::string::npos);
}

}  // namespace
}  // namespace weir::model
