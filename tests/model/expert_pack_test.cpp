// Making bundles: what is written is what a store unpacks, however often the writer is killed, and
// the right one is found.
#include "model/expert_pack.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/crc32c.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/model.h"

namespace weir::model {
namespace {

namespace fs = std::filesystem;

const std::string kModel = WEIR_SOURCE_DIR "/models/weir-tiny-moe";

class Pack : public testing::Test {
 protected:
  // A model's folder of our own, whose weights are links.
  Pack() {
    std::string name = std::string(WEIR_BUILD_DIR) + "/pack_test_XXXXXX";
    folder_ = ::mkdtemp(name.data());
    for (const auto& entry : fs::directory_iterator(kModel))
      fs::create_symlink(entry.path(), folder_ / entry.path().filename());
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
  }
  ~Pack() override { fs::remove_all(folder_); }

  std::unique_ptr<Model> bind() const {
    const auto card = card::ModelCard::open_folder(folder_.string());
    EXPECT_TRUE(card) << card.error().message;
    auto model = Model::bind(*card, {.rows_max = 1, .stream_experts = true},
                             kernels::ops_for(kernels::detect_isa()), 2);
    EXPECT_TRUE(model) << model.error().message;
    return std::move(*model);
  }
  static void open(Model& model) {
    auto disk = ssd::Disk::create({});
    ASSERT_TRUE(disk) << disk.error().message;
    const Result<void> opened = model.open_experts(
        std::move(*disk),
        {.memory = pack_memory(model.streamed_bank()->catalogue()), .sequences_max = 1});
    ASSERT_TRUE(opened) << opened.error().message;
  }
  std::string beside() const { return (folder_ / kBundleName).string(); }

  // Returns how many layers were there already. Dies behind layer `last`.
  int32_t pack(const std::string& path, int32_t last = -1) const {
    const auto model = bind();
    const StreamedBank& bank = *model->streamed_bank();
    auto writer =
        ssd::BundleWriter::create(path, ssd::plan_bundle(bank.catalogue(), *bank.source()), 0);
    EXPECT_TRUE(writer) << writer.error().message;
    const int32_t begun = (*writer)->layers_done();
    open(*model);
    ThreadTeam team(2);
    const Result<void> packed = pack_experts(bank, **writer, team, [last](int32_t done, int32_t) {
      if (done == last) ::kill(::getpid(), SIGKILL);
    });
    EXPECT_TRUE(packed) << packed.error().message;
    return begun;
  }
  static std::string contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
};

TEST_F(Pack, WritesWhatAStoreUnpacks) {
  pack(beside());
  const auto bundle = ssd::ExpertBundle::open(beside());
  ASSERT_TRUE(bundle) << bundle.error().message;
  const std::string text = contents(beside());
  const auto model = bind();
  const StreamedBank& bank = *model->streamed_bank();
  open(*model);
  ssd::ExpertStore& store = *bank.store();
  ssd::ExpertWave wave = store.make_wave();
  int32_t compared = 0;
  for (int32_t layer = 0; layer < bank.catalogue().layers(); ++layer)
    for (int32_t e = 0; e < bank.catalogue().experts(); ++e) {
      const std::array<ssd::ExpertDemand, 1> demand = {{{.expert = e, .prompt_rows = 1}}};
      const ssd::PackedExpert& entry =
          bundle->index[static_cast<size_t>(layer * bank.catalogue().experts() + e)];
      const uint64_t size = uint64_t{entry.bytes[0]} + entry.bytes[1];
      store.begin_step(0);
      store.begin_layer(layer, demand, {});
      do {
        store.next_wave(wave);
        for (int32_t unit = 0; unit < bank.unpack_units(wave); ++unit) bank.unpack(wave, unit);
        if (wave.down.empty()) continue;
        bank.clear_gaps(layer, store.memory_of(0));
        ASSERT_LE(entry.offset + size, text.size());
        EXPECT_EQ(std::memcmp(store.memory_of(0), text.data() + entry.offset, size), 0)
            << layer << " " << e;
        ++compared;
      } while (!wave.last);
      store.end_layer();
      store.end_step();
    }
  EXPECT_EQ(compared, 128);
}

TEST_F(Pack, GoesOnAfterItWasKilled) {
  const std::string path = beside();
  for (const int32_t last : {1, 4, 7}) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      pack(path, last);
      std::_Exit(1);  // It should have been killed.
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_EQ(pack(path), 7);
  const std::string in_one_go = (folder_ / "other").string();
  EXPECT_EQ(pack(in_one_go), 0);
  EXPECT_EQ(contents(path), contents(in_one_go));
  EXPECT_GT(contents(path).size(), 10u << 20);
}

TEST_F(Pack, IsFoundBesideTheModelAndThenInTheCache) {
  const auto model = bind();
  StreamedBank& bank = *model->streamed_bank();
  const auto paths = bundle_paths(bank, *bank.source());
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_EQ(paths[0], beside());
  fs::create_directories(fs::path(paths[1]).parent_path());
  {
    const auto none = choose_bundle(bank);
    ASSERT_TRUE(none);
    EXPECT_TRUE(none->empty());
    EXPECT_FALSE(bank.catalogue().packed());
  }
  pack(paths[1]);
  std::ofstream(beside()) << "not a bundle";
  const auto refused = choose_bundle(bank);
  ASSERT_TRUE(refused);
  ASSERT_EQ(refused->size(), 1u);
  EXPECT_NE(refused->front().find(beside()), std::string::npos) << refused->front();
  EXPECT_EQ(bank.catalogue().main_file(), paths[1]);
}

TEST_F(Pack, AnUnfinishedOneIsNotUsed) {
  const pid_t child = ::fork();
  if (child == 0) {
    pack(beside(), 3);
    std::_Exit(1);
  }
  ::waitpid(child, nullptr, 0);
  fs::rename(beside() + ".part", beside());
  const auto model = bind();
  const Result<void> used = model->streamed_bank()->use_bundle(beside());
  ASSERT_FALSE(used);
  EXPECT_NE(used.error().message.find("found 3 of 8 layers"), std::string::npos)
      << used.error().message;
}

TEST_F(Pack, OneOfFilesThatHaveChangedIsNotUsed) {
  pack(beside());
  const fs::path weights = folder_ / "model.safetensors";
  fs::remove(weights);
  fs::copy_file(kModel + "/model.safetensors", weights);  // Written now.
  const auto model = bind();
  const Result<void> used = model->streamed_bank()->use_bundle(beside());
  ASSERT_FALSE(used);
  EXPECT_NE(used.error().message.find("weir pack"), std::string::npos) << used.error().message;
}

}  // namespace
}  // namespace weir::model
