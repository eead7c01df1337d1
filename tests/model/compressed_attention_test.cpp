// Attention to compressed blocks, on models described by hand: against the formulas of
// docs/deepseek-v4.md in plain words and double precision, and the same bits however a text was cut
// and whatever ran beside it.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "model/hand_made_model.h"

namespace weir::model {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

constexpr int kRopeTheta = 100;
const std::string kModule = "model.layers.0.self_attn.";

CompressedAttention windowed() {
  return {.num_heads = 4,
          .head_dim = 16,
          .q_rank = 12,
          .window = 6,
          .out_groups = 2,
          .out_rank = 16,
          .scale = 0.25f,
          .rope = {.layout = Rope::kInterleaved, .theta = kRopeTheta, .dim = 8}};
}

CompressedAttention in_blocks(int ratio) {
  CompressedAttention a = windowed();
  a.ratio = ratio;
  return a;
}

CompressedAttention chosen(int ratio, int top_k) {
  CompressedAttention a = in_blocks(ratio);
  a.overlaps = true;
  a.index_heads = 3, a.index_dim = 12, a.top_k = top_k;
  return a;
}

void draw_blocks(Weights& w, const std::string& module, const CompressedAttention& a, int32_t dim) {
  const int32_t width = a.key_blocks() * dim;
  w.draw(module + "kv_proj.weight", width, kHidden);
  w.draw(module + "gate_proj.weight", width, kHidden);
  w.draw(module + "position_bias", a.ratio, width);
  w.draw(module + "kv_norm.weight", dim);
}

Weights drawn(const CompressedAttention& a) {
  Weights w;
  w.draw("model.embed_tokens.weight", kVocab, kHidden);
  w.draw("model.norm.weight", kHidden);
  w.draw(kModule + "q_a_proj.weight", a.q_rank, kHidden);
  w.draw(kModule + "q_a_norm.weight", a.q_rank);
  w.draw(kModule + "q_b_proj.weight", a.num_heads * a.head_dim, a.q_rank);
  w.draw(kModule + "kv_proj.weight", a.head_dim, kHidden);
  w.draw(kModule + "kv_norm.weight", a.head_dim);
  w.draw(kModule + "sinks", a.num_heads);
  w.draw(kModule + "o_a_proj.weight", a.out_groups * a.out_rank,
         a.num_heads / a.out_groups * a.head_dim);
  w.draw(kModule + "o_b_proj.weight", kHidden, a.out_groups * a.out_rank);
  if (a.ratio > 0) draw_blocks(w, kModule + "compressor.", a, a.head_dim);
  if (a.index_heads == 0) return w;
  const std::string indexer = kModule + "compressor.indexer.";
  draw_blocks(w, indexer, a, a.index_dim);
  w.draw(indexer + "q_b_proj.weight", a.index_heads * a.index_dim, a.q_rank);
  w.draw(indexer + "scorer.weights_proj.weight", a.index_heads, kHidden);
  return w;
}

Row product(std::span<const float> matrix, const Row& x) {
  Row y(matrix.size() / x.size());
  for (size_t i = 0; i < matrix.size(); ++i) y[i / x.size()] += double{matrix[i]} * x[i % x.size()];
  return y;
}

double dot(const Row& a, const Row& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

Row normed(Row x, std::span<const float> weights = {}) {
  const double mean = dot(x, x) / static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] *= (weights.empty() ? 1 : double{weights[i]}) / std::sqrt(mean + 1e-6);
  return x;
}

// The last `dim` numbers turn, in pairs of neighbours; back where `way` is -1.
Row turned(Row x, int dim, int position, int way = 1) {
  const size_t first = x.size() - static_cast<size_t>(dim);
  for (int i = 0; i < dim / 2; ++i) {
    const double angle = way * position * std::pow(kRopeTheta, -2.0 * i / dim);
    double& a = x[first + static_cast<size_t>(2 * i)];
    double& b = x[first + static_cast<size_t>(2 * i + 1)];
    const double old = a;
    a = old * std::cos(angle) - b * std::sin(angle);
    b = old * std::sin(angle) + b * std::cos(angle);
  }
  return x;
}

Row part(const Row& x, size_t first, size_t count) {
  return {x.begin() + static_cast<long>(first), x.begin() + static_cast<long>(first + count)};
}

// The keys of all complete blocks of the rows x.
Rows block_keys(const Weights& w, const std::string& module, const CompressedAttention& a,
                size_t dim, const Rows& x) {
  const auto ratio = static_cast<size_t>(a.ratio), halves = static_cast<size_t>(a.key_blocks());
  const std::vector<float>& bias = w.at(module + "position_bias");
  Rows inputs, gates, keys;
  for (size_t t = 0; t < x.size(); ++t) {
    inputs.push_back(product(w.at(module + "kv_proj.weight"), x[t]));
    gates.push_back(product(w.at(module + "gate_proj.weight"), x[t]));
    for (size_t c = 0; c < halves * dim; ++c)
      gates[t][c] += double{bias[t % ratio * halves * dim + c]};
  }
  for (size_t b = 0; (b + 1) * ratio <= x.size(); ++b) {
    Row key(dim);
    for (size_t c = 0; c < dim; ++c) {
      double sum = 0, weighted = 0;
      const auto add = [&](size_t block, size_t channel) {
        for (size_t t = block * ratio; t < (block + 1) * ratio; ++t) {
          sum += std::exp(gates[t][channel]);
          weighted += std::exp(gates[t][channel]) * inputs[t][channel];
        }
      };
      if (a.overlaps && b > 0) add(b - 1, c);
      add(b, a.overlaps ? dim + c : c);
      key[c] = weighted / sum;
    }
    keys.push_back(turned(normed(key, w.at(module + "kv_norm.weight")), a.rope.dim,
                          static_cast<int>(b * ratio)));
  }
  return keys;
}

// The best of `seen` blocks for row t, ascending.
std::vector<size_t> best_blocks(const Weights& w, const CompressedAttention& a, const Row& latent,
                                const Row& x, const Rows& keys, size_t seen, int position) {
  const std::string module = kModule + "compressor.indexer.";
  const auto dim = static_cast<size_t>(a.index_dim), heads = static_cast<size_t>(a.index_heads);
  const Row q = product(w.at(module + "q_b_proj.weight"), latent);
  const Row weights = product(w.at(module + "scorer.weights_proj.weight"), x);
  std::vector<std::pair<double, size_t>> scores;
  for (size_t b = 0; b < seen; ++b) {
    double score = 0;
    for (size_t h = 0; h < heads; ++h)
      score += weights[h] / std::sqrt(static_cast<double>(heads)) *
               std::max(dot(turned(part(q, h * dim, dim), a.rope.dim, position), keys[b]), 0.0) /
               std::sqrt(static_cast<double>(dim));
    scores.emplace_back(-score, b);
  }
  std::ranges::sort(scores);
  scores.resize(std::min(scores.size(), static_cast<size_t>(a.top_k)));
  std::vector<size_t> best;
  for (const auto& [score, block] : scores) best.push_back(block);
  std::ranges::sort(best);
  return best;
}

// What the sublayer adds to each of the rows x.
Rows attention(const Weights& w, const CompressedAttention& a, const Rows& x) {
  const auto dim = static_cast<size_t>(a.head_dim), heads = static_cast<size_t>(a.num_heads);
  Rows raw, blocks, index_keys, out;
  for (size_t t = 0; t < x.size(); ++t)
    raw.push_back(turned(
        normed(product(w.at(kModule + "kv_proj.weight"), x[t]), w.at(kModule + "kv_norm.weight")),
        a.rope.dim, static_cast<int>(t)));
  if (a.ratio > 0) blocks = block_keys(w, kModule + "compressor.", a, dim, x);
  if (a.index_heads > 0)
    index_keys =
        block_keys(w, kModule + "compressor.indexer.", a, static_cast<size_t>(a.index_dim), x);
  for (size_t t = 0; t < x.size(); ++t) {
    const auto position = static_cast<int>(t);
    const Row latent =
        normed(product(w.at(kModule + "q_a_proj.weight"), x[t]), w.at(kModule + "q_a_norm.weight"));
    const Row queries = product(w.at(kModule + "q_b_proj.weight"), latent);
    Rows keys;
    const size_t seen = a.ratio > 0 ? (t + 1) / static_cast<size_t>(a.ratio) : 0;
    std::vector<size_t> visible(seen);
    std::iota(visible.begin(), visible.end(), size_t{0});
    if (a.index_heads > 0) visible = best_blocks(w, a, latent, x[t], index_keys, seen, position);
    for (const size_t b : visible) keys.push_back(blocks[b]);
    for (int p = std::max(position - a.window + 1, 0); p <= position; ++p)
      keys.push_back(raw[static_cast<size_t>(p)]);
    Row joined;
    for (size_t h = 0; h < heads; ++h) {
      const Row q = turned(normed(part(queries, h * dim, dim)), a.rope.dim, position);
      double sum = std::exp(double{w.at(kModule + "sinks")[h]});
      Row value(dim);
      for (const Row& key : keys) {
        const double p = std::exp(double{a.scale} * dot(q, key));
        sum += p;
        for (size_t d = 0; d < dim; ++d) value[d] += p * key[d];
      }
      for (double& v : value) v /= sum;
      for (const double v : turned(value, a.rope.dim, position, -1)) joined.push_back(v);
    }
    const auto groups = static_cast<size_t>(a.out_groups), width = joined.size() / groups;
    const std::span<const float> o_a = w.at(kModule + "o_a_proj.weight");
    Row low;
    for (size_t g = 0; g < groups; ++g)
      for (const double v : product(o_a.subspan(g * o_a.size() / groups, o_a.size() / groups),
                                    part(joined, g * width, width)))
        low.push_back(v);
    out.push_back(product(w.at(kModule + "o_b_proj.weight"), low));
  }
  return out;
}

std::vector<float> expected_logits(const Weights& w, const CompressedAttention& a) {
  const std::vector<float>& embedding = w.at("model.embed_tokens.weight");
  Rows x;
  for (const int32_t token : prompt_tokens()) {
    const auto first = embedding.begin() + long{token} * kHidden;
    x.emplace_back(first, first + kHidden);
  }
  const Rows added = attention(w, a, x);
  std::vector<float> out;
  for (size_t t = 0; t < x.size(); ++t) {
    for (size_t i = 0; i < x[t].size(); ++i) x[t][i] += added[t][i];
    for (const double v : product(embedding, normed(x[t], w.at("model.norm.weight"))))
      out.push_back(static_cast<float>(v));
  }
  return out;
}

// Kinds of layers, and sizes and options other than the published ones.
std::vector<CompressedAttention> many() {
  std::vector<CompressedAttention> all = {windowed(),    in_blocks(1),  in_blocks(4),  in_blocks(5),
                                          in_blocks(12), in_blocks(33), in_blocks(128)};
  for (const int ratio : {1, 2, 4, 8, 32})
    for (const int top_k : {1, 3, 100}) all.push_back(chosen(ratio, top_k));
  const auto also = [&](CompressedAttention a, auto&& change) {
    change(a);
    all.push_back(a);
  };
  using Spec = CompressedAttention;
  also(chosen(4, 3), [](Spec& a) { a.window = 1; });
  also(in_blocks(4), [](Spec& a) { a.window = 64; });
  also(chosen(4, 3), [](Spec& a) { a.rope.dim = 0; });
  also(in_blocks(8), [](Spec& a) { a.rope.dim = a.head_dim; });
  also(chosen(4, 2), [](Spec& a) { a.head_dim = 72, a.index_dim = 9; });
  also(in_blocks(3), [](Spec& a) { a.head_dim = 24, a.out_groups = 1, a.out_rank = 5; });
  also(chosen(4, 4), [](Spec& a) { a.num_heads = 6, a.out_groups = 3, a.out_rank = 24; });
  also(chosen(8, 2), [](Spec& a) { a.overlaps = false; });
  also(in_blocks(4), [](Spec& a) { a.overlaps = true; });
  also(windowed(), [](Spec& a) { a.num_heads = 1, a.out_groups = 1, a.q_rank = 5; });
  return all;
}

TEST(CompressedAttention, IsWhatItsFormulasSay) {
  for (const CompressedAttention& a : many()) {
    SCOPED_TRACE(text(a));
    const Weights w = drawn(a);
    const std::vector<float> expected = expected_logits(w, a);
    for (const kernels::Isa isa : {kernels::Isa::kScalar, kernels::detect_isa()})
      EXPECT_LT(largest_difference(
                    logits_of(spec_of({{.op = a}}), w, {}, {}, kernels::ops_for(isa)), expected),
                1e-4);
  }
}

// Three layers of different kinds, so that what a row leaves depends on all rows before it.
ModelSpec three_kinds() {
  std::vector<Sublayer> layers;
  for (const CompressedAttention& a : {chosen(4, 3), in_blocks(12), windowed()})
    layers.push_back({.op = a, .stored_layer = static_cast<int>(layers.size())});
  return spec_of(std::move(layers));
}

Weights three_weights() {
  Weights all = drawn(windowed());
  const auto add = [&](const CompressedAttention& a, const std::string& layer) {
    const Weights w = drawn(a);
    for (const std::string& name : w.names())
      if (name.starts_with(kModule))
        all.take(w, name, layer + name.substr(std::string("model.layers.0").size()));
  };
  add(chosen(4, 3), "model.layers.0");
  add(in_blocks(12), "model.layers.1");
  add(windowed(), "model.layers.2");
  return all;
}

// All logits of the prompt in slices of these sizes, repeated, with as many other sequences beside
// it, which are at other places of their texts.
std::vector<float> logits_in_slices(const std::vector<int32_t>& sizes, kernels::FloatType type,
                                    int32_t others, int threads) {
  ThreadTeam team(threads);
  const HandMade model(three_kinds(), three_weights(), kernels::ops_for(kernels::detect_isa()),
                       team);
  if (!model.decoder) return {};
  auto session =
      Session::create(*model.decoder, team, {.sequences = 1 + others, .kv_format = type});
  EXPECT_TRUE(session) << session.error().message;
  const std::vector<int32_t> tokens = prompt_tokens();
  for (int32_t s = 0; s <= others; ++s) session->begin(s, kTokens);
  std::vector<float> out(size_t{kTokens} * kVocab);
  size_t done = 0;
  for (size_t step = 0; done < tokens.size(); ++step) {
    const size_t count =
        std::min(static_cast<size_t>(sizes[step % sizes.size()]), tokens.size() - done);
    std::vector<Session::Slice> slices;
    for (int32_t s = 1; s <= others; ++s)
      if (session->length(s) + s <= kTokens)
        slices.push_back(
            {.sequence = s, .tokens = std::span(tokens).first(static_cast<size_t>(s))});
    const size_t own = slices.size();
    slices.push_back({.tokens = std::span(tokens).subspan(done, count), .all_logits = true});
    session->forward(slices, [&](size_t slice, size_t token, std::span<float> logits) {
      if (slice == own)
        std::ranges::copy(logits, out.begin() + static_cast<long>((done + token) * kVocab));
    });
    done += count;
  }
  return out;
}

TEST(CompressedAttention, GivesTheSameBitsHoweverATextIsCut) {
  for (const auto type : {kernels::FloatType::kF32, kernels::FloatType::kF16}) {
    const std::vector<float> whole = logits_in_slices({kTokens}, type, 0, 1);
    EXPECT_EQ(logits_in_slices({1}, type, 0, 3), whole);
    EXPECT_EQ(logits_in_slices({3, 7, 1, 13}, type, 0, 2), whole);
    EXPECT_EQ(logits_in_slices({5, 4, 11}, type, 3, 2), whole);
    EXPECT_EQ(logits_in_slices({1}, type, 5, 1), whole);
  }
}

std::string error_of(const CompressedAttention& a) {
  const auto checked = check_spec(spec_of({{.op = a}}));
  return checked ? "" : checked.error().message;
}

TEST(CompressedAttention, OfSizesThatCannotBeIsRefusedByName) {
  EXPECT_EQ(error_of(chosen(4, 3)), "");
  const auto expect = [](CompressedAttention a, auto&& change, std::string_view said) {
    change(a);
    EXPECT_NE(error_of(a).find(said), std::string::npos) << said << " in: " << error_of(a);
  };
  using Spec = CompressedAttention;
  expect(
      windowed(), [](Spec& a) { a.window = 0; }, "sliding_window");
  expect(
      windowed(), [](Spec& a) { a.out_groups = 3; }, "o_groups to divide");
  expect(
      windowed(), [](Spec& a) { a.rope.dim = 18; }, "qk_rope_head_dim");
  expect(
      windowed(), [](Spec& a) { a.head_dim = 1025; }, "head_dim");
  expect(
      windowed(), [](Spec& a) { a.overlaps = true; }, "compress_ratios");
  expect(
      in_blocks(4), [](Spec& a) { a.ratio = 5000; }, "compress_rate_hca");
  expect(
      chosen(4, 3), [](Spec& a) { a.ratio = 6; }, "found 6");
  expect(
      chosen(4, 3), [](Spec& a) { a.top_k = 0; }, "index_topk");
  expect(
      chosen(4, 3), [](Spec& a) { a.index_dim = 6; }, "index_head_dim");
  expect(
      in_blocks(4), [](Spec& a) { a.rope.scaling = Rope::kDynamic, a.rope.original_context = 64; },
      "does not depend on the length");
}

}  // namespace
}  // namespace weir::model
