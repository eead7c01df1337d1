// tests/e2e/packaging_test.py has bash complete by it.
#include "program/completion.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Completion, ValuesThatAreWordsAreOfferedAndPlaceholdersAreNot) {
  EXPECT_TRUE(has(bash_completion(), "--thinking) COMPREPLY=($(compgen -W 'on off auto'"));
  // SIZE|auto.
  EXPECT_TRUE(has(bash_completion(), "--expert-memory) COMPREPLY=($(compgen -W 'auto'"));
  EXPECT_TRUE(has(zsh_completion(),
                  "'*--isa[Use these kernels instead of the processors best]:"
                  "scalar|avx2|avx512|amx:(scalar avx2 avx512 amx)'"));
  EXPECT_TRUE(has(fish_completion(), "-l thinking -x -a 'on off auto'"));
}

TEST(Completion, FilesAndFoldersAreOfferedAsPaths) {
  EXPECT_TRUE(has(bash_completion(), "--model|-m) compopt -o filenames"));
  EXPECT_TRUE(has(zsh_completion(), "'*--model["));
  EXPECT_TRUE(has(zsh_completion(), "]:MODEL:_files'"));
  EXPECT_TRUE(has(fish_completion(), "-l model -s m -r -F"));
  EXPECT_TRUE(has(bash_completion(), "--reasoning-budget-message) return ;;"));
}

TEST(Completion, SwitchesTakeNothing) {
  EXPECT_FALSE(has(bash_completion(), "    --offline)"));
  EXPECT_TRUE(has(fish_completion(), "-l offline -d "));
}

}  // namespace
}  // namespace weir
