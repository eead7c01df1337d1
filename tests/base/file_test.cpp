#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
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
  EXPECT_EQ(view.error().message, path + ": not a regular file");
}

}  // namespace
}  // namespace weir
