// Adapters on a whole model: rows of a batch with different ones get what each gets alone, to the
// last bit, and rows without one what they get where there are none. What an adapter computes is
// held against references by weir-check's fixtures; here against the weights that it stands for.
#include "model/adapter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "card/adapter_files.h"
#include "card/default_model.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/decoder.h"
#include "model/session.h"

namespace weir::model {
namespace {

using card::AdapterFiles;
using card::read_adapter;

constexpr int64_t kBytesMax = int64_t{256} << 20;
constexpr int32_t kRank = 5;  // No multiple of what kernels take at once.
constexpr size_t kAdapters = 8;

std::vector<int32_t> some_tokens(int32_t count, int32_t from) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < count; ++i) tokens.push_back((from + i * 7919 + 13) % 8000);
  return tokens;
}

struct Bed {
  explicit Bed(Compute compute, int32_t rank = 16) : team(2) {
    const ModelOptions options = {
        .compute = compute, .rows_max = 128, .context_max = 256, .adapter_rank = rank};
    auto bound = Decoder::bind(*card::ModelCard::open(card::default_model()), options,
                               kernels::ops_for(kernels::detect_isa()), team.members());
    EXPECT_TRUE(bound) << bound.error().message;
    model = std::move(*bound);
    model->pack(team, {});
  }

  // For every matrix that is not one of stacked ones, and some single experts.
  std::shared_ptr<const Adapter> adapter(uint32_t seed, double alpha = 8) {
    AdapterFiles files(seed);
    for (const BoundModule& module : model->modules()) {
      if (module.path.find("layers.") == std::string::npos) continue;
      if (module.rows.size() == 1) {
        files.low_rank(module.path, module.rows[0], module.k, kRank);
        continue;
      }
      const size_t stacked = module.path.find("switch_mlp");
      if (stacked == std::string::npos) continue;
      std::string path = module.path;
      path.replace(stacked, std::string("switch_mlp").size(),
                   "experts." + std::to_string(seed % static_cast<uint32_t>(module.rows[0])));
      files.low_rank(path, module.rows[1], module.k, kRank);
    }
    texts.push_back(std::make_unique<std::string>(files.bytes()));
    const auto card = read_adapter(AdapterFiles::config(kRank, alpha), *texts.back());
    EXPECT_TRUE(card) << card.error().message;
    auto bound = model->bind_adapter(*card, kBytesMax);
    EXPECT_TRUE(bound) << bound.error().message;
    return *bound;
  }

  ThreadTeam team;
  std::unique_ptr<Decoder> model;
  std::vector<std::unique_ptr<std::string>> texts;
};

