// Experts from disk: the bits are those of the resident model, whatever memory there is for
// experts, in whichever order they land, and with faults that a second attempt cures; what cannot
// be cured fails the rows that need it and no others.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "measure/modelled_disk.h"
#include "measure/route_probe.h"
#include "measure/route_trace.h"
#include "measure/routing_table.h"
#include "model/batch_builder.h"
#include "model/expert_pack.h"
#include "model/model.h"
#include "ssd/expert_store.h"

namespace weir::model {
namespace {

constexpr int32_t kSequences = 4, kPagesEach = 4;
const std::string kFolder = WEIR_SOURCE_DIR "/models/weir-tiny-moe";

struct Client final : RowSink {
  void on_rows(int32_t wanted, int32_t, Rows rows, int) override {
    logits[static_cast<size_t>(wanted)].assign(rows.row(0).begin(), rows.row(0).end());
  }
  void on_failed(int32_t slice, const std::string& why) override { failed[slice] = why; }
  std::vector<std::vector<float>> logits;
  std::map<int32_t, std::string> failed;
};

// Four sequences: two prompts of which one begins while the other's tokens are generated, and so
// on: steps that mix both, the same for every model.
class Script {
 public:
  explicit Script(uint64_t seed) : random_(seed) {
    for (int32_t s = 0; s < kSequences; ++s) {
      lengths_.push_back(0);
      prompts_.push_back(5 + static_cast<int32_t>(random_() % 40));
      for (int32_t i = 0; i < kPagesEach; ++i)
        pages_[static_cast<size_t>(s)].push_back(s * kPagesEach + i);
    }
  }
  // Runs `steps` steps and returns the bits of all logits.
  std::vector<std::vector<float>> run(
      Model& model, ThreadTeam& team, int steps, Client& client,
      const std::function<void(int)>& before_step = [](int) {}) {
    auto cache = kv::KvCache::create(model.memory_needs(), kernels::FloatType::kF16,
                                     kSequences * kPagesEach);
    EXPECT_TRUE(cache) << cache.error().message;
    std::vector<std::vector<float>> all;
    for (int step = 0; step < steps; ++step) {
      before_step(step);
      BatchBuilder builder;
      for (const bool generated : {true, false})
        for (int32_t s = 0; s < kSequences; ++s) add(s, step, generated, builder);
      client.logits.assign(builder.wanted().size(), {});
      const Batch batch = builder.batch();
      team.run([&](int member) { model.forward(batch, *cache, client, team, member); });
      all.insert(all.end(), client.logits.begin(), client.logits.end());
      for (const BatchSlice& slice : builder.slices())
        lengths_[static_cast<size_t>(slice.sequence)] += slice.rows;
    }
    return all;
  }

 private:
  void add(int32_t s, int step, bool generated, BatchBuilder& builder) {
    const auto i = static_cast<size_t>(s);
    if (step < s || (lengths_[i] >= prompts_[i]) != generated) return;
    const int32_t rows = generated ? 1 : prompts_[i];
    if (lengths_[i] + rows > kPagesEach * kernels::kPageTokens) return;
    builder.add_slice({.first_position = lengths_[i],
                       .prompt_length = prompts_[i],
                       .memory = {pages_[i].data()},
                       .sequence = s});
    for (int32_t r = 0; r < rows; ++r) builder.add_token(static_cast<int32_t>(random_() % 8000));
    builder.want_next();
  }

