#include "hub/tree.h"

#include <gtest/gtest.h>

namespace weir::hub {
namespace {

const std::string kSha1(40, 'a');
const std::string kSha256(64, 'b');
const std::string kCommit(40, 'c');

std::string entry(const std::string& path, const std::string& rest = "") {
  return R"({"type":"file","path":")" + path + R"(","size":5,"oid":")" + kSha1 + "\"" + rest + "}";
}

Result<Tree> tree_of(const std::string& page) {
  Tree tree{.commit = kCommit, .files = {}};
  WEIR_TRY(tree.add_page(page));
  WEIR_TRY(tree.finish());
  return tree;
}

TEST(Tree, ReadsFilesAndPassesOverFolders) {
  const Result<Tree> tree =
      tree_of("[" + entry("b.json") + R"(,{"type":"directory","path":"x","oid":"1"},)" +
              entry("a/w.safetensors", R"(,"lfs":{"oid":")" + kSha256 +
                                           R"(","size":7,"pointerSize":130},"xetHash":")" +
                                           kSha256 + "\"") +
              "]");
  ASSERT_TRUE(tree) << tree.error().message;
  ASSERT_EQ(tree->files.size(), 2u);
  EXPECT_EQ(tree->files[0].path, "a/w.safetensors");
  EXPECT_EQ(tree->files[0].blob, kSha256);
  EXPECT_EQ(tree->files[0].size, 7);
  EXPECT_TRUE(tree->files[0].is_large());
  EXPECT_EQ(tree->find("b.json")->blob, kSha1);
  EXPECT_EQ(tree->find("c.json"), nullptr);
}

TEST(Tree, OfTheCacheIsReadAsItWasWritten) {
  const Result<Tree> tree =
      tree_of("[" + entry("b \\\" \xc3\xa9.json") + "," +
              entry("w.gguf", R"(,"lfs":{"oid":")" + kSha256 + R"(","size":5})") + "]");
  ASSERT_TRUE(tree);
  EXPECT_NE(tree->to_json().find(R"("format_version":1)"), std::string::npos);
  const Result<Tree> again = Tree::from_json(tree->to_json(), kCommit);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->to_json(), tree->to_json());
  EXPECT_EQ(again->files[1].pointer, kSha1);
}

TEST(Tree, PathsThatLeaveTheFolderAreRefused) {
  for (const char* path :
       {"../x", "a/../../x", "/etc/passwd", "a//b", "a/", "", ".", "..", "a/./b", "a\\\\..\\\\b",
        "a\\u0000b", "a\\nb", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q"})
    EXPECT_FALSE(tree_of("[" + entry(path) + "]")) << path;
  EXPECT_FALSE(tree_of("[" + entry(std::string(300, 'a')) + "]"));
  EXPECT_TRUE(tree_of("[" + entry("coreml/a/b.mlpackage/Data/com.apple/weights/w.bin") + "]"));
}

TEST(Tree, FilesThatCannotLieBesideEachOtherAreRefused) {
  EXPECT_FALSE(tree_of("[" + entry("a") + "," + entry("a") + "]"));
  EXPECT_FALSE(tree_of("[" + entry("a") + "," + entry("a-b") + "," + entry("a/b") + "]"));
  EXPECT_TRUE(tree_of("[" + entry("a-b") + "," + entry("a/b") + "]"));
}

TEST(Tree, SizesAndHashesMustBeSome) {
  for (const std::string& text :
       {R"({"type":"file","path":"a","size":-1,"oid":")" + kSha1 + "\"}",
        R"({"type":"file","path":"a","size":1.5,"oid":")" + kSha1 + "\"}",
        R"({"type":"file","path":"a","size":99999999999999999,"oid":")" + kSha1 + "\"}",
        R"({"type":"file","path":"a","oid":")" + kSha1 + "\"}",
        std::string(R"({"type":"file","path":"a","size":1,"oid":"../../etc/passwd"})"),
        std::string(R"({"type":"file","path":"a","size":1})"),
        R"({"type":"file","path":"a","size":1,"oid":")" + kSha256 + "\"}",
        entry("a", R"(,"lfs":{"oid":")" + kSha1 + R"(","size":5})"),
        entry("a", R"(,"lfs":{"size":5})"), entry("a", R"(,"lfs":7)"), std::string("7"),
        std::string("null")})
    EXPECT_FALSE(tree_of("[" + text + "]")) << text;
  EXPECT_FALSE(tree_of("{}"));
  EXPECT_FALSE(tree_of("["));
}

}  // namespace
}  // namespace weir::hub
