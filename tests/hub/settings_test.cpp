#include "hub/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace weir::hub {
namespace {

namespace fs = std::filesystem;

class SettingsTest : public testing::Test {
 protected:
  SettingsTest() {
    for (const char* name :
         {"HF_ENDPOINT", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME",
          "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_OFFLINE",
          "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_IMPLICIT_TOKEN", "HF_HUB_ETAG_TIMEOUT"})
      ::unsetenv(name);
    fs::create_directories(home_ / ".cache" / "huggingface");
    ::setenv("HOME", home_.c_str(), 1);
  }
  ~SettingsTest() override { fs::remove_all(home_); }

  static Settings read() {
    const Result<Settings> settings = Settings::from_environment();
    EXPECT_TRUE(settings) << settings.error().message;
    return settings.value_or(Settings{});
  }

  const fs::path home_ = fs::temp_directory_path() / ("weir_home_" + std::to_string(::getpid()));
};

TEST_F(SettingsTest, TheCacheIsWhereHuggingfaceHubHasIt) {
  EXPECT_EQ(read().cache, home_ / ".cache/huggingface/hub");
  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(read().cache, "/xdg/huggingface/hub");
  ::setenv("HF_HOME", "~/hf/", 1);
  EXPECT_EQ(read().cache, home_ / "hf/hub");
  ::setenv("HUGGINGFACE_HUB_CACHE", "/old", 1);
  EXPECT_EQ(read().cache, "/old");
  ::setenv("HF_HUB_CACHE", "/new/", 1);
  EXPECT_EQ(read().cache, "/new");
}

TEST_F(SettingsTest, ATokenIsFoundAndNeverShown) {
  EXPECT_EQ(read().token, "");
  std::ofstream(home_ / ".cache/huggingface/token") << "of-the-file\n";
  EXPECT_EQ(read().token, "of-the-file");
  ::setenv("HUGGING_FACE_HUB_TOKEN", "older", 1);
  EXPECT_EQ(read().token, "older");
  ::setenv("HF_TOKEN", " newer\r\n", 1);
  EXPECT_EQ(read().token, "newer");
  ::setenv("HF_TOKEN", "sec ret", 1);
  const Result<Settings> wrong = Settings::from_environment();
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message.find("ret"), std::string::npos) << wrong.error().message;
  ::setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1", 1);
  EXPECT_EQ(read().token, "");
}

TEST_F(SettingsTest, EndpointTimesAndOffline) {
  EXPECT_EQ(read().endpoint, "https://huggingface.co");
  ::setenv("HF_ENDPOINT", "http://127.0.0.1:8000/", 1);
  ::setenv("HF_HUB_OFFLINE", "True", 1);
  ::setenv("HF_HUB_ETAG_TIMEOUT", "3", 1);
  const Settings settings = read();
  EXPECT_EQ(settings.endpoint, "http://127.0.0.1:8000");
  EXPECT_TRUE(settings.offline);
  EXPECT_EQ(settings.metadata_time, std::chrono::seconds(3));
  ::setenv("HF_HUB_ETAG_TIMEOUT", "soon", 1);
  EXPECT_FALSE(Settings::from_environment());
  ::unsetenv("HF_HUB_ETAG_TIMEOUT");
  ::setenv("HF_ENDPOINT", "ftp://hub", 1);
  const Result<Settings> wrong = Settings::from_environment();
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message.substr(0, 12), "HF_ENDPOINT:");
}

}  // namespace
}  // namespace weir::hub