  std::mt19937_64 random_;
  std::vector<int32_t> lengths_, prompts_;
  std::array<std::vector<int32_t>, kSequences> pages_;
};

struct Setting {
  uint64_t memory = 2 << 20;
  ssd::PrefetchMode prefetch = ssd::PrefetchMode::kAuto;
  ssd::EarlyReads early_reads = ssd::EarlyReads::kAlways;
  measure::DiskModel disk{};
  std::vector<measure::DiskFault> faults{};
  RouteHook* route_hook = nullptr;
  std::string bundle{};               // Empty: experts come from the checkpoint.
  const kernels::Ops* ops = nullptr;  // Null: the processor's best.
};

class Packed;

// For ever.
measure::DiskFault unreadable(const ssd::StoredRange& range) {
  return {.kind = measure::DiskFault::Kind::kError,
          .begin = range.offset,
          .end = range.offset + range.bytes,
          .times = -1,
          .error = EIO};
}

class Streaming : public testing::Test {
 protected:
  friend class Packed;
  static const kernels::Ops& best_ops() { return kernels::ops_for(kernels::detect_isa()); }
  std::unique_ptr<Model> load(ThreadTeam& team, Compute compute, bool stream,
                              const kernels::Ops& ops = best_ops()) {
    const auto card = card::ModelCard::open_folder(kFolder);
    EXPECT_TRUE(card) << card.error().message;
    const ModelOptions options = {.compute = compute,
                                  .rows_max = 256,
                                  .context_max = 256,
                                  .stream_experts = stream,
                                  .slab_rows = stream ? 200 : 0};
    auto model = Model::load(*card, options, ops, team);
    EXPECT_TRUE(model) << model.error().message;
    return model ? std::move(*model) : nullptr;
  }
  std::unique_ptr<Model> load_streamed(ThreadTeam& team, Compute compute, const Setting& setting) {
    std::unique_ptr<Model> model =
        load(team, compute, true, setting.ops != nullptr ? *setting.ops : best_ops());
    if (!setting.bundle.empty()) {
      const Result<void> used = model->streamed_bank()->use_bundle(setting.bundle);
      EXPECT_TRUE(used) << used.error().message;
    }
    model->streamed_bank()->set_route_hook(setting.route_hook);
    auto disk = std::make_unique<measure::ModelledDisk>(setting.disk);
    for (const measure::DiskFault& fault : setting.faults) disk->add_fault(fault);
    disk_ = disk.get();
    const Result<void> opened =
        model->open_experts(std::move(disk), {.memory = setting.memory,
                                              .sequences_max = kSequences,
                                              .prefetch = setting.prefetch,
                                              .early_reads = setting.early_reads});
    EXPECT_TRUE(opened) << opened.error().message;
    return model;
  }
  void pack(const std::string& path, ThreadTeam& team) {
    const auto model = load(team, Compute::kFast, true);
    StreamedBank& bank = *model->streamed_bank();
    const auto source = bank.source();
    ASSERT_TRUE(source) << source.error().message;
    auto writer = ssd::BundleWriter::create(path, ssd::plan_bundle(bank.catalogue(), *source), 0);
    ASSERT_TRUE(writer) << writer.error().message;
    auto disk = ssd::Disk::create({});
    ASSERT_TRUE(disk) << disk.error().message;
    const Result<void> opened = model->open_experts(
        std::move(*disk), {.memory = pack_memory(bank.catalogue()), .sequences_max = 1});
    ASSERT_TRUE(opened) << opened.error().message;
    const Result<void> packed = pack_experts(bank, **writer, team);
    ASSERT_TRUE(packed) << packed.error().message;
  }
  // Streamed against resident, over the same steps.
  void expect_same(const Setting& setting, Compute compute = Compute::kFast, int threads = 2) {
    ThreadTeam team(threads);
    const auto resident = load(team, compute, false);
    const auto streamed = load_streamed(team, compute, setting);
    Client client;
    const auto expected = Script(7).run(*resident, team, kSteps, client);
    const auto found = Script(7).run(*streamed, team, kSteps, client);
    EXPECT_TRUE(client.failed.empty()) << client.failed.begin()->second;
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], expected[i]) << "row " << i;
    EXPECT_GT(streamed->experts()->reads().reads[0].value(), 0u);
    expect_counts(*streamed, setting);
  }
  // Each expert that generated tokens asked for is counted once a step, whenever that was known.
  void expect_counts(Model& model, const Setting& setting) {
    const ssd::StoreStats& s = model.experts()->stats();
    uint64_t unions = 0;
    for (const Counter& experts : s.layer_experts) unions += experts.value();
    EXPECT_EQ(s.ready.value() + s.in_flight.value() + s.absent.value(), unions);
    EXPECT_LT(s.early.value(), s.absent.value() + 1);
    if (setting.memory <= 2 << 20) {
      EXPECT_EQ(s.early.value() > 0, setting.early_reads == ssd::EarlyReads::kAlways);
    }
  }
  static constexpr int kSteps = 14;
  measure::ModelledDisk* disk_ = nullptr;  // Of the model loaded last.
};

