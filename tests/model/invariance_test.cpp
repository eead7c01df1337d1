// What a token's logits may not depend on: the number of threads, where the pages lie, and how the
// model was loaded; on the model compiled into the binary, whose recorded answers it must give.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "card/default_model.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/batch_builder.h"
#include "model/session.h"

namespace weir::model {
namespace {

constexpr int32_t kTokens = 100;

std::vector<int32_t> some_tokens() {
  std::vector<int32_t> tokens(kTokens);
  for (int32_t i = 0; i < kTokens; ++i) tokens[static_cast<size_t>(i)] = (i * 7919 + 13) % 8000;
  return tokens;
}

std::unique_ptr<Model> load_default(ThreadTeam& team, Compute compute, kernels::Isa isa) {
  const ModelOptions options = {.compute = compute, .rows_max = 128, .context_max = 512};
  auto model = Model::load(*card::ModelCard::open(card::default_model()), options,
                           kernels::ops_for(isa), team);
  EXPECT_TRUE(model) << model.error().message;
  return model ? std::move(*model) : nullptr;
}

// The last token's logits after `batch` with its pages as given.
std::vector<float> last_logits(Model& model, ThreadTeam& team, const std::vector<int32_t>& pages) {
  struct Keep final : RowSink {
    void on_rows(int32_t, int32_t, Rows rows, int) override {
      logits.assign(rows.row(0).begin(), rows.row(0).end());
    }
    std::vector<float> logits;
  } keep;
  auto cache = kv::KvCache::create(model.memory_needs(), kernels::FloatType::kF16, 16);
  EXPECT_TRUE(cache) << cache.error().message;
  BatchBuilder builder;
  builder.add_slice({.prompt_length = kTokens, .memory = {pages.data()}});
  builder.add_tokens(some_tokens());
  builder.want_next();
  const Batch batch = builder.batch();
  team.run([&](int member) { model.forward(batch, *cache, keep, team, member); });
  return keep.logits;
}

class InvarianceTest : public testing::TestWithParam<Compute> {};

TEST_P(InvarianceTest, LogitsAreTheSameOnAnyNumberOfThreads) {
  std::vector<float> one;
  for (const int threads : {1, 2, 3}) {
    ThreadTeam team(threads);
    const auto model = load_default(team, GetParam(), kernels::detect_isa());
    ASSERT_NE(model, nullptr);
    const std::vector<float> logits = last_logits(*model, team, {0, 1, 2, 3});
    if (threads == 1) one = logits;
    EXPECT_EQ(logits, one) << threads << " threads";
  }
}

TEST_P(InvarianceTest, LogitsAreTheSameWhereverThePagesLie) {
  ThreadTeam team(1);
  const auto model = load_default(team, GetParam(), kernels::detect_isa());
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(last_logits(*model, team, {0, 1, 2, 3}), last_logits(*model, team, {11, 2, 15, 7}));
}

TEST_P(InvarianceTest, LogitsAreTheSameAfterScratchMemoryWentBack) {
  ThreadTeam team(2);
  const auto model = load_default(team, GetParam(), kernels::detect_isa());
  ASSERT_NE(model, nullptr);
  const std::vector<float> before = last_logits(*model, team, {0, 1, 2, 3});
  model->give_back_scratch();
  EXPECT_EQ(last_logits(*model, team, {0, 1, 2, 3}), before);
}

INSTANTIATE_TEST_SUITE_P(All, InvarianceTest, testing::Values(Compute::kExact, Compute::kFast),
                         [](const auto& compute) {
                           return compute.param == Compute::kExact ? "Exact" : "Fast";
                         });

// Logits of all tokens of a prompt in slices of so many tokens.
std::vector<float> logits_in_slices(Model& model, ThreadTeam& team, kv::Format format,
                                    size_t slice_tokens) {
  auto session = Session::create(model, team, {.tokens_max = kTokens, .kv_format = format});
  EXPECT_TRUE(session) << session.error().message;
  const std::vector<int32_t> tokens = some_tokens();
  std::vector<float> all(tokens.size() * static_cast<size_t>(model.spec().vocab_size));
  session->begin(0, kTokens);
  for (size_t done = 0; done < tokens.size();) {
    const size_t count = std::min(slice_tokens, tokens.size() - done);
    const Session::Slice slice = {.tokens = std::span(tokens).subspan(done, count),
                                  .all_logits = true};
    session->forward({&slice, 1}, [&](size_t, size_t token, std::span<float> logits) {
      std::ranges::copy(logits,
                        all.begin() + static_cast<ptrdiff_t>((done + token) * logits.size()));
    });
    done += count;
  }
  return all;
}

// A block becomes codes when it is complete, in whatever slice that is, and the rows after it read
// codes from then on, also in that slice.
TEST(CompressedKeys, LogitsAreTheSameHoweverAPromptIsCut) {
  ThreadTeam team(2);
  const auto model = load_default(team, Compute::kFast, kernels::detect_isa());
  ASSERT_NE(model, nullptr);
  for (const kv::Format format : {kv::Format::kInt8, kv::Format::kTq4, kv::Format::kTq3}) {
    const std::vector<float> whole = logits_in_slices(*model, team, format, kTokens);
    for (const size_t slice : {1, 7, 32, 45})
      EXPECT_EQ(logits_in_slices(*model, team, format, slice), whole)
          << format.name() << " in slices of " << slice;
    EXPECT_NE(whole, logits_in_slices(*model, team, kv::Format::kF16, kTokens)) << format.name();
  }
}

TEST(DefaultModel, GivesTheRecordedGreedyAnswer) {
  const auto text = read_file(WEIR_SOURCE_DIR "/models/weir-tiny-moe/expected.json", 1 << 20);
  ASSERT_TRUE(text) << text.error().message;
  const auto doc = JsonDoc::parse(*text);
  ASSERT_TRUE(doc) << doc.error().message;
  const JsonValue recorded = doc->root()["cases"].at(0).value();
  const auto ids = [&](const char* key) {
    std::vector<int32_t> out;
    for (const int64_t id : recorded[key].get_array()) out.push_back(static_cast<int32_t>(id));
    return out;
  };
  std::vector<int32_t> next = ids("prompt_ids"), answer;
  const std::vector<int32_t> expected = ids("greedy_ids");
  ASSERT_GE(expected.size(), 8u);

  ThreadTeam team(1);
  const auto model = load_default(team, Compute::kExact, kernels::detect_isa());
  ASSERT_NE(model, nullptr);
  auto session = Session::create(*model, team, {.kv_format = kernels::FloatType::kF32});
  ASSERT_TRUE(session) << session.error().message;
  while (answer.size() < expected.size()) {
    const Session::Slice slice = {0, next};
    int32_t token = 0;
    session->forward({&slice, 1}, [&](size_t, size_t, std::span<float> logits) {
      token = static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
    });
    answer.push_back(token);
    next = {token};
  }
  EXPECT_EQ(answer, expected);
}

}  // namespace
}  // namespace weir::model
