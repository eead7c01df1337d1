#include "hub/selection.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::hub {
namespace {

Tree tree_of(std::vector<std::string> paths) {
  Tree tree;
  std::ranges::sort(paths);
  for (std::string& path : paths)
    tree.files.push_back({.path = std::move(path), .size = 1, .blob = std::string(40, 'a')});
  return tree;
}

std::vector<std::string> chosen(const Tree& tree, const std::string& file = "",
                                const std::vector<std::string>& include = {},
                                const std::string& index = "") {
  const Result<std::vector<TreeFile>> files = select_files(tree, file, include, index);
  std::vector<std::string> paths;
  if (!files) return {"error: " + files.error().message};
  for (const TreeFile& each : *files) paths.push_back(each.path);
  return paths;
}

using Paths = std::vector<std::string>;

TEST(Selection, TakesWhatIsReadAndLeavesTheRest) {
  const Tree tree = tree_of({"config.json",
                             "generation_config.json",
                             "model.safetensors",
                             "tokenizer.json",
                             "tokenizer_config.json",
                             "chat_template.jinja",
                             "LICENSE",
                             "README.md",
                             ".gitattributes",
                             "pytorch_model.bin",
                             "model.onnx",
                             "tf_model.h5",
                             "flax_model.msgpack",
                             "original/consolidated.00.pth",
                             "consolidated.safetensors",
                             "model-Q4_0.gguf",
                             "onnx/model.onnx",
                             "onnx/config.json",
                             "1_Pooling/config.json",
                             "modules.json",
                             "additional_chat_templates/tool_use.jinja",
                             "preprocessor_config.json",
                             "vae/model.safetensors"});
  EXPECT_EQ(chosen(tree),
            (Paths{"1_Pooling/config.json", "LICENSE", "additional_chat_templates/tool_use.jinja",
                   "chat_template.jinja", "config.json", "generation_config.json",
                   "model.safetensors", "modules.json", "preprocessor_config.json",
                   "tokenizer.json", "tokenizer_config.json"}));
}

TEST(Selection, TakesTheShardsOfTheIndex) {
  const Tree tree = tree_of({"config.json", "model-1.safetensors", "model-2.safetensors",
                             "other.safetensors", "model.safetensors.index.json"});
  const std::string index =
      R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors","c":"model-1.safetensors"}})";
  EXPECT_TRUE(wants_index(tree, "", {}));
  EXPECT_EQ(chosen(tree, "", {}, index),
            (Paths{"config.json", "model-1.safetensors", "model-2.safetensors",
                   "model.safetensors.index.json"}));
  for (const char* wrong :
       {R"({"weight_map":{"a":"gone.safetensors"}})", R"({"weight_map":{"a":"../x.safetensors"}})",
        R"({"weight_map":{"a":7}})", R"({"weight_map":[]})", "[]", "{"})
    EXPECT_EQ(chosen(tree, "", {}, wrong)[0].substr(0, 6), "error:") << wrong;
}

TEST(Selection, FindsGgufFilesByNameAndQuantisation) {
  const Tree tree =
      tree_of({"config.json", "m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "m-q8_0.gguf", "mmproj-Q4_K_M.gguf",
               "BF16/m-BF16-00001-of-00002.gguf", "BF16/m-BF16-00002-of-00002.gguf",
               "bad-00001-of-00003.gguf", "bad-00003-of-00003.gguf"});
  EXPECT_EQ(chosen(tree, "Q4_K_M"), Paths{"m-Q4_K_M.gguf"});
  EXPECT_EQ(chosen(tree, "q4_k_s"), Paths{"m-Q4_K_S.gguf"});
  EXPECT_EQ(chosen(tree, "Q8_0"), Paths{"m-q8_0.gguf"});
  EXPECT_EQ(chosen(tree, "m-q8_0.gguf"), Paths{"m-q8_0.gguf"});
  const Paths parts{"BF16/m-BF16-00001-of-00002.gguf", "BF16/m-BF16-00002-of-00002.gguf"};
  EXPECT_EQ(chosen(tree, "BF16"), parts);
  EXPECT_EQ(chosen(tree, parts[1]), parts);
  EXPECT_EQ(chosen(tree, "bad"), Paths{"error: bad.gguf: expected 3 parts, found 2"});
  // Part of a longer name, none, several.
  for (const char* name : {"Q4_K", "Q2_K", "m"})
    EXPECT_NE(chosen(tree, name)[0].find("m-Q4_K_M.gguf"), std::string::npos) << name;
  // No safetensors: the names are told.
  EXPECT_NE(chosen(tree)[0].find("ORG/NAME:Q4_K_M"), std::string::npos) << chosen(tree)[0];
  EXPECT_EQ(chosen(tree_of({"only-Q4_0.gguf", "README.md"})), Paths{"only-Q4_0.gguf"});
}

TEST(Selection, IncludesWhatMatches) {
  const Tree tree = tree_of({"a.json", "b/c.json", "b/d.bin"});
  EXPECT_EQ(chosen(tree, "", {"*.json"}), (Paths{"a.json", "b/c.json"}));
  EXPECT_EQ(chosen(tree, "", {"b/?.bin", "a*"}), (Paths{"a.json", "b/d.bin"}));
  EXPECT_EQ(chosen(tree, "", {"x*"})[0].substr(0, 6), "error:");
}

TEST(Selection, GlobsTakeNoLongTime) {
  EXPECT_TRUE(matches_glob("*a*b*", "xxaxxbxx"));
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_FALSE(matches_glob("?", ""));
  EXPECT_FALSE(matches_glob("a*b", "ab/c"));
  EXPECT_FALSE(matches_glob(std::string(500, '*') + "b", std::string(1000, 'a')));
}

}  // namespace
}  // namespace weir::hub
