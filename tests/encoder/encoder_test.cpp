// A Pixtral tower with drawn weights of odd sizes, against the same arithmetic written plainly, and
// against itself: pictures together and alone, in units of any size, by teams of any size.
#include "encoder/encoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "encoder/families.h"
#include "encoder/hand_made_tower.h"

namespace weir::encoder {
namespace {

constexpr int kPatch = 3, kWidth = 24, kHeads = 2, kWide = 37, kLayers = 2, kText = 32;
constexpr int kDim = kWidth / kHeads, kNumbers = 3 * kPatch * kPatch;
constexpr int64_t kPixelsMax = 60 * 60;

constexpr char kConfig[] =
    R"({"architectures":["LlavaForConditionalGeneration"],"model_type":"llava",)"
    R"("image_token_index":7,"vision_feature_layer":-1,"vision_feature_select_strategy":"full",)"
    R"("text_config":{"model_type":"mistral","hidden_size":32,"intermediate_size":48,)"
    R"("num_hidden_layers":1,"num_attention_heads":2,"num_key_value_heads":2,"vocab_size":48},)"
    R"("vision_config":{"model_type":"pixtral","hidden_size":24,"intermediate_size":37,)"
    R"("num_attention_heads":2,"num_hidden_layers":2,"patch_size":3,"hidden_act":"silu")";

std::string config_with(const std::string& more = "") { return kConfig + more + "}}"; }

std::string name_of(int layer, const char* part) {
  return "vision_tower.transformer.layers." + std::to_string(layer) + "." + part + ".weight";
}

model::Weights drawn() {
  model::Weights w;
  w.draw("vision_tower.patch_conv.weight", kWidth, kNumbers);
  w.draw("vision_tower.ln_pre.weight", kWidth);
  for (int layer = 0; layer < kLayers; ++layer) {
    for (const char* part : {"attention_norm", "ffn_norm"}) w.draw(name_of(layer, part), kWidth);
    for (const char* part : {"q_proj", "k_proj", "v_proj", "o_proj"})
      w.draw(name_of(layer, (std::string("attention.") + part).c_str()), kWidth, kWidth);
    for (const char* part : {"gate_proj", "up_proj"})
      w.draw(name_of(layer, (std::string("feed_forward.") + part).c_str()), kWide, kWidth);
    w.draw(name_of(layer, "feed_forward.down_proj"), kWidth, kWide);
  }
  w.draw("multi_modal_projector.linear_1.weight", kText, kWidth);
  w.draw("multi_modal_projector.linear_1.bias", kText);
  w.draw("multi_modal_projector.linear_2.weight", kText, kText);
  w.draw("multi_modal_projector.linear_2.bias", kText);
  return w;
}

media::PixelValues picture(media::Size size, unsigned seed) {
  media::PixelValues values = {.views = {size}};
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-1, 1);
  values.numbers.resize(static_cast<size_t>(size.pixels() * 3));
  for (float& x : values.numbers) x = number(random);
  return values;
}

using Rows = std::vector<std::vector<double>>;

std::vector<double> times(const std::vector<float>& weight, const std::vector<double>& x) {
  std::vector<double> y(weight.size() / x.size());
  for (size_t n = 0; n < y.size(); ++n)
    for (size_t k = 0; k < x.size(); ++k) y[n] += double{weight[n * x.size() + k]} * x[k];
  return y;
}

std::vector<double> normed(const std::vector<float>& weight, const std::vector<double>& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  std::vector<double> y(x);
  for (size_t i = 0; i < x.size(); ++i)
    y[i] *= double{weight[i]} / std::sqrt(squares / static_cast<double>(x.size()) + 1e-5);
  return y;
}

void add(std::vector<double>& x, const std::vector<double>& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

// Turns the heads of a row.
void turn_row(std::vector<double>& x, int row, int column) {
  for (int h = 0; h < kHeads; ++h)
    for (int i = 0; i < kDim / 2; ++i) {
      const bool across = i >= kDim / 4;
      const double exponent = across ? 4.0 * (i - kDim / 4) + 2 : 4.0 * i;
      const double angle = (across ? column : row) * std::pow(10000.0, -exponent / kDim);
      double& a = x[static_cast<size_t>(h * kDim + i)];
      double& b = x[static_cast<size_t>(h * kDim + i + kDim / 2)];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = b * std::cos(angle) + a * std::sin(angle);
      a = turned;
    }
}

void attend(const model::Weights& w, int layer, int across, Rows& rows) {
  Rows q, k, v;
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto x = normed(w.at(name_of(layer, "attention_norm")), rows[r]);
    q.push_back(times(w.at(name_of(layer, "attention.q_proj")), x));
    k.push_back(times(w.at(name_of(layer, "attention.k_proj")), x));
    v.push_back(times(w.at(name_of(layer, "attention.v_proj")), x));
    const int i = static_cast<int>(r);
    for (auto* turned : {&q.back(), &k.back()}) turn_row(*turned, i / across, i % across);
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    std::vector<double> out(kWidth);
    for (size_t h = 0; h < kHeads; ++h) {
      std::vector<double> weights;
      double sum = 0;
      for (size_t j = 0; j < rows.size(); ++j) {
        double score = 0;
        for (size_t d = h * kDim; d < (h + 1) * kDim; ++d) score += q[r][d] * k[j][d];
        weights.push_back(std::exp(score / std::sqrt(double{kDim})));
        sum += weights.back();
      }
      for (size_t j = 0; j < rows.size(); ++j)
        for (size_t d = h * kDim; d < (h + 1) * kDim; ++d) out[d] += weights[j] / sum * v[j][d];
    }
    add(rows[r], times(w.at(name_of(layer, "attention.o_proj")), out));
  }
}

void feed_forward(const model::Weights& w, int layer, std::vector<double>& row) {
  const auto x = normed(w.at(name_of(layer, "ffn_norm")), row);
  auto gate = times(w.at(name_of(layer, "feed_forward.gate_proj")), x);
  const auto up = times(w.at(name_of(layer, "feed_forward.up_proj")), x);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
  add(row, times(w.at(name_of(layer, "feed_forward.down_proj")), gate));
}

std::vector<float> plainly(const model::Weights& w, const media::PixelValues& values) {
  const auto size = values.views[0];
  const int64_t across = size.width / kPatch, down = size.height / kPatch;
  Rows rows;
  for (int64_t i = 0; i < across * down; ++i) {
    std::vector<double> patch;
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t y = 0; y < kPatch; ++y)
        for (int64_t x = 0; x < kPatch; ++x) {
          const int64_t line = i / across * kPatch + y, column = i % across * kPatch + x;
          patch.push_back(double{
              values.numbers[static_cast<size_t>((c * size.height + line) * size.width + column)]});
        }
    rows.push_back(normed(w.at("vision_tower.ln_pre.weight"),
                          times(w.at("vision_tower.patch_conv.weight"), patch)));
  }
  for (int layer = 0; layer < kLayers; ++layer) {
    attend(w, layer, static_cast<int>(across), rows);
    for (auto& row : rows) feed_forward(w, layer, row);
  }
  std::vector<float> out;
  for (auto& row : rows) {
    auto inner = times(w.at("multi_modal_projector.linear_1.weight"), row);
    for (size_t i = 0; i < inner.size(); ++i) {
      inner[i] += double{w.at("multi_modal_projector.linear_1.bias")[i]};
      inner[i] *= 0.5 * (1 + std::erf(inner[i] / std::sqrt(2.0)));
    }
    const auto given = times(w.at("multi_modal_projector.linear_2.weight"), inner);
    for (size_t i = 0; i < given.size(); ++i)
      out.push_back(
          static_cast<float>(given[i] + double{w.at("multi_modal_projector.linear_2.bias")[i]}));
  }
  return out;
}

