#include "hub/model_name.h"

#include <gtest/gtest.h>

namespace weir::hub {
namespace {

TEST(ModelName, HasAnIdARevisionAndAFile) {
  for (const auto& [text, id, revision, file] :
       {std::tuple{"org/name", "org/name", "main", ""},
        {"org/name@v1.0", "org/name", "v1.0", ""},
        {"org/name@refs/pr/3", "org/name", "refs/pr/3", ""},
        {"org/name:Q4_K_M", "org/name", "main", "Q4_K_M"},
        {"Org.1/na_me-2@0123456789012345678901234567890123456789:a/b@c.gguf", "Org.1/na_me-2",
         "0123456789012345678901234567890123456789", "a/b@c.gguf"}}) {
    const Result<ModelName> name = ModelName::parse(text);
    ASSERT_TRUE(name) << text << ": " << name.error().message;
    EXPECT_EQ(name->id, id);
    EXPECT_EQ(name->revision, revision);
    EXPECT_EQ(name->file, file);
    EXPECT_EQ(name->text(), text);
  }
}

TEST(ModelName, WhatCouldLeaveAFolderIsNone) {
  for (const std::string text :
       {"name",   "a/b/c",   "../b", "a/..",     "a/b--c",     "a/.b",       "a/b.git", "a b/c",
        "/b",     "a/",      "a/b@", "a/b@..",   "a/b@x/../y", "a/b@/x",     "a/b@x/",  "a/b@.x",
        "a/b@-x", "a/b@x y", "a/b:", "a/b:\x01", "a\\b/c",     "a/b@x.lock", "a/b@x/.y"})
    EXPECT_FALSE(ModelName::parse(text)) << text;
  EXPECT_FALSE(ModelName::parse("a/" + std::string(95, 'b')));
  EXPECT_TRUE(ModelName::parse("a/" + std::string(94, 'b')));
}

TEST(ModelName, PathsAreNotTakenForNames) {
  for (const char* name : {"org/name", "org/name@v/1", "org/name:x/y.gguf", "org/na me"})
    EXPECT_TRUE(ModelName::looks_like(name)) << name;
  for (const char* path :
       {"", "model", "./org/name", "/org/name", "~/name", "a/b/c", "model.gguf", "folder/"})
    EXPECT_FALSE(ModelName::looks_like(path)) << path;
}

}  // namespace
}  // namespace weir::hub
