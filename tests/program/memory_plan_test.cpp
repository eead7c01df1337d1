#include "program/memory_plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "api/memory/memory_cost.h"
#include "base/byte_size.h"
#include "base/fair_budget.h"
#include "card/default_model.h"
#include "card/model_card.h"
#include "exec/cpu_executor.h"
#include "kernels/cpu_ops.h"

namespace weir {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

ModelFootprint small_model() {
  return {.packed_weights = 100 * kMiB,
          .scratch = 40 * kMiB,
          .kv_groups = {{.page_bytes = 720 << 10}},
          .context_max = 8192};
}

TEST(MemoryPlan, TheTotalIsTheSumOfItsLinesAndWithinTheLimit) {
  for (const int64_t limit_mib : {600, 1000, 5000, 100000}) {
    const auto plan = plan_memory({}, {limit_mib * kMiB, "test"}, small_model());
    ASSERT_TRUE(plan) << plan.error().message;
    int64_t sum = 0, taken = 0;
    for (const MemoryLine& line : plan->lines) {
      sum += line.bytes;
      taken += line.taken;
      EXPECT_LE(line.taken, line.bytes) << line.what;
    }
    EXPECT_EQ(sum, plan->total);
    EXPECT_EQ(taken, plan->taken);
    EXPECT_LT(taken, 200 * kMiB) << "the weights and the program: all else comes as it is used";
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

// The same as `weir info` says of checkpoints of these shapes (tests/e2e/sparse_model.py).
struct KnownModel {
  const char* name;
  ModelFootprint model;
  int64_t limit;
  int32_t context_least;
};
constexpr int64_t kGiB = int64_t{1} << 30;
const KnownModel kKnownModels[] = {
    {.name = "Llama-3.1-8B, 4-bit, 24 GB",
     .model = {.packed_weights = 4'517'400'000,
               .scratch = 96 * kMiB,
               .kv_groups = {{.page_bytes = 4 * kMiB}},
               .context_max = 131072,
               .vocab_size = 128256},
     .limit = 24'000'000'000,
     .context_least = 65536},
    {.name = "Qwen3-8B, 4-bit, 7 GB",
     .model = {.packed_weights = 4'607'800'000,
               .scratch = 100 * kMiB,
               .kv_groups = {{.page_bytes = 4608 << 10}},
               .context_max = 40960,
               .vocab_size = 151936},
     .limit = 7'000'000'000,
     .context_least = 4096},
    {.name = "DeepSeek-R1-Distill-Qwen-1.5B, bf16, 16 GiB",
     .model = {.packed_weights = 3'553'600'000 + kMiB,
               .scratch = 98 * kMiB,
               .kv_groups = {{.page_bytes = 896 << 10}},
               .context_max = 131072,
               .vocab_size = 151936},
     .limit = 16 * kGiB,
     .context_least = 131072},
};

TEST(MemoryPlan, TheContextOfWellKnownModelsFitsItself) {
  for (const KnownModel& known : kKnownModels) {
    SCOPED_TRACE(known.name);
    const MemoryLimit limit{known.limit / 10 * 9, "test"};
    const auto plan = plan_memory({}, limit, known.model);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_GE(plan->context_max, known.context_least);
    EXPECT_LE(plan->total, plan->limit);
    EXPECT_GE(plan->kv_pages * 32, plan->context_max);
    const std::string note = context_note(*plan);
    EXPECT_EQ(note.empty(), plan->context_max == known.model.context_max) << note;
    if (note.empty()) continue;
    EXPECT_NE(note.find(std::to_string(plan->context_max)), std::string::npos) << note;
    // It is the longest: a page more does not fit, and is refused with the longest that does.
    Options options;
    options.ctx_size = plan->context_max;
    EXPECT_TRUE(plan_memory(options, limit, known.model));
    options.ctx_size = plan->context_max + 1;
    const auto more = plan_memory(options, limit, known.model);
    ASSERT_FALSE(more);
    EXPECT_NE(more.error().message.find("--ctx-size " + std::to_string(plan->context_max) +
                                        " is the largest that fits"),
              std::string::npos)
        << more.error().message;
    // With as much more as it says all of the context fits; a percent less is too little.
    const auto with = [&](int64_t lacks) {
      const auto whole = plan_memory({}, {limit.bytes + lacks, "test"}, known.model);
      return whole ? whole->context_max : 0;
    };
    // Bodies, responses and grammars grow with the limit, and they do by a ninth of it.
    EXPECT_EQ(with(plan->context_lacks / 8 * 9 + 64 * kMiB), known.model.context_max);
    EXPECT_LT(with(plan->context_lacks / 100 * 99), known.model.context_max);
  }
}

TEST(MemoryPlan, AContextThatDoesNotFitIsTheLongestThatDoesAndAtLeastFourThousand) {
  int32_t before = 0;
  for (int64_t mib = 350; mib < 700; mib += 7) {
    const auto plan = plan_memory({}, {mib * kMiB, "test"}, small_model());
    if (!plan) {
      EXPECT_EQ(before, 0) << "more memory is never less context";
      EXPECT_NE(plan.error().message.find("of 4096 tokens"), std::string::npos)
          << plan.error().message;
      continue;
    }
    EXPECT_GE(plan->context_max, std::max(before, 4096));
    before = plan->context_max;
  }
  EXPECT_EQ(before, 8192);
  // A model of less keeps its own.
  ModelFootprint shorter = small_model();
  shorter.context_max = 1000;
  const auto plan = plan_memory({}, {450 * kMiB, "test"}, shorter);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->context_max, 1000);
}

TEST(MemoryPlan, TheContextFitsIntoTheMemoryThatKeysAndValuesMayTake) {
  Options options;
  options.kv_memory = 100 * kMiB;
  const auto plan = plan_memory(options, {100000 * kMiB, "test"}, small_model());
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->context_max, 142 * 32);
  // The option is in the way, not the memory: what the note says is what helps.
  EXPECT_EQ(context_note(*plan),
            "context of 4544 of the model's 8192 tokens: --kv-memory 181M would hold all");
  options.kv_memory = 181 * kMiB;
  const auto whole = plan_memory(options, {100000 * kMiB, "test"}, small_model());
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->context_max, 8192);
  EXPECT_EQ(context_note(*whole), "");
  // Both are: then more memory is needed, too.
  options.kv_memory = 94 * kMiB;
  const auto both = plan_memory(options, {500 * kMiB, "test"}, small_model());
  ASSERT_TRUE(both) << both.error().message;
  const std::string note = context_note(*both);
  EXPECT_NE(note.find("--kv-memory 181M and "), std::string::npos) << note;
  EXPECT_NE(note.find("iB more memory would hold all"), std::string::npos) << note;
  options.kv_memory = 200'000 * kMiB;
  const auto much = plan_memory(options, {100000 * kMiB, "test"}, small_model());
  ASSERT_FALSE(much);
  EXPECT_NE(much.error().message.find("a smaller --kv-memory helps"), std::string::npos);
}

