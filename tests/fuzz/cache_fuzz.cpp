// A cache folder: whatever files, folders and links lie in it, it is searched, listed, checked and
// emptied without harm, and nothing outside of it changes.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "hub/cache.h"
#include "hub/cache_check.h"
#include "hub/cache_list.h"
#include "hub/cache_removal.h"
#include "hub/partial_file.h"

namespace {

namespace fs = std::filesystem;
using namespace weir::hub;

const std::string kCommit(40, 'c'), kOther(40, 'd');
const std::string kSmall = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
const std::string kLarge(64, 'b');

const std::vector<std::string> kPaths = {"refs/main",
                                         "refs/v1",
                                         "refs",
                                         "snapshots",
                                         "snapshots/" + kCommit,
                                         "snapshots/" + kOther,
                                         "snapshots/" + kCommit + "/config.json",
                                         "snapshots/" + kCommit + "/model.safetensors",
                                         "snapshots/" + kCommit + "/model.safetensors.index.json",
                                         "snapshots/" + kOther + "/m-Q4_0.gguf",
                                         "snapshots/" + kCommit + "/sub/x",
                                         "snapshots/" + kCommit + "/sub",
                                         "blobs",
                                         "blobs/" + kSmall,
                                         "blobs/" + kLarge,
                                         "blobs/" + kLarge + ".weir",
                                         "blobs/" + kLarge + ".weir.json",
                                         "trees/" + kCommit + ".json",
                                         "trees",
                                         "blobs/" + kSmall + ".1234abcd.incomplete",
                                         "",
                                         "odd"};

const std::vector<std::string> kTargets = {
    "../../blobs/" + kSmall,     "../../blobs/" + kLarge,        ".",        "..",
    "../../../../outside",       "../../../../outside/precious", "/nowhere", "config.json",
    "../../../models--org--name"};

// A byte says what is made, the next where; then content up to a zero byte.
class Maker {
 public:
  Maker(std::string_view data, fs::path model) : data_(data), model_(std::move(model)) {}

  void run() {
    for (int entries = 0; entries < 24 && data_.size() > 2; ++entries) make();
  }

 private:
  size_t byte() {
    if (data_.empty()) return 0;
    const auto value = static_cast<unsigned char>(data_[0]);
    data_.remove_prefix(1);
    return value;
  }
  void make() {
    const size_t kind = byte() % 3;
    const fs::path path = model_ / kPaths[byte() % kPaths.size()];
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    // Of this program's own doing nothing may go through a link.
    if (error || fs::weakly_canonical(path.parent_path(), error) != path.parent_path()) return;
    if (kind == 0) {
      fs::create_directory(path, error);
    } else if (kind == 1) {
      fs::create_symlink(kTargets[byte() % kTargets.size()], path, error);
    } else {
      const std::string_view text = data_.substr(0, data_.find('\0'));
      data_.remove_prefix(std::min(text.size() + 1, data_.size()));
      if (!fs::is_symlink(path, error)) std::ofstream(path) << text;
    }
  }

  std::string_view data_;
  const fs::path model_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fs::path folder =
      fs::canonical(fs::temp_directory_path()) / ("cache_fuzz_" + std::to_string(::getpid()));
  const Cache cache((folder / "hub").string());
  fs::remove_all(folder);
  fs::create_directories(folder / "outside");
  std::ofstream(folder / "outside" / "precious") << "precious";
  Maker({reinterpret_cast<const char*>(data), size}, cache.model_folder("org/name")).run();

  for (const char* text : {"org/name", "org/name@v1", "org/name:Q4_0"}) {
    const ModelName name = *ModelName::parse(text);
    if (const auto found = cache.find(name))
      for (const TreeFile& file : found->files) CHECK(is_safe_path(file.path));
    (void)check_model(cache, name, [](int64_t, int64_t) {});
  }
  for (const CachedModel& model : list_models(cache)) CHECK(is_repo_id(model.id));
  CHECK(partial_bytes(cache.blob_path("org/name", kLarge)) >= 0);
  const TreeFile file{.path = "x", .size = 5, .blob = kLarge};
  std::error_code error;
  // Who has made a link of it means it.
  const bool moved = fs::is_symlink(fs::path(cache.model_folder("org/name")) / "blobs", error) ||
                     fs::is_symlink(cache.model_folder("org/name"), error);
  if (!moved) {
    const auto partial = PartialFile::open(cache.blob_path("org/name", kLarge),
                                           cache.lock_path("org/name", kLarge), file);
    if (partial && *partial) CHECK((*partial)->written().bytes() <= 5);
  }
  for (const char* text : {"org/name:Q4_0", "org/name@v1", "org/name"})
    (void)remove_model(cache, *ModelName::parse(text));
  std::ifstream precious(folder / "outside" / "precious");
  CHECK(std::string(std::istreambuf_iterator<char>(precious), {}) == "precious");
  CHECK(std::distance(fs::directory_iterator(folder / "outside"), fs::directory_iterator()) == 1);
  return 0;
}