// Logits of a prompt, and of some tokens after it, of several sequences side by side.
std::vector<std::vector<float>> run(Bed& bed, const std::vector<const Adapter*>& adapters,
                                    const std::vector<int32_t>& which) {
  constexpr int32_t kPrompt = 9, kSteps = 3;
  auto session = Session::create(*bed.model, bed.team,
                                 {.sequences = static_cast<int32_t>(adapters.size())});
  EXPECT_TRUE(session) << session.error().message;
  std::vector<std::vector<float>> logits(adapters.size());
  for (int32_t step = 0; step <= kSteps; ++step) {
    std::vector<std::vector<int32_t>> tokens;
    for (const int32_t number : which)
      tokens.push_back(some_tokens(step == 0 ? kPrompt : 1, 31 * number + step));
    std::vector<Session::Slice> slices;
    for (size_t i = 0; i < adapters.size(); ++i) {
      if (step == 0) session->begin(static_cast<int32_t>(i), kPrompt);
      slices.push_back({.sequence = static_cast<int32_t>(i),
                        .tokens = tokens[i],
                        .all_logits = true,
                        .adapter = adapters[i]});
    }
    std::vector<std::vector<float>> rows(adapters.size());
    const auto vocab = static_cast<size_t>(bed.model->spec().vocab_size);
    for (size_t i = 0; i < rows.size(); ++i) rows[i].resize(tokens[i].size() * vocab);
    session->forward(slices, [&](size_t slice, size_t token, std::span<float> row) {
      std::ranges::copy(row, rows[slice].begin() + static_cast<std::ptrdiff_t>(token * vocab));
    });
    for (size_t i = 0; i < rows.size(); ++i)
      logits[i].insert(logits[i].end(), rows[i].begin(), rows[i].end());
  }
  return logits;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class AdapterTest : public testing::TestWithParam<Compute> {};

TEST_P(AdapterTest, EightTogetherGiveWhatEachGivesAlone) {
  Bed bed(GetParam());
  std::vector<std::shared_ptr<const Adapter>> held;
  std::vector<const Adapter*> adapters = {nullptr};
  std::vector<int32_t> which = {0};
  for (size_t i = 0; i < kAdapters; ++i) {
    held.push_back(bed.adapter(static_cast<uint32_t>(i) + 1));
    adapters.push_back(held.back().get());
    which.push_back(static_cast<int32_t>(i) + 1);
  }
  // Two of one adapter that are no neighbours.
  adapters.push_back(adapters[1]);
  which.push_back(12);
  const auto together = run(bed, adapters, which);
  for (size_t i = 0; i < adapters.size(); ++i) {
    const auto alone = run(bed, {adapters[i]}, {which[i]});
    EXPECT_TRUE(same_bits(alone[0], together[i])) << "sequence " << i;
    for (size_t other = 0; other < i; ++other)
      EXPECT_FALSE(same_bits(together[i], together[other])) << i << " is as " << other;
  }
}

TEST_P(AdapterTest, RowsWithoutOneAreThoseOfAModelThatTakesNone) {
  Bed bed(GetParam()), without(GetParam(), /*rank=*/0);
  const auto adapter = bed.adapter(3);
  const auto beside = run(bed, {adapter.get(), nullptr}, {1, 2});
  EXPECT_TRUE(same_bits(beside[1], run(without, {nullptr}, {2})[0]));
}

TEST_P(AdapterTest, AnAdapterOfNothingChangesNothing) {
  Bed bed(GetParam());
  const auto adapter = bed.adapter(3, /*alpha=*/0);
  EXPECT_TRUE(same_bits(run(bed, {adapter.get()}, {1})[0], run(bed, {nullptr}, {1})[0]));
}

INSTANTIATE_TEST_SUITE_P(Computes, AdapterTest, testing::Values(Compute::kFast, Compute::kExact),
                         [](const auto& compute) {
                           return compute.param == Compute::kFast ? "fast" : "exact";
                         });

std::string bind_error(Bed& bed, const std::string& config, const AdapterFiles& files) {
  const std::string bytes = files.bytes();
  const auto card = read_adapter(config, bytes);
  if (!card) return card.error().message;
  const auto bound = bed.model->bind_adapter(*card, kBytesMax);
  return bound ? "" : bound.error().message;
}

TEST(Adapter, RefusesWhatDoesNotFitTheModelByName) {
  Bed bed(Compute::kFast);
  const std::string config = AdapterFiles::config(4, 8);
  const std::string q = "model.layers.0.self_attn.q_proj";
  const int64_t hidden = bed.model->spec().hidden_size;
  int64_t n = 0;
  for (const BoundModule& module : bed.model->modules())
    if (module.path == q) n = module.rows[0];
  ASSERT_GT(n, 0);
  EXPECT_EQ(bind_error(bed, config, AdapterFiles().low_rank(q, n, hidden, 4)), "");
  const auto expect = [&](const AdapterFiles& files, const std::string& text) {
    const std::string error = bind_error(bed, config, files);
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  expect(AdapterFiles().low_rank("model.layers.0.self_attn.x_proj", n, hidden, 4), "x_proj");
  expect(AdapterFiles().low_rank("model.layers.99.self_attn.q_proj", n, hidden, 4), "layers.99");
  expect(AdapterFiles().low_rank(q, n + 1, hidden, 4), "B: expected [" + std::to_string(n));
  expect(AdapterFiles().low_rank(q, n, hidden + 1, 4), "A: expected [4");
  expect(AdapterFiles().low_rank(q, n, hidden, 17), "--max-lora-rank");
  expect(AdapterFiles().low_rank("model.embed_tokens", 8192, hidden, 4), "embedding");
  const std::string bytes = AdapterFiles().low_rank(q, n, hidden, 4).bytes();
  const auto card = read_adapter(config, bytes);
  ASSERT_TRUE(card);
  EXPECT_EQ(bed.model->bind_adapter(*card, 100).error().code, ErrorCode::kCapacity);
}

}  // namespace
}  // namespace weir::model
