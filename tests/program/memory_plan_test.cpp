#include "memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "api/memory_cost.h"

namespace weir {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

ModelFootprint small_model() {
  return {.packed_weights = 90 * kMiB,
          .mapped_weights = 10 * kMiB,
          .scratch = 40 * kMiB,
          .page_bytes = 720 << 10,
          .context_max = 8192};
}

TEST(MemoryPlan, TheTotalIsTheSumOfItsLinesAndWithinTheLimit) {
  for (const int64_t limit_mib : {600, 1000, 5000, 100000}) {
    const auto plan = plan_memory({}, {limit_mib * kMiB, "test"}, small_model());
    ASSERT_TRUE(plan) << plan.error().message;
    int64_t sum = 0;
    for (const MemoryPlan::Line& line : plan->lines) sum += line.bytes;
    EXPECT_EQ(sum, plan->total);
    EXPECT_LE(plan->total, plan->limit);
    EXPECT_GE(plan->kv_pages * 32, plan->context_max) << "one full sequence must fit";
    EXPECT_GE(plan->parallel, 1);
  }
}

TEST(MemoryPlan, RefusesWhatDoesNotFitAndNamesTheRemedy) {
  const auto plan = plan_memory({}, {300 * kMiB, "--mem-limit"}, small_model());
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("--ctx-size"), std::string::npos);
  // A MiB of difference shows, however large the numbers.
  const auto least = [](int64_t mib) { return plan_memory({}, {mib * kMiB, "x"}, small_model()); };
  int64_t enough = 300;
  while (!least(enough)) ++enough;
  const std::string nearly = least(enough - 1).error().message;
  EXPECT_NE(nearly.find("iB more than the"), std::string::npos) << nearly;
  EXPECT_EQ(nearly.find(" 0 KiB more"), std::string::npos) << nearly;
  Options shorter;
  shorter.ctx_size = 512;
  EXPECT_TRUE(plan_memory(shorter, {400 * kMiB, "--mem-limit"}, small_model()));
}

TEST(MemoryPlan, HonoursWhatTheUserAsksFor) {
  Options options;
  options.kv_memory = 512 * kMiB;
  options.parallel = 7;
  const auto plan = plan_memory(options, {100000 * kMiB, "test"}, small_model());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->parallel, 7);
  EXPECT_EQ(plan->kv_pages, 512 * kMiB / (720 << 10));
  options.kv_memory = 16 * kMiB;
  const auto little = plan_memory(options, {100000 * kMiB, "test"}, small_model());
  ASSERT_FALSE(little);
  EXPECT_EQ(little.error().message.find("--kv-memory: expected at least 180 MiB"), 0u)
      << little.error().message;
  options.ctx_size = 10000;
  EXPECT_FALSE(plan_memory(options, {100000 * kMiB, "test"}, small_model()))
      << "longer than the model was made for";
}

TEST(MemoryPlan, PlansFewerConnectionsWithTls) {
  const auto planned = [](const Options& options) {
    const auto plan = plan_memory(options, {5000 * kMiB, "test"}, small_model());
    for (const MemoryPlan::Line& line : plan.value().lines)
      if (line.what == "connections") return line;
    return MemoryPlan::Line{};
  };
  Options plain, tls;
  tls.tls_cert = tls.tls_key = "file";
  EXPECT_EQ(plan_connections(plain), 16384);
  EXPECT_EQ(plan_connections(tls), 2048);  // As --help says.
  EXPECT_EQ(planned(plain).bytes, 32 * kMiB);
  EXPECT_EQ(planned(tls).bytes, 40 * kMiB);
  plain.max_connections = tls.max_connections = 100;
  EXPECT_EQ(planned(tls).note, "100 at most");
  EXPECT_GT(planned(tls).bytes, planned(plain).bytes);
}