struct PixtralTower : HandMadeTower {
  PixtralTower(const model::Weights& weights, kernels::Isa isa, int threads,
               model::Compute compute = model::Compute::kExact,
               const std::string& settings = config_with())
      : HandMadeTower(weights, settings, isa, threads, compute, kPixelsMax) {}
};

const std::vector<media::PixelValues>& pictures() {
  static const std::vector<media::PixelValues> kAll = {picture({15, 21}, 1), picture({3, 3}, 2),
                                                       picture({48, 33}, 3), picture({60, 60}, 4),
                                                       picture({3, 60}, 5)};
  return kAll;
}

TEST(Encoder, ComputesWhatItsEquationsSay) {
  const model::Weights weights = drawn();
  for (int level = 0; level <= static_cast<int>(kernels::detect_isa()); ++level) {
    PixtralTower tower(weights, static_cast<kernels::Isa>(level), 2);
    ASSERT_NE(tower.encoder, nullptr) << tower.error;
    const auto found = tower.features(pictures());
    for (size_t i = 0; i < pictures().size(); ++i)
      EXPECT_LT(model::largest_difference(found[i], plainly(weights, pictures()[i])), 2e-4)
          << "picture " << i << ", level " << level;
  }
}

TEST(Encoder, FastModeIsNear) {
  const model::Weights weights = drawn();
  PixtralTower tower(weights, kernels::detect_isa(), 2, model::Compute::kFast);
  ASSERT_NE(tower.encoder, nullptr) << tower.error;
  const auto found = tower.features(pictures());
  for (size_t i = 0; i < pictures().size(); ++i) {
    const auto expected = plainly(weights, pictures()[i]);
    double squares = 0, differences = 0;
    for (size_t j = 0; j < expected.size(); ++j) {
      squares += double{expected[j]} * double{expected[j]};
      differences += std::pow(double{expected[j]} - double{found[i][j]}, 2);
    }
    EXPECT_LT(std::sqrt(differences / squares), 0.02) << "picture " << i;
  }
}

