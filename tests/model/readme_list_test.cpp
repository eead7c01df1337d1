// README's list of architectures is the table of families.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "model/families.h"

namespace weir::model {
namespace {

constexpr std::string_view kUsual = "ForCausalLM";
constexpr std::string_view kBegin =
    "with `ForCausalLM` after the name where it ends otherwise:\n\n";
constexpr size_t kColumns = 120;

// Names in lines, without what most of them end with.
std::string list() {
  std::string text, line;
  const std::vector<std::string_view> names = known_architectures();
  for (size_t i = 0; i < names.size(); ++i) {
    std::string_view name = names[i];
    if (name.ends_with(kUsual)) name.remove_suffix(kUsual.size());
    const std::string word = std::string(name) + (i + 1 < names.size() ? "," : ".");
    if (line.size() + 1 + word.size() > kColumns) {
      text += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return text + line + "\n";
}

TEST(Readme, ListsTheArchitecturesOfTheTable) {
  const std::string path = WEIR_SOURCE_DIR "/README.md";
  std::stringstream read;
  read << std::ifstream(path).rdbuf();
  std::string page = read.str();
  const size_t begin = page.find(kBegin);
  ASSERT_NE(begin, page.npos) << "README.md: expected '" << kBegin << "'";
  const size_t first = begin + kBegin.size(), end = page.find("\n\n", first);
  ASSERT_NE(end, page.npos);
  if (std::getenv("WEIR_WRITE_PAGES") != nullptr)
    std::ofstream(path) << page.replace(first, end + 1 - first, list());
  else
    EXPECT_EQ(page.substr(first, end + 1 - first), list())
        << "WEIR_WRITE_PAGES=1 model_test writes it into README.md";
}

}  // namespace
}  // namespace weir::model
