// What rows of a batch may be: vectors in place of embedded tokens, spans that see each other
// whichever comes first, angles of three positions, and positions that the step before leaves; each
// beside a plain forward pass in double precision, written down here, or beside rows without it.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <numbers>

#include "model/batch_builder.h"
#include "model/hand_made_model.h"
#include "model/rope.h"

namespace weir::model {
namespace {

using Numbers = std::vector<double>;

// What a row of a [rows, n] matrix gives of `x`.
double product(const std::vector<float>& weight, size_t row, const Numbers& x) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += double{weight[row * x.size() + i]} * x[i];
  return sum;
}

Numbers product(const std::vector<float>& weight, const Numbers& x) {
  Numbers y(weight.size() / x.size());
  for (size_t row = 0; row < y.size(); ++row) y[row] = product(weight, row, x);
  return y;
}

// Turns a head of `x` by the angles of a position.
void turn(const Rope& rope, const RopePosition& position, double* x) {
  const int half = rope.dim / 2;
  for (int i = 0; i < half; ++i) {
    const bool three = rope.sections[0] > 0;
    size_t axis = !three || i < rope.sections[0]            ? 0
                  : i < rope.sections[0] + rope.sections[1] ? 1
                                                            : 2;
    if (three && rope.sections_interleaved)
      axis = i % 3 == 1 && i < 3 * rope.sections[1]   ? 1
             : i % 3 == 2 && i < 3 * rope.sections[2] ? 2
                                                      : 0;
    const double angle = position[axis] * std::pow(double{rope.theta}, -2.0 * i / double(rope.dim));
    const double a = x[i], b = x[i + half];
    x[i] = a * std::cos(angle) - b * std::sin(angle);
    x[i + half] = b * std::cos(angle) + a * std::sin(angle);
  }
}

struct Input {
  std::vector<Numbers> rows;  // [tokens][kHidden]: what they begin with.
  Mask mask{};
  std::vector<RopePosition> positions{};  // Empty: the rows' own.
  std::vector<Numbers> level{};           // Added to the rows after the first layer; or empty.
};

std::vector<Numbers> embedded(const Weights& w) {
  std::vector<Numbers> rows;
  const std::vector<float>& table = w.at("model.embed_tokens.weight");
  for (const int32_t token : prompt_tokens()) {
    const auto begin = table.begin() + token * kHidden;
    rows.emplace_back(begin, begin + kHidden);
  }
  return rows;
}

// One attention sublayer of all rows.
void attend(const Attention& a, const Weights& w, int layer, const Input& input,
            std::vector<Numbers>& residual) {
  std::vector<Numbers> q, k, v;
  for (size_t p = 0; p < residual.size(); ++p) {
    q.push_back(product(w.at(in_layer(layer, "q_proj")), residual[p]));
    k.push_back(product(w.at(in_layer(layer, "k_proj")), residual[p]));
    v.push_back(product(w.at(in_layer(layer, "v_proj")), residual[p]));
    const auto own = static_cast<int32_t>(p);
    const RopePosition position =
        input.positions.empty() ? RopePosition{own, own, own} : input.positions[p];
    for (int h = 0; h < a.num_heads; ++h) turn(a.rope, position, q[p].data() + h * a.head_dim);
    for (int h = 0; h < a.num_kv_heads; ++h) turn(a.rope, position, k[p].data() + h * a.head_dim);
  }
  const int group = a.num_heads / a.num_kv_heads;
  for (size_t p = 0; p < residual.size(); ++p) {
    Numbers out(static_cast<size_t>(a.num_heads * a.head_dim));
    const auto at = static_cast<int32_t>(p);
    const auto in_span = [&](int32_t i) { return i >= input.mask.begin && i < input.mask.end; };
    for (int h = 0; h < a.num_heads; ++h) {
      double sum = 0;
      for (int32_t j = 0; j < std::ssize(residual); ++j) {
        const bool before = j <= at && (a.window == 0 || j > at - a.window);
        if (!before && !(in_span(at) && in_span(j))) continue;
        const double* key = k[static_cast<size_t>(j)].data() + h / group * a.head_dim;
        const double* value = v[static_cast<size_t>(j)].data() + h / group * a.head_dim;
        double score = 0;
        for (int d = 0; d < a.head_dim; ++d)
          score += q[p][static_cast<size_t>(h * a.head_dim + d)] * key[d];
        const double weight = std::exp(score * double{a.scale});
        sum += weight;
        for (int d = 0; d < a.head_dim; ++d)
          out[static_cast<size_t>(h * a.head_dim + d)] += weight * value[d];
      }
      for (int d = 0; d < a.head_dim; ++d) out[static_cast<size_t>(h * a.head_dim + d)] /= sum;
    }
    const Numbers delta = product(w.at(in_layer(layer, "o_proj")), out);
    for (size_t i = 0; i < delta.size(); ++i) residual[p][i] += delta[i];
  }
}

// The logits of all rows, as logits_of() has them.
std::vector<float> reference(const std::vector<Attention>& layers, const Weights& w,
                             const Input& input) {
  std::vector<Numbers> residual = input.rows;
  for (size_t i = 0; i < layers.size(); ++i) {
    attend(layers[i], w, static_cast<int>(i), input, residual);
    for (size_t p = 0; i == 0 && p < input.level.size(); ++p)
      for (size_t k = 0; k < kHidden; ++k) residual[p][k] += input.level[p][k];
  }
  std::vector<float> logits;
  const std::vector<float>& norm = w.at("model.norm.weight");
  for (Numbers& row : residual) {
    double squares = 0;
    for (const double x : row) squares += x * x;
    const double inverse = 1 / std::sqrt(squares / kHidden + 1e-6);
    for (size_t i = 0; i < row.size(); ++i) row[i] *= inverse * double{norm[i]};
    for (const double x : product(w.at("model.embed_tokens.weight"), row))
      logits.push_back(static_cast<float>(x));
  }
  return logits;
}

std::vector<float> flat(const std::vector<Numbers>& rows) {
  std::vector<float> out;
  for (const Numbers& row : rows) out.insert(out.end(), row.begin(), row.end());
  return out;
}

struct TwoLayers {
  explicit TwoLayers(int window = 0) {
    layers = {plain(16), plain(16)};
    layers[1].window = window;
    weights = drawn(layers[0]);
    // Small enough that a sum of exponentials has no largest one that hides the others.
    draw_attention(weights, 1, layers[1]);
    for (int layer = 0; layer < 2; ++layer)
      for (const char* part : {"q_proj", "k_proj", "o_proj"})
        for (float& x : weights.at(in_layer(layer, part))) x *= 0.5f;
  }
  ModelSpec spec() const {
    return spec_of({{.op = layers[0]}, {.op = layers[1], .stored_layer = 1}});
  }