TEST_F(Streaming, CountsExpertsAmongTheModelsParametersAndFormats) {
  ThreadTeam team(1);
  const auto resident = load(team, Compute::kExact, false);
  const auto streamed = load(team, Compute::kExact, true);
  EXPECT_GT(resident->memory().parameters, 1'000'000);
  EXPECT_EQ(streamed->memory().parameters, resident->memory().parameters);
  EXPECT_EQ(streamed->memory().formats, resident->memory().formats);
}

TEST_F(Streaming, GivesTheSameBitsWithAnyMemory) {
  for (const uint64_t memory : {900u << 10, 1u << 20, 2u << 20, 5u << 20, 32u << 20})
    expect_same({.memory = memory});
}

TEST_F(Streaming, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3}) {
    expect_same({}, Compute::kExact, threads);
    expect_same({.memory = 1 << 20}, Compute::kFast, threads);
    expect_same({.early_reads = ssd::EarlyReads::kNever}, Compute::kFast, threads);
  }
}

// What the disk was doing when each row attended: a kernel that looks, and then does what it
// should.
struct Look {
  int32_t position = 0;
  int32_t reads = 0;  // On their way.
};
const measure::ModelledDisk* looked_at = nullptr;
std::vector<Look> looks;

void attend_and_look(const kernels::KvPages& pages, const kernels::AttendArgs& args) {
  looks.push_back({args.first_position, looked_at->in_flight()});
  kernels::ops_for(kernels::detect_isa()).attend(pages, args);
}

// Four sequences, told apart by where they stand, generate on a disk whose reads land only when
// somebody waits for them: while the last two attend, what the first two lack is on its way.
TEST_F(Streaming, ReadsForTheFirstRowsWhileTheOthersAttend) {
  ThreadTeam team(1);  // `looks` has no lock.
  kernels::Ops ops = best_ops();
  ops.attend = attend_and_look;
  for (const auto early : {ssd::EarlyReads::kAlways, ssd::EarlyReads::kNever}) {
    const auto model = load_streamed(team, Compute::kFast,
                                     {.memory = 1 << 20,
                                      .prefetch = ssd::PrefetchMode::kOff,
                                      .early_reads = early,
                                      .ops = &ops});
    looked_at = disk_;
    auto cache = kv::KvCache::create(model->memory_needs(), kernels::FloatType::kF16, kSequences);
    ASSERT_TRUE(cache);
    Client client;
    const std::array<int32_t, 4> pages = {0, 1, 2, 3};
    int32_t outstanding = 0, seen = 0;
    for (int32_t step = 0; step < 6; ++step) {
      BatchBuilder builder;
      for (int32_t s = 0; s < 4; ++s) {
        // Sequence s stands at 6 s and after; what it has not computed is zeros.
        builder.add_slice({.first_position = 6 * s + step,
                           .prompt_length = 0,
                           .memory = {&pages[static_cast<size_t>(s)]},
                           .sequence = s});
        builder.add_token((step * 4 + s) * 997 % 8000);
        builder.want_next();
      }
      looks.clear();
      client.logits.resize(4);
      const Batch batch = builder.batch();
      team.run([&](int member) { model->forward(batch, *cache, client, team, member); });
      for (const Look& look : looks) {
        if (look.position < 12)
          EXPECT_EQ(look.reads, 0) << "the first rows' experts are not known yet";
        else
          outstanding += look.reads > 0 ? 1 : 0;
        seen += look.position < 12 ? 0 : 1;
      }
    }
    EXPECT_GT(seen, 0);
    const ssd::StoreStats& stats = model->experts()->stats();
    if (early == ssd::EarlyReads::kAlways) {
      EXPECT_GT(outstanding, seen / 2);
      EXPECT_GT(stats.early.value(), 0u);
      EXPECT_GT(stats.early_ns.value(), 0u);
    } else {
      EXPECT_EQ(outstanding, 0);
      EXPECT_EQ(stats.early.value(), 0u);
    }
  }
}

