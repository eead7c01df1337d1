#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace weir {
namespace {

// Without O_NONBLOCK this would wait for a writer, and so for ever.
TEST(FileView, RefusesAFifoWithoutWaiting) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("weir_fifo_" + std::to_string(::getpid())))
          .string();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto view = FileView::map(path);
  ::unlink(path.c_str());
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().message, path + ": expected a regular file; found a FIFO");
}

TEST(FileView, KnowsWhatBecameOfItsFile) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("weir_view_" + std::to_string(::getpid())))
          .string();
  std::ofstream(path) << "0123456789";
  struct stat before {};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  auto mapped = FileView::map(path);
  ASSERT_TRUE(mapped);
  const FileView view = std::move(*mapped);
  EXPECT_FALSE(mapped->mapped());
  EXPECT_EQ(view.state().change, FileChange::kNone);

  std::filesystem::rename(path, path + ".old");
  EXPECT_EQ(view.state().change, FileChange::kReplaced);
  EXPECT_TRUE(view.check_unchanged()) << "what is mapped is as it was";
  std::filesystem::rename(path + ".old", path);
  EXPECT_EQ(view.state().change, FileChange::kNone);

  std::ofstream(path, std::ios::in) << "9";
  const timespec times[2] = {before.st_atim, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_EQ(view.state().change, FileChange::kModified);
  ASSERT_FALSE(view.check_unchanged());
  EXPECT_NE(view.check_unchanged().error().message.find("written to since"), std::string::npos);

  std::filesystem::resize_file(path, 4);
  EXPECT_EQ(view.state().change, FileChange::kTruncated);
  EXPECT_EQ(view.state().bytes, 4u);
  EXPECT_EQ(view.state().opened_bytes, 10u);
  std::filesystem::remove(path);
  EXPECT_TRUE(FileView::borrow("x", {}).check_unchanged());
}

// A terabyte of which eleven bytes are known.
TEST(FileView, OfABeginningReadsAsZerosBeyond) {
  constexpr uint64_t kBytes = uint64_t{1} << 40;
  auto made = FileView::beginning("org/name/f", "known bytes", kBytes);
  ASSERT_TRUE(made) << made.error().message;
  const FileView view = std::move(*made);
  EXPECT_EQ(view.name(), "org/name/f");
  EXPECT_EQ(view.bytes().size(), kBytes);
  EXPECT_TRUE(view.text().starts_with(std::string_view("known bytes\0", 12)));
  EXPECT_EQ(view.text()[kBytes / 2], '\0');
  EXPECT_EQ(view.text().back(), '\0');
  EXPECT_TRUE(view.only_beginning());
  EXPECT_FALSE(view.mapped());
  EXPECT_TRUE(view.check_unchanged());
  view.drop(0, kBytes);
  EXPECT_TRUE(view.text().starts_with("known"));
  const auto empty = FileView::beginning("f", "", 0);
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->bytes().empty());
  const auto large = FileView::beginning("f", "", UINT64_MAX / 2);
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message.find("no addresses for a file of"), std::string::npos);
}

}  // namespace
}  // namespace weir