TEST(Encoder, GivesAPictureTheSameBitsWhateverIsWithIt) {
  const model::Weights weights = drawn();
  for (const auto compute : {model::Compute::kExact, model::Compute::kFast}) {
    PixtralTower one(weights, kernels::detect_isa(), 1, compute);
    PixtralTower three(weights, kernels::detect_isa(), 3, compute);
    ASSERT_NE(one.encoder, nullptr) << one.error;
    const auto together = three.features(pictures(), Encoder::kAllWork);
    for (size_t i = 0; i < pictures().size(); ++i)
      EXPECT_EQ(one.features({pictures()[i]})[0], together[i]) << "picture " << i;
    // In other groups, too.
    std::vector<media::PixelValues> many;
    for (int times = 0; times < 30; ++times)
      many.insert(many.end(), pictures().begin(), pictures().end());
    const auto all = one.features(many, 1 << 16);
    for (size_t i = 0; i < many.size(); ++i)
      EXPECT_EQ(all[i], together[i % pictures().size()]) << "picture " << i;
  }
}

// Stages end, and so do phases within them, wherever a unit has had its work.
TEST(Encoder, GivesTheSameBitsWhereverItsStagesAreCut) {
  const model::Weights weights = drawn();
  for (const auto compute : {model::Compute::kExact, model::Compute::kFast}) {
    PixtralTower two(weights, kernels::detect_isa(), 2, compute);
    ASSERT_NE(two.encoder, nullptr) << two.error;
    const auto whole = two.features(pictures(), Encoder::kAllWork);
    for (const int64_t work : {1, 100'000, 1'000'000, 9'000'000})
      EXPECT_EQ(two.features(pictures(), work), whole) << work;
  }
}

// A step of the text's model waits for one unit, however large the picture.
TEST(Encoder, ComputesNoMoreAtOnceThanIsAskedForAndAClaimOfEachMember) {
  // The largest claim is that of attention: so many queries meet all keys, with heads filled up.
  constexpr int64_t kClaimMost = int64_t{128} * (kPixelsMax / kPatch / kPatch) * (2 * 32 + 32);
  for (const int threads : {1, 3}) {
    PixtralTower tower(drawn(), kernels::detect_isa(), threads);
    ASSERT_NE(tower.encoder, nullptr) << tower.error;
    Encoder& encoder = *tower.encoder;
    const media::PixelValues& largest = pictures()[3];
    std::vector<float> features(
        static_cast<size_t>(encoder.feature_rows(largest.views) * encoder.width()));
    const Picture begun = {&largest, features};
    int64_t all[2] = {};
    for (const int64_t work : {int64_t{1}, 3 * kClaimMost}) {
      ASSERT_TRUE(encoder.begin({&begun, 1}));
      const int64_t before = encoder.work_done();
      int64_t units = 0;
      for (bool done = false; !done; ++units) {
        const int64_t from = encoder.work_done();
        done = encoder.advance(tower.team, work);
        const int64_t computed = encoder.work_done() - from;
        EXPECT_LE(computed, work + threads * kClaimMost);
        EXPECT_TRUE(done || computed >= work) << computed;
      }
      all[work > 1] = encoder.work_done() - before;
      EXPECT_GT(units, work == 1 ? 20 : 2);
    }
    EXPECT_EQ(all[0], all[1]);
  }
}

TEST(Encoder, RefusesPicturesThatTheTowerCannotTake) {
  PixtralTower tower(drawn(), kernels::detect_isa(), 1);
  ASSERT_NE(tower.encoder, nullptr) << tower.error;
  const auto refusal = [&](media::Size size) {
    const media::PixelValues values = picture(size, 1);
    const Picture begun = {&values, {}};
    const auto taken = tower.encoder->begin({&begun, 1});
    return taken ? "" : taken.error().message;
  };
  EXPECT_EQ(refusal({16, 21}), "a picture of 16 x 21 pixels: expected sides of a multiple of 3");
  EXPECT_EQ(refusal({63, 60}), "a picture of 63 x 60 pixels: expected at most 3600");
  EXPECT_FALSE(tower.encoder->busy());
}

TEST(Encoder, WantsEveryTensorOfTheTower) {
  model::Weights more = drawn();
  more.draw("vision_tower.extra.weight", 3);
  PixtralTower tower(more, kernels::detect_isa(), 1);
  EXPECT_NE(tower.error.find("tensor 'vision_tower.extra.weight': expected only tensors"),
            std::string::npos)
      << tower.error;
  model::Weights fewer = drawn();
  fewer.erase("multi_modal_projector.linear_2.bias");
  PixtralTower without(fewer, kernels::detect_isa(), 1);
  EXPECT_NE(without.error.find("'multi_modal_projector.linear_2.bias': expected"),
            std::string::npos)
      << without.error;
}

std::string config_error(const std::string& more) {
  const auto doc = JsonDoc::parse(config_with(more));
  EXPECT_TRUE(doc);
  const auto spec = spec_from_config(doc->root());
  return spec ? "" : spec.error().message;
}

TEST(EncoderConfig, NamesKeysThatItDoesNotKnow) {
  EXPECT_EQ(config_error(""), "");
  EXPECT_EQ(config_error(R"(,"attention_dropout":0.5)"), "");
  EXPECT_NE(config_error(R"(,"window_attention":[1])").find("'vision_config.window_attention'"),
            std::string::npos);
  EXPECT_NE(config_error(R"(,"head_dim":16)").find("'vision_config.head_dim': expected 12"),
            std::string::npos);
}

TEST(EncoderConfig, RefusesOtherFamiliesByName) {
  const auto doc = JsonDoc::parse(R"({"model_type":"muse_glimmer"})");
  const auto spec = spec_from_config(doc->root());
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(spec.error().message.find("muse_glimmer"), std::string::npos);
}

TEST(EncoderConfig, IsDescribed) {
  const auto doc = JsonDoc::parse(config_with());
  const auto spec = spec_from_config(doc->root());
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(describe(*spec),
            "llava: planes of 3 pixels, width 24, rope by interleaved rates, theta 10000\n"
            "patches\n"
            "norm: rms 1e-05\n"
            "2 x (attention 2 x 12, scale 0.288675; before: rms 1e-05 | gated mlp 37 silu; "
            "before: rms 1e-05)\n"
            "linear 32, bias, gelu\n"
            "linear 32, bias\n");
}

}  // namespace
}  // namespace weir::encoder