  std::vector<Attention> layers;
  Weights weights;
};

TEST(Rows, OfTokensAgreeWithAPassWrittenDown) {
  for (const int window : {0, 7}) {
    const TwoLayers model(window);
    EXPECT_LT(largest_difference(logits_of(model.spec(), model.weights),
                                 reference(model.layers, model.weights, {embedded(model.weights)})),
              1e-4);
  }
}

TEST(Rows, OfVectorsAreThoseOfTheTokensTheyEmbed) {
  const TwoLayers model;
  const std::vector<float> vectors = flat(embedded(model.weights));
  EXPECT_EQ(logits_of(model.spec(), model.weights, vectors),
            logits_of(model.spec(), model.weights));
  // Others, of no token.
  Input other = {embedded(model.weights)};
  for (size_t p = 0; p < other.rows.size(); ++p)
    for (size_t i = 0; i < kHidden; ++i) other.rows[p][i] += 0.01 * double(p * i % 11);
  EXPECT_LT(largest_difference(logits_of(model.spec(), model.weights, flat(other.rows)),
                               reference(model.layers, model.weights, other)),
            1e-4);
}

TEST(Rows, OfASpanSeeEachOtherInEveryKernel) {
  for (const kernels::Isa isa :
       {kernels::Isa::kScalar, kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
    if (isa > kernels::detect_isa()) continue;
    for (const int window : {0, 7})
      for (const Mask mask : {Mask{3, 21}, Mask{0, kTokens}, Mask{30, kTokens}, Mask{5, 6}}) {
        const TwoLayers model(window);
        const Input input = {.rows = embedded(model.weights), .mask = mask};
        const std::vector<float> expected = reference(model.layers, model.weights, input);
        const std::vector<float> found =
            logits_of(model.spec(), model.weights, flat(input.rows), mask, kernels::ops_for(isa));
        EXPECT_LT(largest_difference(found, expected), 1e-4)
            << mask.begin << " to " << mask.end << " window " << window;
        const std::vector<float> causal = logits_of(model.spec(), model.weights);
        if (mask.end - mask.begin > 1) {
          EXPECT_GT(largest_difference(found, causal), 1e-2);
          // The rows before the span see nothing of it.
          const std::vector<float> masked = logits_of(model.spec(), model.weights, {}, mask);
          const auto unequal = std::ranges::mismatch(causal, masked).in1 - causal.begin();
          EXPECT_EQ(unequal / kVocab, mask.begin) << masked[static_cast<size_t>(unequal)] << " "
                                                  << causal[static_cast<size_t>(unequal)];
        }
      }
  }
}

// A pass over the whole prompt, whose rows `fill` adds to the slice that is open.
std::vector<float> logits_with(const TwoLayers& tested, const BatchSlice& slice,
                               const std::function<void(BatchBuilder&)>& fill) {
  struct Keep final : RowSink {
    void on_rows(int32_t, int32_t first, Rows rows, int) override {
      std::ranges::copy(rows.row(0), logits.begin() + first * kVocab);
    }
    std::vector<float> logits = std::vector<float>(size_t{kTokens} * kVocab);
  } keep;
  ThreadTeam team(2);
  const HandMade made(tested.spec(), tested.weights, kernels::ops_for(kernels::detect_isa()), team);
  Decoder* const model = made.decoder.get();
  auto cache = kv::KvCache::create(model->memory_needs(), kernels::FloatType::kF32, 2);
  EXPECT_TRUE(cache);
  const std::array<int32_t, 2> pages = {0, 1};
  BatchBuilder builder;
  BatchSlice whole = slice;
  whole.prompt_length = kTokens;
  whole.memory = {pages.data()};
  builder.add_slice(whole);
  fill(builder);
  builder.want(Wanted::kScore, 0, kTokens);
  const Batch batch = builder.batch();
  team.run([&](int member) { model->forward(batch, *cache, keep, team, member); });
  return keep.logits;
}

// Whose rows have angles of their own.
std::vector<float> logits_at(const TwoLayers& tested, const std::vector<RopePosition>& positions,
                             int32_t shift = 0) {
  return logits_with(tested, {.memory = {}, .rope_shift = shift}, [&](BatchBuilder& builder) {
    builder.add_tokens(prompt_tokens());
    for (const RopePosition& position : positions) builder.set_rope_position(position);
  });
}

TEST(Rows, MayTurnByThreePositions) {
  std::vector<RopePosition> equal, three;
  for (int32_t i = 0; i < kTokens; ++i) {
    equal.push_back({i, i, i});
    three.push_back({i / 9, i / 3 % 3 + 4, i % 3});
  }
  for (const bool interleaved : {false, true}) {
    TwoLayers model;
    for (Attention& layer : model.layers) {
      layer.rope.sections = interleaved ? std::array{4, 3, 1} : std::array{2, 3, 3};
      layer.rope.sections_interleaved = interleaved;
    }
    EXPECT_EQ(logits_at(model, equal), logits_at(model, {}));
    std::vector<RopePosition> later = equal;
    for (RopePosition& position : later)
      for (int32_t& axis : position) axis += 5;
    EXPECT_EQ(logits_at(model, later), logits_at(model, {}, /*shift=*/5));
    const Input input = {.rows = embedded(model.weights), .positions = three};
    const std::vector<float> found = logits_at(model, three);
    EXPECT_LT(largest_difference(found, reference(model.layers, model.weights, input)), 1e-4);
    EXPECT_GT(largest_difference(found, logits_at(model, equal)), 1e-2);
  }
}

TEST(Rows, MayHaveALevelAddedAfterALayer) {
  const TwoLayers model;
  const size_t begin = kTokens - 3;
  Input input = {.rows = embedded(model.weights)};
  input.level.assign(kTokens, Numbers(kHidden));
  for (size_t p = begin; p < kTokens; ++p)
    for (size_t i = 0; i < kHidden; ++i) input.level[p][i] = 0.02 * double((p * 3 + i) % 7);
  std::vector<float> vectors = flat({input.rows.begin() + begin, input.rows.end()});
  const std::vector<float> level = flat({input.level.begin() + begin, input.level.end()});
  const auto stride = static_cast<int64_t>(vectors.size());
  vectors.insert(vectors.end(), level.begin(), level.end());
  const std::vector<int32_t> tokens = prompt_tokens();
  const std::vector<float> found = logits_with(model, {.memory = {}}, [&](BatchBuilder& builder) {
    builder.add_tokens(std::span(tokens).first(begin));
    builder.add_vectors({.rows = kTokens - static_cast<int32_t>(begin),
                         .vectors = vectors.data(),
                         .levels = 1,
                         .level_stride = stride});
  });
  EXPECT_LT(largest_difference(found, reference(model.layers, model.weights, input)), 1e-4);
  EXPECT_GT(largest_difference(found, logits_at(model, {})), 1e-2);
}

TEST(Rows, SectionsThatAreNotThePairsAreRefused) {
  TwoLayers model;
  model.layers[0].rope.sections = {2, 3, 4};
  const Result<void> checked = check_spec(model.spec());
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("sections of 8 rotary pairs in all, found 9"),
            std::string::npos)
      << checked.error().message;
}

// A slice whose position depends on the drafts that the step before has taken is, to the bit, the
// one that stands there.
TEST(Rows, MayStandWhereTheStepBeforeLeavesThem) {
  struct Keep final : RowSink {
    void on_rows(int32_t, int32_t, Rows rows, int) override {
      logits.assign(rows.data, rows.data + int64_t{rows.count} * rows.width);
    }
    std::vector<float> logits;
  };
  const TwoLayers tested(7);
  ThreadTeam team(2);
  const HandMade made(tested.spec(), tested.weights, kernels::ops_for(kernels::detect_isa()), team);
  Decoder* const model = made.decoder.get();
  ASSERT_NE(model, nullptr);
  const std::vector<int32_t> tokens = prompt_tokens();
  const std::array<int32_t, 2> pages = {0, 1};
  const std::span prompt = std::span(tokens).first(20);
  const std::array<Taken, 3> taken = {{{.token = 1}, {.token = tokens[25], .drafts = 5}, {}}};
  const auto run = [&](bool late) {
    auto cache = kv::KvCache::create(model->memory_needs(), kernels::FloatType::kF32, 2);
    Keep keep;
    const auto pass = [&](const BatchBuilder& builder) {
      const Batch batch = builder.batch(taken.data());
      team.run([&](int member) { model->forward(batch, *cache, keep, team, member); });
    };
    BatchBuilder first(20, 1), verified(6, 1), next(4, 1);
    first.add_slice({.prompt_length = 20, .memory = {pages.data()}});
    first.add_tokens(prompt);
    pass(first);
    verified.add_slice({.first_position = 20, .prompt_length = 20, .memory = {pages.data()}});
    verified.add_tokens(std::span(tokens).subspan(20, 5));
    verified.add_token(40);  // A draft that was wrong: position 25 is written again.
    pass(verified);
    next.add_slice({.first_position = late ? 20 : 25,
                    .after = late ? 1 : -1,
                    .prompt_length = 20,
                    .memory = {pages.data()}});
    if (late)
      next.add_place(1);
    else
      next.add_token(tokens[25]);
    next.add_tokens(std::array{3, 4, 5});
    next.want(Wanted::kVerify, 0, 4);
    pass(next);
    return keep.logits;
  };
  const std::vector<float> plain = run(false);
  EXPECT_EQ(plain.size(), size_t{4} * kVocab);
  EXPECT_EQ(run(true), plain);
}

}  // namespace
}  // namespace weir::model