TEST_F(Streaming, GivesTheSameBitsWhateverIsGuessed) {
  for (const auto mode :
       {ssd::PrefetchMode::kOff, ssd::PrefetchMode::kPreviousToken, ssd::PrefetchMode::kLookahead})
    for (const uint64_t memory : {1u << 20, 4u << 20}) expect_same({memory, mode});
}

TEST_F(Streaming, GivesTheSameBitsInWhicheverOrderExpertsLand) {
  using std::chrono::microseconds;
  for (const int together : {1, 3, 7})
    expect_same({.disk = {.bytes_per_second = 1e8,
                          .latency = microseconds(50 * together),
                          .completed_together = together}});
}

TEST_F(Streaming, GivesTheSameBitsWhenReadsFailOnceOrComeShort) {
  using Kind = measure::DiskFault::Kind;
  expect_same({.faults = {{.kind = Kind::kError, .times = 3, .error = EIO},
                          {.kind = Kind::kError, .times = 5, .error = EAGAIN},
                          {.kind = Kind::kShort, .times = 7, .bytes = 8192}}});
}

// A part of the file that can never be read: who needs an expert there fails, the others' bits are
// those of the resident model.
TEST_F(Streaming, FailsTheRowsThatNeedWhatCannotBeReadAndNoOthers) {
  ThreadTeam team(2);
  const auto resident = load(team, Compute::kFast, false);
  auto probe = load(team, Compute::kFast, true);
  // Expert 3 of layer 5: a sixteenth of what is routed there.
  const ssd::StoredRange bad = probe->expert_catalogue()->ranges(5, 3, 1)[0];
  const auto streamed = load_streamed(team, Compute::kFast, {.faults = {unreadable(bad)}});
  Client expected, found;
  Script(11).run(*resident, team, 1, expected);
  Script(11).run(*streamed, team, 1, found);
  ASSERT_EQ(found.failed.size(), 1u) << "one prompt is all there is in the first step";
  EXPECT_NE(found.failed.at(0).find("model.safetensors"), std::string::npos) << found.failed.at(0);
  // One token at a time: some are routed elsewhere.
  int failed = 0, equal = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Client a, b;
    const std::array<int32_t, 1> page = {0};
    BatchBuilder builder;
    builder.add_slice({.prompt_length = 1, .memory = {page.data()}});
    builder.add_token(static_cast<int32_t>(seed * 199 % 8000));
    builder.want_next();
    for (auto [model, client] : {std::pair{resident.get(), &a}, {streamed.get(), &b}}) {
      auto cache = kv::KvCache::create(model->memory_needs(), kernels::FloatType::kF16, 1);
      client->logits.resize(1);
      const Batch batch = builder.batch();
      team.run([&](int member) { model->forward(batch, *cache, *client, team, member); });
    }
    if (b.failed.empty()) {
      EXPECT_EQ(a.logits, b.logits);
      ++equal;
    } else {
      ++failed;
    }
  }
  EXPECT_GT(failed, 0);
  EXPECT_GT(equal, 0);
}

// The same of four rows at once, of which the first two ask before the others have been routed.
TEST_F(Streaming, FailsTheRowsThatNeedWhatCannotBeReadEarly) {
  ThreadTeam team(2);
  const auto resident = load(team, Compute::kFast, false);
  Setting setting = {.memory = 1 << 20};
  for (const int32_t expert : {3, 8}) {
    const ssd::StoredRange bad =
        load(team, Compute::kFast, true)->expert_catalogue()->ranges(5, expert, 1)[0];
    setting.faults.push_back(unreadable(bad));
  }
  const auto streamed = load_streamed(team, Compute::kFast, setting);
  const std::array<int32_t, 4> pages = {0, 1, 2, 3};
  std::array<int, 4> failed{}, equal{};
  for (int32_t seed = 0; seed < 30; ++seed) {
    BatchBuilder builder;
    for (int32_t s = 0; s < 4; ++s) {
      builder.add_slice({.memory = {&pages[static_cast<size_t>(s)]}, .sequence = s});
      builder.add_token((4 * seed + s) * 199 % 8000);
      builder.want_next();
    }
    Client a, b;
    for (auto [model, client] : {std::pair{resident.get(), &a}, {streamed.get(), &b}}) {
      auto cache = kv::KvCache::create(model->memory_needs(), kernels::FloatType::kF16, 4);
      client->logits.resize(4);
      const Batch batch = builder.batch();
      team.run([&](int member) { model->forward(batch, *cache, *client, team, member); });
    }
    for (size_t s = 0; s < 4; ++s) {
      const bool fails = b.failed.contains(static_cast<int32_t>(s));
      ++(fails ? failed : equal)[s];
      if (fails) continue;
      EXPECT_EQ(a.logits[s], b.logits[s]) << seed << " row " << s;
    }
  }
  for (size_t s = 0; s < 4; ++s) {
    EXPECT_GT(failed[s], 0) << "row " << s;
    EXPECT_GT(equal[s], 0) << "row " << s;
  }
  EXPECT_GT(streamed->experts()->stats().early.value(), 0u);
}

