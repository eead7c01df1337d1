// Drafts beside what else a server does, with a real model: answers with adapters and without, and
// embeddings in the same steps. All of them get to the last bit what each gets alone without drafts.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "card/adapter_files.h"
#include "card/default_model.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/decoder.h"
#include "sched/exactness_world.h"
#include "sched/made_up_drafts.h"

namespace weir::sched {
namespace {

constexpr int32_t kRank = 5;  // No multiple of what kernels take at once.
constexpr int64_t kBytesMax = int64_t{64} << 20;

std::unique_ptr<model::Model> load() {
  ThreadTeam team(2);
  Result<std::unique_ptr<model::Model>> model = model::Model::load(
      *card::ModelCard::open(card::default_model()),
      {.rows_max = 256, .draft_rows_max = 128, .context_max = 1024, .adapter_rank = kRank},
      kernels::ops_for(kernels::detect_isa()), team);
  EXPECT_TRUE(model) << model.error().message;
  return std::move(*model);
}

// Of all matrices of attention.
std::shared_ptr<const model::Adapter> make_adapter(const model::Model& model, uint32_t seed) {
  card::AdapterFiles files(seed);
  for (const model::BoundModule& module : dynamic_cast<const model::Decoder&>(model).modules())
    if (module.path.find("self_attn") != std::string::npos)
      files.low_rank(module.path, module.rows[0], module.k, kRank);
  const std::string bytes = files.bytes();
  const auto card = card::read_adapter(card::AdapterFiles::config(kRank, 2 * kRank), bytes);
  EXPECT_TRUE(card) << card.error().message;
  const auto bound = model.bind_adapter(*card, kBytesMax);
  EXPECT_TRUE(bound) << bound.error().message;
  return *bound;
}

// Embeddings of prompts of 1 to 170 tokens.
Requests make_embeddings(const model::Model& model) {
  std::mt19937 rng(20261126);
  constexpr Pooling kWays[] = {Pooling::kLast, Pooling::kMean, Pooling::kCls};
  Requests requests;
  for (uint64_t i = 0; i < 24; ++i) {
    std::vector<int32_t> prompt(1 + rng() % 170);
    for (int32_t& token : prompt)
      token = static_cast<int32_t>(rng() % static_cast<uint32_t>(model.spec().vocab_size));
    sample::SamplingParams greedy;
    greedy.temperature = 0;
    requests.push_back(std::make_unique<Request>(std::move(prompt), greedy, 0, false));
    requests.back()->arrived = Clock::now();
    requests.back()->id = 1000 + i;
    requests.back()->pooling = kWays[i % 3];
    requests.back()->pooled.assign(static_cast<size_t>(model.spec().hidden_size), -77);
  }
  return requests;
}

TEST(DraftsBeside, AdaptersAndEmbeddingsChangeNoBit) {
  std::unique_ptr<model::Model> model = load();
  const std::shared_ptr<const model::Adapter> adapters[] = {make_adapter(*model, 1),
                                                            make_adapter(*model, 2)};
  ExactnessWorld world(std::move(model), kernels::ops_for(kernels::detect_isa()), 2, {}, {},
                       [&](Request& request) {
                         if (request.id % 3 == 0) return;
                         request.adapter = adapters[request.id % 3 - 1];
                         request.adapter_key = request.id % 3;
                       });
  const std::vector<std::vector<int32_t>> answers = world.answers();
  const Requests embeddings = make_embeddings(world.model());
  (void)world.run(world.options(1024, /*prefix_cache=*/false), 0, {}, embeddings);

  for (const int32_t page_count : {1024, 24}) {
    SCOPED_TRACE(std::to_string(page_count) + " pages");
    MadeUpDrafts drafts(
        MadeUpDrafts::Way::kRandom, world.model().spec().vocab_size,
        [&](const Request& request) -> const std::vector<int32_t>& { return answers[request.id]; },
        [](const Request& request) { return static_cast<int32_t>(request.id % 8); });
    RunnerOptions options = world.options(page_count, /*prefix_cache=*/true);
    options.engine.speculation = {.sources = {&drafts}, .drafts_max = 7, .measured = false};
    const Requests beside = make_embeddings(world.model());
    world.expect_equal(world.run(options, 0, {}, beside));
    EXPECT_GT(world.drafts_right(), 50u);
    EXPECT_EQ(drafts.wrong_pending() + drafts.wrong_positions(), 0);
    EXPECT_EQ(world.preemptions() > 0, page_count == 24);
    for (size_t i = 0; i < beside.size(); ++i)
      EXPECT_EQ(beside[i]->pooled, embeddings[i]->pooled) << "embedding " << i;
  }
}

// That the adapters of the test above do something.
TEST(DraftsBeside, AdaptersChangeAnswers) {
  std::unique_ptr<model::Model> model = load();
  const std::shared_ptr<const model::Adapter> adapter = make_adapter(*model, 1);
  ExactnessWorld world(std::move(model), kernels::ops_for(kernels::detect_isa()), 2,
                       {.count = 8});
  const Requests with = world.run(world.options(1024, false), 0, [&](Request& request) {
    request.adapter = adapter;
    request.adapter_key = 1;
  });
  const std::vector<std::vector<int32_t>> answers = world.answers();
  int32_t changed = 0;
  for (size_t i = 0; i < with.size(); ++i)
    for (int32_t t = 0; t < with[i]->log.size(); ++t)
      changed += static_cast<size_t>(t) >= answers[i].size() ||
                 with[i]->log[t].token != answers[i][static_cast<size_t>(t)];
  EXPECT_GT(changed, 20);
}

}  // namespace
}  // namespace weir::sched
