#include "program/key_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace weir {
namespace {

class KeyFiles : public testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(path_) << text; }

  const std::string path_ = testing::TempDir() + "weir_key_file_" + std::to_string(::getpid());
};

TEST_F(KeyFiles, AreJoinedByTheKeysOfTheCommandLine) {
  write("sk-one name=alice\n");
  Options options;
  options.api_key_file = path_;
  options.api_key = "sk-two, sk-three";
  auto keys = load_keys(options);
  ASSERT_TRUE(keys) << keys.error().message;
  ASSERT_EQ(keys->size(), 3u);
  EXPECT_EQ((*keys)[0].name, "alice");
  EXPECT_EQ((*keys)[2].secret, "sk-three");
  options.api_key = "sk-one";
  EXPECT_FALSE(load_keys(options));  // The same key twice.
  options.api_key_file = "/nowhere";
  keys = load_keys(options);
  ASSERT_FALSE(keys);
  EXPECT_NE(keys.error().message.find("/nowhere: cannot open"), std::string::npos);
  EXPECT_TRUE(load_keys(Options())->empty());
}

TEST_F(KeyFiles, ThatAllMayReadAreTold) {
  write("sk-one\n");
  for (const mode_t mode : {0600u, 0640u, 0660u}) {
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    EXPECT_EQ(exposure("--api-key-file", path_), "");
  }
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  EXPECT_EQ(exposure("--api-key-file", path_),
            "--api-key-file " + path_ +
                " can be read by every user of this machine (mode 0644): chmod 600 " + path_);
  EXPECT_EQ(exposure("--api-key-file", ""), "");
  EXPECT_EQ(exposure("--api-key-file", "/nowhere"), "");
}

}  // namespace
}  // namespace weir