TEST(MemoryPlan, GivesTheContextAllThatKeysAndValuesAreToldToHaveBesideExperts) {
  ModelFootprint model = small_model();
  model.experts = 20000 * kMiB;
  Options options;
  options.stream_experts = true;
  options.kv_memory = 181 * kMiB;
  const auto plan = plan_memory(options, {6000 * kMiB, "test"}, model);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->context_max, 8192) << context_note(*plan);
}

// Nothing is put aside for keys and values: they may take all that is left, and give it back.
TEST(MemoryPlan, KeysAndValuesMayTakeWhatIsLeft) {
  const auto plan = plan_memory({}, {5000 * kMiB, "test"}, small_model());
  ASSERT_TRUE(plan);
  EXPECT_GT(plan->total, plan->limit - 2 * kMiB);
  const auto large = plan_memory({}, {100'000 * kMiB, "test"}, small_model());
  ASSERT_TRUE(large);
  EXPECT_LE(large->kv_pages, 64 * 256) << "more than 64 whole contexts are of no use";
}

TEST(MemoryPlan, ExpertsKeepHalfOfWhatAContextThatFitsItselfLeaves) {
  ModelFootprint model = small_model();
  model.experts = 20000 * kMiB;
  model.context_max = 1 << 20;
  Options options;
  options.stream_experts = true;
  const auto plan = plan_memory(options, {6000 * kMiB, "test"}, model);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_GT(plan->context_max, 50'000);
  EXPECT_GT(plan->expert_bytes, 2400 * kMiB);
  EXPECT_FALSE(context_note(*plan).empty());
  options.ctx_size = 2 * plan->context_max - 10'000;  // Who insists gets it.
  EXPECT_TRUE(plan_memory(options, {6000 * kMiB, "test"}, model));
}

TEST(MemoryPlan, HonoursWhatTheUserAsksFor) {
  Options options;
  options.kv_memory = 512 * kMiB;
  options.parallel = 7;
  const auto plan = plan_memory(options, {100000 * kMiB, "test"}, small_model());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->parallel, 7);
  EXPECT_EQ(plan->kv_pages, 512 * kMiB / ((720 << 10) + 256)) << "with what is kept of a page";
  options.kv_memory = 16 * kMiB;
  const auto little = plan_memory(options, {100000 * kMiB, "test"}, small_model());
  ASSERT_FALSE(little);
  EXPECT_EQ(little.error().message.find("--kv-memory: expected at least 90 MiB"), 0u)
      << little.error().message << " (4,096 tokens)";
  options.ctx_size = 10000;
  EXPECT_FALSE(plan_memory(options, {100000 * kMiB, "test"}, small_model()))
      << "longer than the model was made for";
}

TEST(MemoryPlan, PlansFewerConnectionsWithTls) {
  const auto planned = [](const Options& options) {
    const auto plan = plan_memory(options, {5000 * kMiB, "test"}, small_model());
    for (const MemoryLine& line : plan.value().lines)
      if (line.what == "connections") return line;
    return MemoryLine{};
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
    const auto line = std::ranges::find(plan.value().lines, "grammars", &MemoryLine::what);
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

TEST(MemoryPlan, HoldsAsManyEmbeddingsAsOpenAiAllowsHoweverShortTheQueue) {
  Options options;
  options.queue = 1;
  ModelFootprint model = small_model();
  model.hidden_size = 4096;
  const auto plan = plan_memory(options, {1000 * kMiB, "test"}, model);
  ASSERT_TRUE(plan);
  EXPECT_GE(FairBudget::most_of_one(static_cast<size_t>(plan->request_bytes)),
            size_t{2048} * 4096 * sizeof(float) + size_t{2048} * 147 * sizeof(int32_t));
}

TEST(MemoryLimit, IsWhatMayBeReservedWhereNothingIsOvercommitted) {
  const std::string root = testing::TempDir() + "weir_memory_limit_" + std::to_string(::getpid());
  const MeminfoFiles files{root + "meminfo", root + "overcommit"};
  std::ofstream(files.meminfo) << "MemAvailable: 30000 kB\nCommitLimit: 40000 kB\n"
                                  "Committed_AS: 20000 kB\n";
  std::ofstream(files.overcommit) << "0\n";
  EXPECT_EQ(memory_limit({}, files).from, "MemAvailable");
  EXPECT_EQ(memory_limit({}, files).bytes, 27000 << 10);
  std::ofstream(files.overcommit) << "2\n";
  EXPECT_EQ(memory_limit({}, files).from, "CommitLimit");
  EXPECT_EQ(memory_limit({}, files).bytes, 18000 << 10);
  Options options;
  options.mem_limit = 50'000 << 10;
  EXPECT_EQ(memory_limit(options, files).from, "--mem-limit");
  std::remove(files.meminfo.c_str());
  std::remove(files.overcommit.c_str());
}

// Five of six layers see 1,024 tokens.
ModelFootprint model_with_windows() {
  ModelFootprint model = small_model();
  model.context_max = 131072;
  model.kv_groups = {{.page_bytes = 120 << 10}, {.window = 1024, .page_bytes = 600 << 10}};
  return model;
}

TEST(MemoryPlan, WindowsLeaveTheirMemoryToLongerContexts) {
  ModelFootprint whole = model_with_windows();
  whole.kv_groups = {{.page_bytes = 720 << 10}};
  for (const int64_t limit_mib : {1000, 2000, 8000, 60000}) {
    const MemoryLimit limit{limit_mib * kMiB, "test"};
    const auto plan = plan_memory({}, limit, model_with_windows());
    const auto before = plan_memory({}, limit, whole);
    ASSERT_TRUE(plan && before);
    EXPECT_LE(plan->total, plan->limit);
    EXPECT_GE(plan->kv_pages * 32, plan->context_max);
    EXPECT_GE(plan->parallel, 1);
    ASSERT_EQ(plan->kv_page_counts.size(), 2u);
    EXPECT_EQ(plan->kv_page_counts[0], plan->kv_pages);
    EXPECT_LE(plan->kv_page_counts[1], plan->kv_pages);
    const auto line = std::ranges::find(plan->lines, "KV windows", &MemoryLine::what);
    ASSERT_NE(line, plan->lines.end());
    EXPECT_GE(line->bytes, plan->kv_page_counts[1] * (int64_t{600} << 10));
    EXPECT_GE(plan->context_max, before->context_max);
    EXPECT_GE(plan->context_max, std::min(131072, 2 * before->context_max));
    EXPECT_GT(plan->kv_pages, std::min(64 * 4096 - 1, before->kv_pages * 3 / 2));
    EXPECT_GE(plan->parallel, std::min(8, before->parallel));
  }
}

// Each sequence has windows of its own: so many as are asked for have theirs.
TEST(MemoryPlan, AsManySequencesAsAskedForHaveTheirWindows) {
  Options options;
  options.parallel = 40;
  const auto plan = plan_memory(options, {20000 * kMiB, "test"}, model_with_windows());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->parallel, 40);
  EXPECT_GE(plan->kv_page_counts[1], std::min(plan->kv_pages, 40 * (1024 / 32 + 2)));
}

// Each running sequence has a state: fewer run where a whole context would not fit beside them.
TEST(MemoryPlan, StatesOfRunningSequencesAreALineOfThePlan) {
  ModelFootprint model = small_model();
  model.context_max = 131072;
  model.kv_groups = {{.page_bytes = 120 << 10}};
  const auto without = plan_memory({}, {4000 * kMiB, "test"}, model);
  model.state_bytes = 70 * kMiB;
  const auto plan = plan_memory({}, {4000 * kMiB, "test"}, model);
  ASSERT_TRUE(plan && without);
  const auto line = std::ranges::find(plan->lines, "states", &MemoryLine::what);
  ASSERT_NE(line, plan->lines.end());
  EXPECT_EQ(line->bytes, plan->parallel * 70 * kMiB);
  EXPECT_LE(plan->total, plan->limit);
  EXPECT_LT(plan->parallel, without->parallel);
  EXPECT_GE(plan->parallel, 8);
  EXPECT_GE(plan->kv_pages * 32, plan->context_max);
  EXPECT_EQ(std::ranges::count(without->lines, "states", &MemoryLine::what), 0);

  Options many;
  many.parallel = 100;
  const auto refused = plan_memory(many, {4000 * kMiB, "test"}, model);
  EXPECT_FALSE(refused) << "states of 100 sequences take more than there is";
}

// So has each the keys and values of a sound, of which one more is in the making.
TEST(MemoryPlan, SoundsOfRunningSequencesAreALineOfThePlan) {
  ModelFootprint model = small_model();
  model.cross_bytes = 55 * kMiB;
  model.encoded_bytes = 5 * kMiB;
  const auto plan = plan_memory({}, {4000 * kMiB, "test"}, model);
  ASSERT_TRUE(plan) << plan.error().message;
  const auto bytes_of = [&](const char* what) {
    const auto line = std::ranges::find(plan->lines, what, &MemoryLine::what);
    return line == plan->lines.end() ? -1 : line->bytes;
  };
  EXPECT_EQ(bytes_of("sounds heard"), plan->parallel * 55 * kMiB);
  EXPECT_EQ(bytes_of("sound in the making"), 60 * kMiB);
  EXPECT_EQ(plan->cross_slots, plan->parallel + 1);
  EXPECT_LE(plan->total, plan->limit);
  EXPECT_GE(plan->parallel, 8);
  Options many;
  many.parallel = 100;
  EXPECT_FALSE(plan_memory(many, {4000 * kMiB, "test"}, model));
  model.cross_bytes = 0;
  EXPECT_EQ(plan_memory({}, {4000 * kMiB, "test"}, model)->cross_slots, 0);
}

// A quarter of what keys, values and states have, if a whole context is left beside them, and no
// more than texts can have.
TEST(MemoryPlan, CheckpointsOfStatesAreALineOfThePlan) {
  ModelFootprint model = small_model();
  model.context_max = 131072;
  model.kv_groups = {{.page_bytes = 120 << 10}};
  model.state_bytes = 70 * kMiB;
  const auto checkpoints_line = [](const MemoryPlan& plan) {
    const auto line = std::ranges::find(plan.lines, "checkpoints", &MemoryLine::what);
    return line == plan.lines.end() ? 0 : line->bytes;
  };
  for (const int64_t mib : {2000, 4000, 20'000, 400'000}) {
    const auto plan = plan_memory({}, {mib * kMiB, "test"}, model);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_LE(plan->total, plan->limit);
    EXPECT_GE(plan->kv_pages * 32, plan->context_max);
    EXPECT_EQ(checkpoints_line(*plan), plan->checkpoints * 70 * kMiB);
    int64_t all = 0;
    for (const MemoryLine& line : plan->lines)
      if (line.what == "KV cache" || line.what == "states" || line.what == "checkpoints")
        all += line.bytes;
    EXPECT_LE(plan->checkpoints * 70 * kMiB, (mib < 400'000 ? all : mib * kMiB) / 4 + 70 * kMiB);
    EXPECT_GE(plan->checkpoints, mib >= 20'000 ? mib / 300 / 2 : 0);
    EXPECT_LE(plan->checkpoints, plan->kv_pages / 16 + 4 * plan->parallel);

    Options without;
    without.prefix_cache = false;
    const auto plain = plan_memory(without, {mib * kMiB, "test"}, model);
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->checkpoints, 0);
    EXPECT_EQ(checkpoints_line(*plain), 0);
    EXPECT_EQ(plain->context_max, plan->context_max);
  }
  model.state_bytes = 0;
  EXPECT_EQ(plan_memory({}, {4000 * kMiB, "test"}, model)->checkpoints, 0);
}

TEST(MemoryPlan, ACacheThatTheSystemRefusesNamesTheOption) {
  // 2 MiB a page, 4 PiB in all: more than there are addresses.
  const kernels::Ops& ops = kernels::ops_for(kernels::Isa::kScalar);
  ThreadTeam team(1);
  const auto model =
      model::Model::bind(*card::ModelCard::open(card::default_model()), {}, ops, team.members());
  ASSERT_TRUE(model) << model.error().message;
  exec::CpuExecutor executor(**model, ops, team);
  const auto allocate = [&](const kv::PagedNeed& need, int32_t pages) {
    MemoryPlan plan;
    plan.kv_page_counts = {pages};
    plan.parallel = 1;
    return take_kv(executor, *kv::MemoryLayout::make({need}, kernels::FloatType::kF16), plan);
  };
  const auto cache = allocate({64, 256, 256}, std::numeric_limits<int32_t>::max());
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().code, ErrorCode::kCapacity);
  EXPECT_NE(cache.error().message.find("a smaller --kv-memory helps"), std::string::npos)
      << cache.error().message;
  EXPECT_TRUE(allocate({2, 64, 64}, 4));
}

TEST(MemoryPlan, GivesBodiesASeventhUnlessToldTheirSize) {
  const BodyPlan small = plan_bodies({}, {500 * kMiB, "test"});
  EXPECT_EQ(small.largest, 5 * kMiB);
  EXPECT_LE(small.arriving + small.small + small.preparing, 500 * kMiB / 7);
  const BodyPlan large = plan_bodies({}, {64'000 * kMiB, "test"});
  EXPECT_EQ(large.largest, 32 * kMiB);
  // Whatever the size, one body fits, and the plan has room for all.
  for (const int64_t mib : {1, 32, 300, 1024}) {
    Options options;
    options.max_body = mib * kMiB;
    const auto plan = plan_memory(options, {100'000 * kMiB, "test"}, small_model());
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->bodies.largest, mib * kMiB);
    // One beside as much of others, and small ones beside all.
    FairBudget arriving(static_cast<size_t>(plan->bodies.arriving));
    EXPECT_TRUE(arriving.take(1, static_cast<size_t>(plan->bodies.largest)));
    EXPECT_TRUE(arriving.take(2, static_cast<size_t>(plan->bodies.largest) / 2));
    EXPECT_TRUE(arriving.take(2, static_cast<size_t>(plan->bodies.largest) / 2));
    EXPECT_GE(plan->bodies.small, kMiB);
    EXPECT_GE(plan->bodies.preparing,
              static_cast<int64_t>(api::preparing_bytes(std::string(1 << 20, 'x'))) * mib);
    const auto line = std::ranges::find(plan->lines, "bodies", &MemoryLine::what);
    ASSERT_NE(line, plan->lines.end());
    EXPECT_EQ(line->bytes, plan->bodies.arriving + plan->bodies.small + plan->bodies.preparing);
  }
}

TEST(MemoryPlan, CountsHeadsAndAnswersOfAllConnections) {
  const auto bytes_of = [](const MemoryPlan& plan, std::string_view what) {
    const auto line = std::ranges::find(plan.lines, what, &MemoryLine::what);
    return line == plan.lines.end() ? 0 : line->bytes;
  };
  for (const int64_t mib : {700, 24'000, 200'000}) {
    Options plain, tls;
    tls.tls_cert = tls.tls_key = "file";
    const MemoryLimit limit{mib * kMiB, "test"};
    const auto plan = plan_memory(plain, limit, small_model());
    const auto with_tls = plan_memory(tls, limit, small_model());
    ASSERT_TRUE(plan && with_tls);
    EXPECT_EQ(bytes_of(*plan, "heads"), plan_heads(plain, limit));
    EXPECT_EQ(bytes_of(*with_tls, "heads"), 2 * plan_heads(plain, limit)) << "handshakes, too";
    EXPECT_EQ(bytes_of(*plan, "answers"), plan_answers(limit));
    EXPECT_LE(plan_heads(plain, limit) + plan_answers(limit), limit.bytes / 20);
    EXPECT_GE(plan_heads(plain, limit), 4 * kMiB);
  }
  Options many;
  many.queue = 100'000;
  EXPECT_GE(plan_heads(many, {700 * kMiB, "test"}), 100'000 * 4096);
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