// The first read of a guess waits for its next attempt while its others are in the kernel: then it
// is contradicted.
TEST_F(Streaming, GoesOnWhereGuessesFailHalfway) {
  ThreadTeam team(2);
  const auto probe = load(team, Compute::kFast, true);
  for (const auto mode : {ssd::PrefetchMode::kPreviousToken, ssd::PrefetchMode::kLookahead}) {
    Setting setting = {.memory = 900 << 10, .prefetch = mode};
    for (int32_t layer = 2; layer < probe->expert_catalogue()->layers(); ++layer) {
      for (const int32_t expert : {3, 9}) {
        const ssd::StoredRange bad = probe->expert_catalogue()->ranges(layer, expert, 0)[0];
        setting.faults.push_back(unreadable(bad));
      }
    }
    const auto streamed = load_streamed(team, Compute::kFast, setting);
    for (uint64_t seed = 0; seed < 8; ++seed) {
      Client client;
      Script(seed).run(*streamed, team, kSteps, client);
    }
    EXPECT_GT(streamed->experts()->reads().failures.value(), 0u);
    EXPECT_GT(streamed->experts()->reads().dropped.value(), 0u) << "guesses are taken back";
  }
}

// Under pressure: slots go, with what they hold, and come back, between any steps.
TEST_F(Streaming, GivesTheSameBitsWhileMemoryIsGivenBackAndTakenAgain) {
  ThreadTeam team(2);
  const auto resident = load(team, Compute::kFast, false);
  for (const uint64_t memory : {2u << 20, 6u << 20}) {
    const auto streamed = load_streamed(team, Compute::kFast, {.memory = memory});
    ssd::ExpertStore& store = *streamed->experts();
    Client client;
    const auto expected = Script(7).run(*resident, team, kSteps, client);
    std::vector<double> usable, shed;
    const auto found = Script(7).run(*streamed, team, kSteps, client, [&](int step) {
      usable.push_back(store.stats().slots_usable.value());
      shed.push_back(store.stats().slots_shed.value());
      store.allow(std::array{100, 95, 50, 60, 0, 0, 100}[static_cast<size_t>(step) % 7]);
    });
    EXPECT_EQ(found, expected);
    EXPECT_TRUE(client.failed.empty());
    EXPECT_GT(store.cache().evictions.value(), 0u);
    // What step n saw is known before step n + 1.
    const auto planned = static_cast<double>(store.plan().slots);
    EXPECT_LE(usable[3], planned / 2);
    EXPECT_LE(usable[5], 4) << "the least: four of the one size";
    EXPECT_GE(usable[7], usable[5]);
    EXPECT_GT(*std::ranges::max_element(shed), 0);
    EXPECT_EQ(shed[7], 0);
  }
}

