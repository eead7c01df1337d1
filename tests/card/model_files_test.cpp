#include "card/model_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "card/model_card.h"

namespace weir::card {
namespace {

class Folders : public testing::Test {
 protected:
  Folders() { std::filesystem::create_directories(root_); }
  ~Folders() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text = "{}") const {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string error(const std::string& path) const {
    const auto files = ModelFiles::open(root_ + "/" + path);
    return files ? "" : files.error().message;
  }
  // "NAME at FOLDER", below the root.
  std::string opened(const std::string& path) const {
    const auto files = ModelFiles::open(root_ + "/" + path);
    if (!files) return files.error().message;
    return files->name() + " at " + files->folder().substr(root_.size() + 1);
  }
  const std::string root_ =
      (std::filesystem::temp_directory_path() / ("weir_folders_" + std::to_string(::getpid())))
          .string();
};

TEST_F(Folders, AreToldFromFilesAndFromNothing) {
  write("model/config.json");
  write("model/model.safetensors");
  write("alone.safetensors");
  write("alone.gguf");
  EXPECT_EQ(opened("model/"), "model at model");
  EXPECT_TRUE(error("nothing").ends_with("found no such folder")) << error("nothing");
  EXPECT_TRUE(
      error("model/model.safetensors")
          .ends_with("found a file; the folder it lies in is one: --model " + root_ + "/model"))
      << error("model/model.safetensors");
  EXPECT_TRUE(error("alone.safetensors").ends_with("found a file")) << error("alone.safetensors");
  EXPECT_EQ(error("alone.gguf"), "");
}

// A download that is not over, or a mistake: nobody wants the model without its chat template then.
TEST_F(Folders, TellWhatIsNotThereFromWhatCannotBeRead) {
  write("m/config.json");
  write("m/whole.json", "text");
  std::filesystem::create_directories(root_ + "/m/folder.json");
  std::filesystem::create_symlink("whole.json", root_ + "/m/link.json");
  std::filesystem::create_symlink("../../blobs/0", root_ + "/m/broken.json");
  std::filesystem::create_symlink("nowhere", root_ + "/m/lost");
  ASSERT_EQ(::mkfifo((root_ + "/m/fifo.json").c_str(), 0600), 0);
  const auto files = ModelFiles::open(root_ + "/m");
  ASSERT_TRUE(files);
  for (const char* absent : {"none.json", "none/none.json", "folder.json/none.json"})
    EXPECT_FALSE(files->has(absent)) << absent;
  const auto said = [&](const std::string& file) {
    EXPECT_TRUE(files->has(file)) << file;
    const auto view = files->open_file(file);
    const std::string text = view ? std::string(view->text()) : view.error().message;
    const std::string path = root_ + "/m/" + file + ": ";
    return text.starts_with(path) ? text.substr(path.size()) : text;
  };
  EXPECT_EQ(said("whole.json"), "text");
  EXPECT_EQ(said("link.json"), "text");
  EXPECT_EQ(said("folder.json"), "expected a regular file; found a folder");
  EXPECT_EQ(said("fifo.json"), "expected a regular file; found a FIFO");
  EXPECT_EQ(said("broken.json"),
            "expected a regular file; found a link to ../../blobs/0, which is not there (is the "
            "download over?)");
  EXPECT_EQ(said("lost/none.json"), "cannot open: No such file or directory");
  EXPECT_EQ(said("whole.json/none.json"), "cannot open: Not a directory");
}

TEST_F(Folders, OfTheHubsCacheAreTheirSnapshotUnderTheModelsName) {
  const std::string cache = "models--org--some--model", first = cache + "/snapshots/aaa";
  write(cache + "/blobs/0", "");
  const auto empty = ModelFiles::open(root_ + "/" + cache);
  ASSERT_TRUE(empty);
  const auto card = ModelCard::open(*empty);
  ASSERT_FALSE(card);
  EXPECT_EQ(card.error().message,
            root_ + "/" + cache + ": expected config.json in this folder; it is not there");
  std::filesystem::create_directories(root_ + "/" + cache + "/snapshots");
  EXPECT_NE(error(cache).find("expected a snapshot of it in snapshots; found none"),
            std::string::npos);
  write(first + "/config.json");
  EXPECT_EQ(opened(cache), "org/some--model at " + first) << "the only one";
  EXPECT_EQ(opened(first), "org/some--model at " + first);
  write(cache + "/snapshots/bbb/config.json");
  EXPECT_NE(error(cache).find("expected refs/main to name one of its 2 snapshots; found no such "
                              "file (give the folder of one: aaa, bbb)"),
            std::string::npos)
      << error(cache);
  write(cache + "/refs/main", "bbb\n");
  EXPECT_EQ(opened(cache), "org/some--model at " + cache + "/snapshots/bbb");
  EXPECT_EQ(opened(first), "org/some--model at " + first) << "given by its own path";
  write(cache + "/refs/main", "ccc");
  EXPECT_NE(error(cache).find("expected the snapshot ccc that refs/main names; found aaa, bbb"),
            std::string::npos);
  std::filesystem::remove(root_ + "/" + cache + "/refs/main");
  ASSERT_EQ(::mkfifo((root_ + "/" + cache + "/refs/main").c_str(), 0600), 0);
  EXPECT_TRUE(error(cache).ends_with("refs/main: expected a regular file; found a FIFO"));
  write("models--gpt2/snapshots/ddd/config.json");
  EXPECT_EQ(opened("models--gpt2"), "gpt2 at models--gpt2/snapshots/ddd");
  write("models--a--b/config.json");
  EXPECT_EQ(opened("models--a--b"), "models--a--b at models--a--b") << "a folder like any other";
  write("own/snapshots/eee/config.json");
  EXPECT_EQ(opened("own/snapshots/eee"), "eee at own/snapshots/eee");
}

TEST(Beginnings, AreFilesLikeOthersButForWhatIsNotKnown) {
  const ModelFiles files = ModelFiles::beginnings(
      "org/name",
      {{"config.json", R"({"a":1})", 7}, {"x.gguf", "", 9}, {"w.safetensors", "ab", 5}});
  EXPECT_EQ(files.name(), "org/name");
  EXPECT_EQ(files.where(), "org/name");
  EXPECT_EQ(files.folder(), "");
  EXPECT_TRUE(files.gguf().empty()) << "there is a config.json";
  EXPECT_TRUE(files.has("w.safetensors"));
  EXPECT_FALSE(files.has("other"));
  EXPECT_EQ(*files.read_text("config.json"), R"({"a":1})");
  const auto weights = files.open_file("w.safetensors");
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->text(), std::string_view("ab\0\0\0", 5));
  EXPECT_EQ(weights->name(), "org/name/w.safetensors");
  const auto none = files.open_file("other");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "org/name: expected a file other, found none");
}

TEST(Beginnings, OfGgufFilesAreOneModel) {
  const ModelFiles files = ModelFiles::beginnings(
      "org/name:Q4_0", {{"m-00001-of-00002.gguf", "GGUF", 9}, {"m-00002-of-00002.gguf", "", 9}});
  EXPECT_EQ(files.gguf(),
            (std::vector<std::string>{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}));
  EXPECT_EQ(files.path(), "");
  EXPECT_EQ(files.where(), "org/name:Q4_0");
}

}  // namespace
}  // namespace weir::card
