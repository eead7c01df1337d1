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
  EXPECT_NE(parsed.error().message.find("--kv-cache"), std::string::npos) << parsed.error().message;
}

TEST(Options, RefusesValuesOutOfRangeAndSaysTheRange) {
  for (const auto& words : std::vector<std::vector<const char*>>{{"--port", "70000"},
                                                                 {"--port", "x"},
                                                                 {"--compute", "slow"},
                                                                 {"--mem-limit", "4Q"},
                                                                 {"--mem-limit", "-1"},
                                                                 {"--prefill-size", "1"},
                                                                 {"--mem-limit", "nan"},
                                                                 {"--max-body", "2G"},
                                                                 {"--temp", "-1"},
                                                                 {"--temp", "nan"},
                                                                 {"--top-p", "7"},
                                                                 {"--top-k", "-2"},
                                                                 {"--min-p", "1.5"},
                                                                 {"--repeat-penalty", "0"},
                                                                 {"--api-key", ""},
                                                                 {"--api-key", " , "},
                                                                 {"--drain-seconds", "-1"},
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

TEST(Options, TellUnsetFromZero) {
  const auto parsed = parse({"--temp", "0", "--top-k", "-1", "--api-key", " a, b ,"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->options.temp, 0);
  EXPECT_EQ(parsed->options.top_k, -1);
  EXPECT_FALSE(parsed->options.top_p);
  EXPECT_EQ(split_list(parsed->options.api_key), (std::vector<std::string>{"a", "b"}));
}

TEST(Options, KeysMayBeRepeated) {
  const auto parsed = parse({"--api-key", "a", "--api-key=b,c", "--api-key", "d"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(split_list(parsed->options.api_key), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_FALSE(parse({"--api-key-file", ""}));
}

TEST(Options, AnEmptyKeyInTheEnvironmentIsNoOpenServer) {
  ::setenv("WEIR_API_KEY", "", 1);
  const auto served = parse({}), measured = parse({"bench"});
  ::unsetenv("WEIR_API_KEY");
  EXPECT_FALSE(served);
  EXPECT_TRUE(measured) << "bench has no such option";
}

TEST(Options, AConfigFileIsReadAndItsMistakesAreNamed) {
  const std::string path = testing::TempDir() + "/weir_options_test.conf";
  const auto with = [&](const std::string& text) {
    std::ofstream(path) << text;
    return parse({"--config", path.c_str(), "--queue", "9"});
  };
  // Keys of other commands may stand there; the command line wins.
  const auto good = with("port=7070\nqueue=5\nrepetitions=3\nno-prefix-cache=true\n# why\n");
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(good->options.port, 7070);
  EXPECT_EQ(good->options.queue, 9);
  EXPECT_FALSE(good->options.prefix_cache);
  const auto mistyped = with("port=7070\nkv-cahce=f16\n");
  ASSERT_FALSE(mistyped);
  EXPECT_NE(mistyped.error().message.find("'kv-cahce'; did you mean '--kv-cache'"),
            std::string::npos)
      << mistyped.error().message;
  EXPECT_FALSE(with("[serve]\nport=7070\n"));
  EXPECT_FALSE(with("api-key=\n"));
  std::remove(path.c_str());
}

TEST(Options, HelpListsEveryOptionOfTheCommand) {
  const auto parsed = parse({"bench", "--help"});
  ASSERT_TRUE(parsed);
  EXPECT_NE(parsed->print.find("--repetitions"), std::string::npos);
  EXPECT_EQ(parsed->print.find("--cors"), std::string::npos);
}

TEST(Options, PackTakesWhatItNeedsAndNoMore) {
  const auto help = parse({"pack", "--help"});
  ASSERT_TRUE(help);
  for (const char* option : {"--model", "--threads", "--output FILE", "--disk-reserve SIZE"})
    EXPECT_NE(help->print.find(option), std::string::npos) << option;
  EXPECT_EQ(help->print.find("--expert-memory"), std::string::npos);
  const auto parsed = parse({"pack", "--model", "m", "--disk-reserve", "1G", "--output", "f"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->options.command, Command::kPack);
  EXPECT_EQ(parsed->options.disk_reserve, int64_t{1} << 30);
  EXPECT_EQ(parsed->options.output, "f");
  EXPECT_EQ(parse({"pack"})->options.disk_reserve, int64_t{5} << 30);
  EXPECT_FALSE(parse({"--disk-reserve", "1G"})) << "serving writes nothing";
}

TEST(Options, TheReferencePageIsUpToDate) {
  const std::string path = std::string(WEIR_SOURCE_DIR) + "/docs/options.md";
  if (::getenv("WEIR_WRITE_PAGES")) std::ofstream(path) << options_page();
  std::ifstream file(path);
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(page, options_page()) << "WEIR_WRITE_PAGES=1 program_test writes docs/options.md";
}

}  // namespace
}  // namespace weir
