#include "hub/download.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "hub/cache_check.h"
#include "hub/cache_list.h"
#include "hub/cache_removal.h"
#include "hub/partial_file.h"
#include "scripted_hub.h"

namespace weir::hub {
namespace {

namespace fs = std::filesystem;

std::string random_bytes(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class DownloadTest : public testing::Test {
 protected:
  DownloadTest()
      : folder_(fs::temp_directory_path() / ("weir_hub_" + std::to_string(::getpid()))),
        cache_((folder_ / "hub").string()),
        transport_([this](const Request& request) { return hub_(request); }) {
    fs::remove_all(folder_);
    hub_.files = {{"config.json", R"({"x":1})"},
                  {"empty.txt", ""},
                  {"model.safetensors", random_bytes(5'000'000, 1)},
                  {"tokenizer.json", random_bytes(200'000, 2)},
                  {"tokenizer_config.json", R"({"x":1})"}};
  }
  ~DownloadTest() override {
    EXPECT_FALSE(transport_.leaked(kEndpoint));
    fs::remove_all(folder_);
  }

  // A new process: nothing is known but what lies in the cache.
  Result<Snapshot> pull(const std::vector<std::string>& include = {}) {
    Client client = *Client::create(scripted_settings(cache_.folder()), transport_);
    WEIR_ASSIGN(const HubModel model, client.resolve(*ModelName::parse("org/name"), include));
    DownloadOptions options{.disk_reserve = 0};
    options.on_progress = [this](const Progress& progress) { progress_ = progress; };
    return download(client, cache_, model, options);
  }
  void expect_right(const Snapshot& snapshot) {
    for (const TreeFile& file : snapshot.files)
      EXPECT_EQ(content(fs::path(snapshot.folder) / file.path), hub_.files[file.path]) << file.path;
    for (const auto& entry : fs::directory_iterator(cache_.model_folder("org/name") + "/blobs"))
      EXPECT_TRUE(is_blob_name(entry.path().filename().string())) << entry.path();
  }
  std::vector<CheckedFile> checked() const {
    const auto files = check_model(cache_, *ModelName::parse("org/name"), [](int64_t, int64_t) {});
    EXPECT_TRUE(files) << files.error().message;
    return files.value_or(std::vector<CheckedFile>());
  }
  uint64_t bytes_asked(const std::string& part) const {
    uint64_t bytes = 0;
    for (const Request& request : transport_.requests)
      if (request.range && request.url.find(part) != std::string::npos)
        bytes += request.range->bytes();
    return bytes;
  }

  const fs::path folder_;
  const Cache cache_;
  ScriptedHub hub_;
  ScriptedTransport transport_;
  Progress progress_;
};

TEST_F(DownloadTest, LaysDownWhatHuggingfaceHubWould) {
  const Result<Snapshot> snapshot = pull({"*"});
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  expect_right(*snapshot);
  const fs::path model = folder_ / "hub" / "models--org--name";
  EXPECT_EQ(content(model / "refs" / "main"), kCommit);
  EXPECT_TRUE(fs::exists(folder_ / "hub" / "CACHEDIR.TAG"));
  EXPECT_TRUE(fs::exists(model / "trees" / (kCommit + ".json")));
  EXPECT_EQ(fs::read_symlink(model / "snapshots" / kCommit / "config.json"),
            "../../blobs/" + blob_of(hub_.files["config.json"], false));
  EXPECT_EQ(progress_.bytes_done, progress_.bytes);
  EXPECT_EQ(progress_.files_done, 4u) << "two files have the same bytes";
  // Nothing is left to do.
  transport_.requests.clear();
  ASSERT_TRUE(pull({"*"}));
  EXPECT_EQ(bytes_asked(""), 0u);
  EXPECT_EQ(cache_.find(*ModelName::parse("org/name"))->folder, snapshot->folder);
  EXPECT_FALSE(cache_.find(*ModelName::parse("org/other")));
}

TEST_F(DownloadTest, EveryByteComesOnceWhateverBreaks) {
  std::mt19937 random(3);
  for (int i = 0; i < 12; ++i)
    hub_.first.push_back({"cdn.example/model.safetensors",
                          {.status = 206, .body = "", .cut_after = 0, .ending = Ending::kBroken}});
  hub_.first.push_back({"cdn.example/model.safetensors", {.status = 403}});
  hub_.first.push_back({"cdn.example/model.safetensors", {.status = 500}});
  hub_.first.push_back({"cdn.example/model.safetensors", {.status = 416}});
  hub_.first.push_back({"resolve", {.status = 503}});
  const Result<Snapshot> snapshot = pull();
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  expect_right(*snapshot);
}

TEST_F(DownloadTest, GoesOnAtTheByteWhereItWasCut) {
  const std::string& bytes = hub_.files["model.safetensors"];
  // The first part, cut after 300,000 bytes.
  hub_.first.push_back({"cdn.example/model.safetensors",
                        {.status = 206,
                         .headers = {{"content-range", "bytes 0-1048575/5000000"}},
                         .body = bytes.substr(0, 1 << 20),
                         .cut_after = 300'000}});
  const Result<Snapshot> snapshot = pull();
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  expect_right(*snapshot);
  EXPECT_EQ(bytes_asked("cdn.example"), bytes.size() + (1 << 20) - 300'000);
}

TEST_F(DownloadTest, LinksMayExpireAllTheTime) {
  hub_.link_uses = 2;
  const Result<Snapshot> snapshot = pull();
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  expect_right(*snapshot);
}

TEST_F(DownloadTest, AServerThatIgnoresRangesIsReadOnce) {
  hub_.ranges = false;
  const Result<Snapshot> snapshot = pull();
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  expect_right(*snapshot);
  size_t whole = 0;
  for (const Request& request : transport_.requests)
    whole += request.url.find("cdn.example") != std::string::npos && request.range->begin == 0 &&
             request.range->end == 5'000'000;
  EXPECT_EQ(whole, 1u);
}

TEST_F(DownloadTest, WrongBytesAreFetchedOnceMoreAndThenNamed) {
  const std::string tokenizer = hub_.files["tokenizer.json"];
  const auto wrong = [&] {
    std::string bytes = tokenizer;
    bytes[5] ^= 1;
    return ScriptedAnswer{.body = bytes};
  };
  const ScriptedAnswer head{.headers = {}};
  hub_.first.push_back({"tokenizer.json", head});
  hub_.first.push_back({"tokenizer.json", wrong()});
  Result<Snapshot> snapshot = pull();
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  expect_right(*snapshot);
  fs::remove_all(folder_);
  for (int i = 0; i < 2; ++i) {
    hub_.first.push_back({"tokenizer.json", head});
    hub_.first.push_back({"tokenizer.json", wrong()});
  }
  snapshot = pull();
  ASSERT_FALSE(snapshot);
  EXPECT_NE(snapshot.error().message.find("org/name/tokenizer.json: expected bytes whose hash"),
            std::string::npos)
      << snapshot.error().message;
  EXPECT_FALSE(cache_.find(*ModelName::parse("org/name")));
}

// As SIGKILL at random moments, without what a process does at its end.
TEST_F(DownloadTest, FurtherProcessesGoOnWithWhatIsThere) {
  const uint64_t size = hub_.files["model.safetensors"].size();
  size_t stops = 0;
  for (int attempt = 0; attempt < 40; ++attempt) {
    Client client = *Client::create(scripted_settings(cache_.folder()), transport_);
    transport_.piece_bytes = 20'000;
    const size_t most = transport_.requests.size() + 8 + static_cast<size_t>(attempt % 5);
    client.stop_when([&] { return transport_.requests.size() > most; });
    const HubModel model = *client.resolve(*ModelName::parse("org/name"));
    const Result<Snapshot> snapshot = download(client, cache_, model, {.disk_reserve = 0});
    if (snapshot) {
      expect_right(*snapshot);
      break;
    }
    ++stops;
    EXPECT_EQ(snapshot.error().code, ErrorCode::kCancelled) << snapshot.error().message;
  }
  EXPECT_GT(stops, 0u);
  EXPECT_TRUE(cache_.find(*ModelName::parse("org/name")));
  EXPECT_LE(bytes_asked("cdn.example"), size + stops * 4 * (1 << 20));
}

TEST_F(DownloadTest, WaitsForAnotherProcessThatFetchesTheSame) {
  Client client = *Client::create(scripted_settings(cache_.folder()), transport_);
  const HubModel model = *client.resolve(*ModelName::parse("org/name"));
  const TreeFile& weights = *model.tree.find("model.safetensors");
  auto other = PartialFile::open(cache_.blob_path("org/name", weights.blob),
                                 cache_.lock_path("org/name", weights.blob), weights);
  ASSERT_TRUE(other && *other);
  EXPECT_EQ(remove_model(cache_, model.name).error().code, ErrorCode::kUnavailable);
  std::string waiting;
  DownloadOptions options{.disk_reserve = 0};
  options.on_progress = [&](const Progress& progress) {
    if (progress.waiting.empty() || !*other) return;
    waiting = progress.waiting;
    EXPECT_TRUE((*other)->write(0, hub_.files["model.safetensors"]));
    EXPECT_TRUE(*(*other)->hash(1 << 30));
    std::string found;
    EXPECT_TRUE(*(*other)->finish(found));
    other->reset();
  };
  const Result<Snapshot> snapshot = download(client, cache_, model, options);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  expect_right(*snapshot);
  EXPECT_NE(waiting.find("another process"), std::string::npos);
  EXPECT_EQ(bytes_asked("cdn.example"), 0u);
}

TEST_F(DownloadTest, AskForMoreThanTheDiskHasAndNothingIsWritten) {
  Client client = *Client::create(scripted_settings(cache_.folder()), transport_);
  const HubModel model = *client.resolve(*ModelName::parse("org/name"));
  const Result<Snapshot> snapshot =
      download(client, cache_, model, {.disk_reserve = int64_t{1} << 60});
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().code, ErrorCode::kCapacity);
  EXPECT_NE(snapshot.error().message.find("--disk-reserve"), std::string::npos);
  EXPECT_EQ(bytes_asked(""), 0u);
}

TEST_F(DownloadTest, WhatIsCachedIsListedCheckedAndRemoved) {
  ASSERT_TRUE(pull({"*"}));
  const ModelName name = *ModelName::parse("org/name");
  std::vector<CachedModel> models = list_models(cache_);
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].snapshots[0].names, std::vector<std::string>{"org/name"});
  EXPECT_EQ(models[0].snapshots[0].revisions, std::vector<std::string>{"main"});
  for (const CheckedFile& file : checked())
    EXPECT_EQ(file.state, FileState::kRight) << file.path << file.note;
  // A byte turns over on the disk.
  const TreeFile weights = *cache_.tree_of("org/name", kCommit)->find("model.safetensors");
  const std::string blob = cache_.blob_path("org/name", weights.blob);
  std::fstream file(blob, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(1000);
  file.put(static_cast<char>(~hub_.files["model.safetensors"][1000]));
  file.close();
  size_t wrong = 0;
  for (const CheckedFile& each : checked())
    if (each.state == FileState::kWrong) {
      ++wrong;
      EXPECT_EQ(each.on_disk, fs::canonical(blob));
    }
  EXPECT_EQ(wrong, 1u);
  fs::remove(blob);
  EXPECT_FALSE(cache_.find(name)) << "a link that leads nowhere is no file";
  models = list_models(cache_);
  EXPECT_TRUE(models[0].snapshots[0].names.empty());
  EXPECT_EQ(models[0].snapshots[0].missing, 5'000'000);
  ASSERT_TRUE(pull());
  EXPECT_TRUE(cache_.find(name));

  const Result<Removed> removed = remove_model(cache_, name);
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_GT(removed->bytes, 5'000'000);
  EXPECT_FALSE(fs::exists(cache_.model_folder("org/name")));
  EXPECT_EQ(remove_model(cache_, name).error().code, ErrorCode::kNotFound);
}

TEST_F(DownloadTest, BlobsOfOtherSnapshotsStay) {
  ASSERT_TRUE(pull());
  const fs::path model = cache_.model_folder("org/name");
  const std::string other(40, 'd');
  fs::create_directories(model / "snapshots" / other);
  fs::copy(model / "snapshots" / kCommit / "config.json",
           model / "snapshots" / other / "config.json", fs::copy_options::copy_symlinks);
  std::ofstream(model / "refs" / "v2") << other;
  ASSERT_TRUE(remove_model(cache_, *ModelName::parse("org/name@main")));
  EXPECT_EQ(content(model / "snapshots" / other / "config.json"), hub_.files["config.json"]);
  EXPECT_FALSE(fs::exists(model / "snapshots" / kCommit));
  EXPECT_FALSE(fs::exists(model / "refs" / "main"));
  EXPECT_TRUE(fs::exists(model / "refs" / "v2"));
  size_t blobs = 0;
  for (const auto& entry : fs::directory_iterator(model / "blobs")) blobs += entry.exists();
  EXPECT_EQ(blobs, 1u);
  ASSERT_TRUE(remove_model(cache_, *ModelName::parse("org/name@v2")));
  EXPECT_FALSE(fs::exists(model));
}

TEST_F(DownloadTest, NothingIsRemovedThroughALink) {
  ASSERT_TRUE(pull());
  const fs::path model = cache_.model_folder("org/name");
  const fs::path precious = folder_ / "precious";
  fs::create_directories(precious);
  std::ofstream(precious / "file") << "precious";
  fs::create_symlink(precious, model / "snapshots" / "link");
  fs::create_directory_symlink(precious, model / "blobs" / "link");
  fs::create_directory_symlink(precious, model / "snapshots" / kCommit / "link");
  ASSERT_TRUE(remove_model(cache_, *ModelName::parse("org/name")));
  EXPECT_EQ(content(precious / "file"), "precious");
  fs::create_directory_symlink(precious, model);
  EXPECT_FALSE(remove_model(cache_, *ModelName::parse("org/name")));
  EXPECT_EQ(content(precious / "file"), "precious");
}

TEST_F(DownloadTest, ASnapshotWithoutAListMustAgreeWithItself) {
  ASSERT_TRUE(pull());
  const fs::path model = cache_.model_folder("org/name");
  const ModelName name = *ModelName::parse("org/name");
  fs::remove(model / "trees" / (kCommit + ".json"));
  EXPECT_TRUE(cache_.find(name));
  const fs::path snapshot = model / "snapshots" / kCommit;
  std::ofstream(snapshot / "model.safetensors.index.json")
      << R"({"weight_map":{"a":"model.safetensors","b":"model-2.safetensors"}})";
  EXPECT_FALSE(cache_.find(name)) << "a shard is missing";
  fs::remove(snapshot / "model.safetensors.index.json");
  EXPECT_TRUE(cache_.find(name));
  fs::remove(snapshot / "model.safetensors");
  EXPECT_FALSE(cache_.find(name));
  // Not whole, and yet a list: what is missing is found out.
  std::ofstream(model / "refs" / "main") << "../../etc";
  EXPECT_FALSE(cache_.find(name));
}

}  // namespace
}  // namespace weir::hub