// A prompt a layer at a time, while another sequence's tokens are generated in between.
TEST_F(Streaming, GivesTheSameBitsInASlab) {
  ThreadTeam team(2);
  const auto resident = load(team, Compute::kFast, false);
  const auto streamed = load_streamed(team, Compute::kFast, {.memory = 1 << 20});
  std::vector<int32_t> prompt(150), pages(16);
  std::iota(pages.begin(), pages.end(), 0);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(i * 7919 % 8000);
  BatchBuilder slab_builder;
  slab_builder.add_slice({.prompt_length = 150, .memory = {pages.data()}});
  slab_builder.add_tokens(prompt);
  slab_builder.want_next();
  const Batch slab = slab_builder.batch();
  const auto decode = [&](Model& model, const kv::KvCache& cache, Client& client,
                          int32_t position) {
    BatchBuilder builder;
    builder.add_slice({.first_position = position,
                       .prompt_length = 1,
                       .memory = {pages.data() + 8},
                       .sequence = 1});
    builder.add_token(17);
    builder.want_next();
    const Batch batch = builder.batch();
    client.logits.resize(1);
    team.run([&](int member) { model.forward(batch, cache, client, team, member); });
    return client.logits[0];
  };
  std::vector<std::vector<float>> expected, found;
  auto cache = kv::KvCache::create(resident->memory_needs(), kernels::FloatType::kF16, 16);
  ASSERT_TRUE(cache);
  Client client;
  for (int32_t i = 0; i < streamed->sublayers(); ++i)
    expected.push_back(decode(*resident, *cache, client, i));
  client.logits.resize(1);
  team.run([&](int member) { resident->forward(slab, *cache, client, team, member); });
  expected.push_back(client.logits[0]);

  auto again = kv::KvCache::create(resident->memory_needs(), kernels::FloatType::kF16, 16);
  ASSERT_TRUE(again);
  const uint64_t before = streamed->experts()->stats().prompt_absent.value();
  for (int32_t i = 0; i < streamed->sublayers(); ++i) {
    found.push_back(decode(*streamed, *again, client, i));
    client.logits.resize(1);
    const Forward piece = {.batch = slab,
                           .kv = *again,
                           .sink = client,
                           .team = team,
                           .lane = Lane::kSlab,
                           .begin = i,
                           .end = i + 1};
    team.run([&](int member) { streamed->forward(piece, member); });
  }
  found.push_back(client.logits[0]);
  EXPECT_EQ(found, expected);
  // Each expert at most once: 8 layers of 16; and two a layer for the other sequence's first token.
  EXPECT_LE(streamed->experts()->stats().prompt_absent.value() - before, 128u + 16u);
}

// With less than a token's experts in memory nothing of the last token is left: what it chose is
// read again while attention computes.
TEST_F(Streaming, AModeAskedForByNameReadsAtEveryBudget) {
  for (const auto& [mode, source] :
       {std::pair{ssd::PrefetchMode::kPreviousToken, ssd::GuessSource::kPreviousToken},
        {ssd::PrefetchMode::kLookahead, ssd::GuessSource::kLookahead}})
    for (const double cycles : {0.5, 0.75, 1.0}) {
      ThreadTeam team(1);
      const auto probe = load(team, Compute::kFast, true);
      const auto model =
          load_streamed(team, Compute::kFast,
                        {.memory = ssd::memory_for_cycles(*probe->expert_catalogue(), 2, cycles),
                         .prefetch = mode});
      EXPECT_NEAR(model->experts()->plan().cycles(), cycles, 0.07);
      Client client;
      Script(7).run(*model, team, 40, client);
      const ssd::SourceStats& stats = model->experts()->prefetcher().stats(source);
      EXPECT_GT(stats.issued_bytes.value(), 0u) << cycles;
      EXPECT_GT(stats.used_bytes.value(), 0u) << cycles;
    }
}

