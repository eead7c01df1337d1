// Names that strangers say lead nowhere but below the folder.
#include "base/file_below.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace weir {
namespace {

namespace fs = std::filesystem;

class FileBelow : public testing::Test {
 protected:
  FileBelow() {
    fs::create_directories(root_ / "in" / "deep");
    write(root_ / "in" / "deep" / "a.png", "picture");
    write(root_ / "secret", "secret");
    fs::create_symlink(root_ / "secret", root_ / "in" / "link");
    fs::create_directory_symlink(root_, root_ / "in" / "up");
    fs::create_directory_symlink(root_ / "in", root_ / "alias");
    ::mkfifo((root_ / "in" / "fifo").c_str(), 0600);
  }
  ~FileBelow() override { fs::remove_all(root_); }

  static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  std::string read(std::string_view path, size_t bytes_max = 100, const char* folder = "in") {
    const auto text = read_file_below((root_ / folder).string(), path, bytes_max);
    return text ? *text : "! " + text.error().message;
  }

  const fs::path root_ = fs::temp_directory_path() / ("weir-below-" + std::to_string(::getpid()));
};

TEST_F(FileBelow, ReadsWhatIsThere) {
  EXPECT_EQ(read("deep/a.png"), "picture");
  EXPECT_EQ(read("deep/a.png", 100, "alias"), "picture") << "the folder itself may be a link";
}

TEST_F(FileBelow, NothingLeadsOut) {
  for (const char* path : {"../secret", "deep/../../secret", "..", ".", "", "/secret", "deep//a.png",
                           "deep/", "./deep/a.png"})
    EXPECT_NE(read(path).find("expected names divided by single slashes"), std::string::npos)
        << path << ": " << read(path);
  for (const char* path : {"link", "up/secret", "up/in/deep/a.png", "deep/a.png/x"})
    EXPECT_NE(read(path).find("symbolic link or no folder"), std::string::npos)
        << path << ": " << read(path);
}

TEST_F(FileBelow, OnlyFilesAreRead) {
  EXPECT_EQ(read("none"), "! none: No such file or directory");
  EXPECT_EQ(read("deep"), "! deep is no regular file");
  EXPECT_EQ(read("fifo"), "! fifo is no regular file");
  EXPECT_EQ(read("deep/a.png", 6), "! deep/a.png has 7 bytes; at most 6 are read");
}

}  // namespace
}  // namespace weir
