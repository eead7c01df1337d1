// The file of --models: sections, what may stand in them, and errors that name the line.
#include "program/model_presets.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

std::vector<ModelPreset> read(std::string_view text, const Options& base = {}) {
  Result<std::vector<ModelPreset>> presets = parse_presets(base, text, "m.ini");
  EXPECT_TRUE(presets) << presets.error().message;
  return presets ? *std::move(presets) : std::vector<ModelPreset>();
}

std::string error_of(std::string_view text) {
  const auto presets = parse_presets({}, text, "m.ini");
  return presets ? "none" : presets.error().message;
}

TEST(ModelPresets, ASectionIsAModelAndTheStarIsForAll) {
  Options base;
  base.queue = 7;
  base.parallel = 3;
  const auto presets = read(
      "version = 1\n"
      "; a comment\n"
      "[qwen]\n"
      "model = org/Qwen3-4B   # from the hub\n"
      "alias = small, gpt-4o-mini\n"
      "pin = true\n"
      "ctx-size = 8k\n"
      "[*]\n"
      "parallel = 5\n"
      "idle-unload = 600\n"
      "[big]\n"
      "model = \"/models/a b\"\n"
      "idle-unload = 60\n"
      "load-on-startup = yes\n",
      base);
  ASSERT_EQ(presets.size(), 2u);
  EXPECT_EQ(presets[0].id, "qwen");
  EXPECT_EQ(presets[0].options.model, "org/Qwen3-4B");
  EXPECT_EQ(presets[0].options.alias, "small, gpt-4o-mini");
  EXPECT_EQ(presets[0].options.ctx_size, 8192);
  EXPECT_EQ(presets[0].options.idle_unload, 600);
  EXPECT_EQ(presets[0].options.parallel, 5);
  EXPECT_EQ(presets[0].options.queue, 7);
  EXPECT_TRUE(presets[0].pin);
  EXPECT_FALSE(presets[0].load_on_startup);
  EXPECT_EQ(presets[1].options.model, "/models/a b");
  EXPECT_EQ(presets[1].options.idle_unload, 60);
  EXPECT_EQ(presets[1].options.ctx_size, 0);
  EXPECT_TRUE(presets[1].load_on_startup);
}

TEST(ModelPresets, ErrorsNameTheLineAndWhatWasExpected) {
  EXPECT_EQ(error_of(""), "m.ini: expected at least one model, [NAME]; found none");
  EXPECT_EQ(error_of("[a]\nctx-size = 1\n"),
            "m.ini:1: [a] names no model: expected model = PATH or ORG/NAME");
  EXPECT_EQ(error_of("model = x\n"), "m.ini:1: expected a section, [NAME] or [*], before 'model'");
  EXPECT_EQ(error_of("[a\n"), "m.ini:1: expected [NAME]; found '[a'");
  EXPECT_EQ(error_of("[]\n"), "m.ini:1: expected [NAME]; found '[]'");
  EXPECT_EQ(error_of("[a]\nmodel\n"), "m.ini:2: expected KEY = VALUE; found 'model'");
  EXPECT_EQ(error_of("[a]\nmodel = x\n[a]\nmodel = y\n"),
            "m.ini:3: there is a section [a] already");
  EXPECT_EQ(error_of("[a]\nmodle = x\n"),
            "m.ini:2: unknown option 'modle' ('weir --help' lists all)");
  EXPECT_EQ(error_of("[a]\nmodel = x\nport = 80\n"),
            "m.ini:3: --port is the whole server's: give it on the command line or in the file of "
            "--config");
  EXPECT_EQ(error_of("[a]\nmodel = x\npin = maybe\n"),
            "m.ini:3: pin: expected true or false; found 'maybe'");
  EXPECT_EQ(error_of("[a]\nmodel = x\nkv-memory = lots\n"),
            "m.ini:3: kv-memory: expected a size such as 4G or 512M; found 'lots'");
  EXPECT_EQ(error_of("[a]\nmodel = x\nalias = b\n[b]\nmodel = y\n"),
            "m.ini: two models are called 'b'");
}

TEST(ModelPresets, ValuesAreCheckedAsOnTheCommandLine) {
  const std::string error = error_of("[a]\nmodel = x\nprefill-size = 0\n");
  EXPECT_TRUE(error.starts_with("m.ini:1: [a] --prefill-size: expected a number from")) << error;
}

TEST(ModelPresets, WhatIsTheProcessesMayStandInNoSection) {
  for (const char* line : {"threads = 2", "mem-limit = 1G", "api-key = x", "log-level = debug",
                           "responses-store = 1M", "models = other.ini", "load-timeout = 3"})
    EXPECT_NE(error_of("[a]\nmodel = x\n" + std::string(line) + "\n").find("whole server's"),
              std::string::npos)
        << line;
}

}  // namespace
}  // namespace weir
