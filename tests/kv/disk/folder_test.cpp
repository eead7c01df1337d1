#include "kv/disk/folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "kv/disk/disk_world.h"

namespace weir::kv::disk {
namespace {

namespace fs = std::filesystem;

const std::string kOne(32, '1'), kTwo(32, '2');

TEST(DiskFolder, IsTheOwnersAlone) {
  const TestFolder test;
  const std::string root = test.path() + "/prompts/here";
  const auto folder = Folder::open(root, kOne);
  ASSERT_TRUE(folder) << folder.error().message;
  struct stat state {};
  for (const std::string& path : {root, folder->path()}) {
    ASSERT_EQ(::stat(path.c_str(), &state), 0);
    EXPECT_EQ(state.st_mode & 0777, 0700u) << path;
  }
  ASSERT_EQ(::chmod(root.c_str(), 0750), 0);
  const auto open_to_others = Folder::open(root, kTwo);
  ASSERT_FALSE(open_to_others);
  EXPECT_NE(open_to_others.error().message.find("expected mode 0700"), std::string::npos)
      << open_to_others.error().message;
}

TEST(DiskFolder, AnotherUsersIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give a folder away";
  const TestFolder test;
  ASSERT_EQ(::chown(test.path().c_str(), 4321, 4321), 0);
  const auto folder = Folder::open(test.path(), kOne);
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message.find("found one of user 4321"), std::string::npos)
      << folder.error().message;
}

TEST(DiskFolder, OneServerAtATimeHasIt) {
  const TestFolder test;
  {
    const auto first = Folder::open(test.path(), kOne);
    ASSERT_TRUE(first);
    EXPECT_FALSE(Folder::open(test.path(), kOne));
    EXPECT_TRUE(Folder::open(test.path(), kTwo));
  }
  EXPECT_TRUE(Folder::open(test.path(), kOne));
}

void write_file(const std::string& path, size_t bytes) {
  std::ofstream(path, std::ios::binary) << std::string(bytes, 'x');
}

TEST(DiskFolder, ClearingLeavesWhatIsInUseAndWhatIsNotOurs) {
  const TestFolder test;
  const auto used = Folder::open(test.path(), kOne);
  ASSERT_TRUE(used);
  write_file(used->path() + "/000001.kv", 5000);
  { const auto unused = Folder::open(test.path(), kTwo); }
  write_file(test.path() + "/" + kTwo + "/000001.kv", 7000);
  fs::create_directory(test.path() + "/photographs");
  write_file(test.path() + "/photographs/000001.kv", 10);
  EXPECT_EQ(folders_in(test.path())->size(), 2u);
  EXPECT_EQ(clear_folders(test.path()).value(), 7000);
  EXPECT_FALSE(fs::exists(test.path() + "/" + kTwo));
  EXPECT_TRUE(fs::exists(used->path() + "/000001.kv"));
  EXPECT_TRUE(fs::exists(test.path() + "/photographs/000001.kv"));
}

TEST(DiskFolder, TheLongestUnusedGoFirst) {
  const TestFolder test;
  for (const std::string& name : {kOne, kTwo, std::string(32, '3')}) {
    { const auto folder = Folder::open(test.path(), name); }
    write_file(test.path() + "/" + name + "/000001.kv", 1000);
  }
  for (const char* file : {"/lock", "/000001.kv"})
    fs::last_write_time(test.path() + "/" + kTwo + file,
                        fs::file_time_type::clock::now() - std::chrono::hours(1));
  ASSERT_TRUE(shrink_folders(test.path(), 2000));
  EXPECT_FALSE(fs::exists(test.path() + "/" + kTwo));
  EXPECT_EQ(folders_in(test.path())->size(), 2u);
}

}  // namespace
}  // namespace weir::kv::disk
