#include "options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

namespace weir {
namespace {

Result<ParsedOptions> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "weir");
  return parse_options(static_cast<int>(words.size()), words.data());
}

TEST(Options, ServesWhenNoCommandIsNamed) {
  const auto parsed = parse({"--port", "8080", "--mem-limit", "4G", "--no-prefix-cache"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->options.command, Command::kServe);
  EXPECT_EQ(parsed->options.port, 8080);
  EXPECT_EQ(parsed->options.mem_limit, int64_t{4} << 30);
  EXPECT_FALSE(parsed->options.prefix_cache);
}

TEST(Options, NamesTheNearestOfAnUnknownFlag) {
  const auto parsed = parse({"--kv-cahce", "f16"});
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().message.find("--kv-cache"), std::string::npos)
      << parsed.error().message;
}

TEST(Options, RefusesValuesOutOfRangeAndSaysTheRange) {
  for (const auto& words : std::vector<std::vector<const char*>>{{"--port", "70000"},
                                                                 {"--port", "x"},
                                                                 {"--compute", "slow"},
                                                                 {"--mem-limit", "4Q"},
                                                                 {"--mem-limit", "-1"},
                                                                 {"--prefill-size", "1"},
                                                                 {"frobnicate"},
                                                                 {"perplexity"}}) {
    EXPECT_FALSE(parse(words)) << words[0];
  }
}

TEST(Options, TheCommandLineWinsOverTheEnvironment) {
  ::setenv("WEIR_PORT", "7777", 1);
  const auto from_environment = parse({});
  const auto from_line = parse({"--port", "8888"});
  ::unsetenv("WEIR_PORT");
  ASSERT_TRUE(from_environment && from_line);
  EXPECT_EQ(from_environment->options.port, 7777);
  EXPECT_EQ(from_line->options.port, 8888);
}

TEST(Options, HelpListsEveryOptionOfTheCommand) {
  const auto parsed = parse({"bench", "--help"});
  ASSERT_TRUE(parsed);
  EXPECT_NE(parsed->print.find("--repetitions"), std::string::npos);
  EXPECT_EQ(parsed->print.find("--cors"), std::string::npos);
}

TEST(Options, TheReferencePageIsUpToDate) {
  std::ifstream file(std::string(WEIR_SOURCE_DIR) + "/docs/options.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(page, options_page()) << "write options_page() to docs/options.md";
}

}  // namespace
}  // namespace weir