// Routing from outside is what is run and what is recorded; another table gives other logits.
TEST_F(Streaming, RunsTheRoutingThatATableSays) {
  ThreadTeam team(2);
  const measure::RoutingTable::Shape shape = {
      .layers = 8, .experts = 16, .top_k = 2, .sequences = kSequences, .tokens = 300};
  auto table = measure::RoutingTable::modelled(shape, 3);
  auto other = measure::RoutingTable::modelled(shape, 4);
  ASSERT_TRUE(table && other);
  measure::RouteTrace trace(8, 16, 2);
  const auto run = [&](const measure::RoutingTable* routing, measure::RouteTrace* record) {
    measure::RouteProbe probe(routing, record);
    const auto model = load_streamed(team, Compute::kFast, {.route_hook = &probe});
    Client client;
    return Script(7).run(*model, team, kSteps, client);
  };
  const auto logits = run(&*table, &trace);
  EXPECT_EQ(logits, run(&*table, nullptr));
  EXPECT_NE(logits, run(&*other, nullptr));
  EXPECT_NE(logits, run(nullptr, nullptr));
  // Positions of a sequence come in order in each layer.
  std::map<std::pair<int32_t, int32_t>, int32_t> position;
  int generated = 0;
  for (const measure::RouteRow& row : trace.rows()) {
    if (row.kind == measure::RouteKind::kLookahead) continue;
    generated += row.kind == measure::RouteKind::kDecode ? 1 : 0;
    const std::span<const int16_t> expected =
        table->experts(row.layer, row.sequence, position[{row.layer, row.sequence}]++);
    EXPECT_TRUE(std::ranges::equal(trace.experts_of(row), expected));
  }
  EXPECT_GT(generated, 100);
}

// A bundle of the model's experts; removed with the test.
class Packed {
 public:
  explicit Packed(Streaming& test) {
    std::string name = std::string(WEIR_BUILD_DIR) + "/pack_test_XXXXXX";
    folder_ = ::mkdtemp(name.data());
    path_ = folder_ + "/" + kBundleName;
    ThreadTeam team(2);
    test.pack(path_, team);
  }
  ~Packed() { std::filesystem::remove_all(folder_); }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;

  const std::string& path() const { return path_; }
  // One bit of a part is not what was written.
  void spoil(int32_t layer, int32_t expert, int part) {
    const auto bundle = ssd::ExpertBundle::open(path_);
    ASSERT_TRUE(bundle);
    const ssd::PackedExpert& entry = bundle->index[static_cast<size_t>(layer * 16 + expert)];
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    const auto at = static_cast<std::streamoff>(entry.offset + (part == 0 ? 0 : entry.bytes[0]));
    file.seekg(at + 100);
    const int byte = file.get();
    file.seekp(at + 100);
    file.put(static_cast<char>(byte ^ 4));
  }

 private:
  std::string folder_, path_;
};

TEST_F(Streaming, GivesTheSameBitsFromABundle) {
  const Packed packed(*this);
  for (const uint64_t memory : {900u << 10, 2u << 20, 32u << 20})
    expect_same({.memory = memory, .bundle = packed.path()});
  expect_same({.bundle = packed.path()}, Compute::kExact, 3);
  using Kind = measure::DiskFault::Kind;
  expect_same({.faults = {{.kind = Kind::kError, .file = 1, .times = 3, .error = EIO},
                          {.kind = Kind::kShort, .file = 1, .times = 7, .bytes = 8192}},
               .bundle = packed.path()});
}

TEST_F(Streaming, ReadsFromTheCheckpointWhatABundleHasLost) {
  Packed packed(*this);
  packed.spoil(0, 3, 0);
  packed.spoil(2, 5, 1);
  for (int32_t e = 0; e < 16; ++e) {
    packed.spoil(4, e, 0);
    packed.spoil(4, e, 1);
  }
  ThreadTeam team(2);
  const auto resident = load(team, Compute::kFast, false);
  for (const uint64_t memory : {900u << 10, 2u << 20}) {
    const auto streamed =
        load_streamed(team, Compute::kFast, {.memory = memory, .bundle = packed.path()});
    Client client;
    EXPECT_EQ(Script(7).run(*streamed, team, kSteps, client),
              Script(7).run(*resident, team, kSteps, client));
    EXPECT_TRUE(client.failed.empty()) << client.failed.begin()->second;
    const ssd::StoreStats& stats = streamed->experts()->stats();
    // Each part twice, then never again from the bundle.
    EXPECT_GE(stats.crc_failures.value(), 4u);
    EXPECT_LE(stats.crc_failures.value(), 2u * 34);
    EXPECT_EQ(stats.crc_failures.value() % 2, 0u);
    EXPECT_GE(stats.source_parts.value(), stats.crc_failures.value() / 2);
    const std::optional<std::string> notice = streamed->experts()->take_notice();
    ASSERT_TRUE(notice);
    EXPECT_NE(notice->find(packed.path()), std::string::npos) << *notice;
  }
}