TEST(MemoryPlan, CountsGrammarsAndTheVocabularysTries) {
  const auto planned = [](int64_t limit, int32_t vocab_size) {
    ModelFootprint model = small_model();
    model.vocab_size = vocab_size;
    auto plan = plan_memory({}, {limit, "test"}, model);
    const auto line = std::ranges::find(plan.value().lines, "grammars", &MemoryPlan::Line::what);
    EXPECT_NE(line, plan->lines.end());
    EXPECT_EQ(line->bytes,
              plan->automata_bytes + static_cast<int64_t>(api::trie_bytes(vocab_size)));
    return std::pair(plan->automata_bytes, line->bytes);
  };
  EXPECT_EQ(planned(640 * kMiB, 0), std::pair(10 * kMiB, 10 * kMiB));
  EXPECT_EQ(planned(640 * kMiB, 1 << 16), std::pair(10 * kMiB, 42 * kMiB));
  EXPECT_EQ(planned(100'000 * kMiB, 1 << 18), std::pair(64 * kMiB, 192 * kMiB));
}

TEST(MemoryPlan, LeavesHalfOfAStepToPrompts) {
  Options options;
  options.parallel = options.prefill_size = 64;
  const auto plan = plan_memory(options, {100000 * kMiB, "test"}, small_model());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->parallel, 32);
}

TEST(MemoryPlan, HoldsOneRequestOfTheWholeContextHoweverShortTheQueue) {
  Options options;
  options.queue = 1;
  const auto plan = plan_memory(options, {1000 * kMiB, "test"}, small_model());
  ASSERT_TRUE(plan);
  EXPECT_GE(plan->request_bytes, int64_t{8192} * 21 * 8);
  // A prompt's token costs less than one of the answer.
  EXPECT_GE(plan->request_bytes, static_cast<int64_t>(api::request_bytes(8191, 1, 20)));
}

TEST(MemoryPlan, GivesBodiesANinthUnlessToldTheirSize) {
  const BodyPlan small = plan_bodies({}, {500 * kMiB, "test"});
  EXPECT_EQ(small.largest, 5 * kMiB);
  EXPECT_LE(small.arriving + small.preparing, 56 * kMiB);
  const BodyPlan large = plan_bodies({}, {64'000 * kMiB, "test"});
  EXPECT_EQ(large.largest, 32 * kMiB);
  // Whatever the size, one body fits, and the plan has room for all.
  for (const int64_t mib : {1, 32, 300, 1024}) {
    Options options;
    options.max_body = mib * kMiB;
    const auto plan = plan_memory(options, {100'000 * kMiB, "test"}, small_model());
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->bodies.largest, mib * kMiB);
    EXPECT_GE(plan->bodies.arriving, 2 * mib * kMiB);
    EXPECT_GE(plan->bodies.preparing,
              static_cast<int64_t>(api::preparing_bytes(std::string(1 << 20, 'x'))) * mib);
    const auto line = std::ranges::find(plan->lines, "bodies", &MemoryPlan::Line::what);
    ASSERT_NE(line, plan->lines.end());
    EXPECT_EQ(line->bytes, plan->bodies.arriving + plan->bodies.preparing);
  }
}

TEST(MemoryPlan, GivesExpertsWhatTheyAreToldOrWhatIsLeft) {
  ModelFootprint model = small_model();
  model.experts = 20000 * kMiB;
  Options options;
  options.stream_experts = true;
  const auto left = plan_memory(options, {6000 * kMiB, "test"}, model);
  ASSERT_TRUE(left) << left.error().message;
  EXPECT_EQ(left->total, left->limit);
  EXPECT_GT(left->expert_bytes, 4000 * kMiB) << "the KV cache takes no half of it";
  options.expert_memory = 1000 * kMiB;
  const auto told = plan_memory(options, {6000 * kMiB, "test"}, model);
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->expert_bytes, 1000 * kMiB);
  EXPECT_LE(told->total, told->limit);
  options.expert_memory = 9000 * kMiB;
  const auto much = plan_memory(options, {6000 * kMiB, "test"}, model);
  ASSERT_FALSE(much);
  EXPECT_NE(much.error().message.find("--expert-memory"), std::string::npos)
      << much.error().message;
  // Never more than there are.
  model.experts = 50 * kMiB;
  options.expert_memory = 0;
  const auto all = plan_memory(options, {6000 * kMiB, "test"}, model);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->expert_bytes, 50 * kMiB);
}

TEST(HumanBytes, PicksAUnit) {
  EXPECT_EQ(human_bytes(512 << 10), "512 KiB");
  EXPECT_EQ(human_bytes(17 * kMiB), "17 MiB");
  EXPECT_EQ(human_bytes(3 * 512 * kMiB), "1.5 GiB");
}

}  // namespace
}  // namespace weir