// Nobody knows what came of the bytes that the step has read: all of its slices fail, and the next
// step reads what it needs again.
TEST_F(Streaming, FailsAllOfAStepThatHasReadAFileWhichWasWrittenTo) {
  ThreadTeam team(2);
  const auto resident = load(team, Compute::kFast, false);
  const auto streamed = load_streamed(team, Compute::kFast, {.memory = 900u << 10});
  Client client;
  std::map<int32_t, std::string> failed;
  const auto found = Script(7).run(*streamed, team, kSteps, client, [&](int step) {
    if (step == 6) disk_->set_change(0, FileChange::kModified);
    if (step != 7) return;
    failed = std::exchange(client.failed, {});
    disk_->set_change(0, FileChange::kNone);
  });
  EXPECT_EQ(failed.size(), static_cast<size_t>(kSequences));
  for (const auto& [slice, why] : failed)
    EXPECT_NE(why.find("model.safetensors: expected the file that was opened"), std::string::npos)
        << why;
  EXPECT_TRUE(client.failed.empty()) << client.failed.begin()->second;
  EXPECT_GT(streamed->experts()->stats().distrusted_experts.value(), 0u);
  EXPECT_EQ(found, Script(7).run(*resident, team, kSteps, client));
}

// The bundle's file cannot be read any more, though it could be opened.
TEST_F(Streaming, GivesTheSameBitsWithoutItsBundle) {
  const Packed packed(*this);
  expect_same({.memory = 1 << 20,
               .faults = {{.kind = measure::DiskFault::Kind::kError,
                           .file = 1,
                           .begin = 8192,
                           .times = -1,
                           .error = EIO}},
               .bundle = packed.path()});
}

// Neither there nor in the checkpoint: as without a bundle.
TEST_F(Streaming, FailsWhatNeitherTheBundleNorTheCheckpointHas) {
  Packed packed(*this);
  for (int32_t e = 0; e < 16; ++e) packed.spoil(3, e, 1);
  ThreadTeam team(2);
  const auto streamed = load_streamed(team, Compute::kFast,
                                      {.faults = {{.kind = measure::DiskFault::Kind::kError,
                                                   .file = 0,
                                                   .begin = 4096,
                                                   .times = -1,
                                                   .error = EIO}},
                                       .bundle = packed.path()});
  Client client;
  Script(7).run(*streamed, team, 1, client);
  ASSERT_EQ(client.failed.size(), 1u);
  EXPECT_NE(client.failed.at(0).find("model.safetensors"), std::string::npos);
  EXPECT_GT(streamed->experts()->stats().failed_experts.value(), 0u);
}

TEST_F(Streaming, SaysWhatMemoryItNeedsAtLeast) {
  ThreadTeam team(1);
  const auto model = load(team, Compute::kFast, true);
  const Result<void> opened =
      model->open_experts(std::make_unique<measure::ModelledDisk>(measure::DiskModel{}),
                          {.memory = 10, .sequences_max = 1});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kCapacity);
  EXPECT_NE(opened.error().message.find("--expert-memory"), std::string::npos);
}

// Of models that have no experts, or none that could be read where they lie.
TEST(StreamingIsRefused, WithTheReason) {
  const auto error_of = [](const std::string& family) {
    const auto card =
        card::ModelCard::open_folder(WEIR_SOURCE_DIR "/tests/data/families/" + family);
    EXPECT_TRUE(card) << card.error().message;
    const auto model = Model::bind(*card, {.rows_max = 8, .stream_experts = true},
                                   kernels::ops_for(kernels::Isa::kScalar), 1);
    return model ? "" : model.error().message;
  };
  EXPECT_EQ(error_of("llama"),
            "--stream-experts: expected a mixture-of-experts model; found LlamaForCausalLM without "
            "experts");
  EXPECT_EQ(error_of("gpt_oss"),
            "--stream-experts: tensor 'model.layers.0.mlp.experts.gate_up_proj': expected experts "
            "whose rows lie one after another in the file, found some that have to be rearranged");
}

}  // namespace
}  // namespace weir::model
