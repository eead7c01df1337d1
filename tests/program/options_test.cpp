#include "program/options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
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

TEST(Options, FormatsOfKeysAndValues) {
  for (const kv::Format format : {kv::Format::kF16, kv::Format::kF32, kv::Format::kInt8,
                                  kv::Format::kTq4, kv::Format::kTq3}) {
    const auto parsed = parse({"--kv-cache", format.name()});
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->options.kv_cache, format);
  }
  EXPECT_FALSE(parse({"--kv-cache", "q8_0"}));
  EXPECT_TRUE(parse({"--turbo-kv"})->options.turbo_kv);
  EXPECT_TRUE(parse({"--turbo-kv", "--kv-cache", "tq4"}));
  EXPECT_FALSE(parse({"--turbo-kv", "--kv-cache", "int8"}));
}

TEST(Options, WordsStandForValuesAndAWrongOneIsToldAll) {
  const auto parsed = parse({"--compute", "exact", "--thinking", "off", "--ssd-io", "pread"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->options.compute, model::Compute::kExact);
  EXPECT_EQ(parsed->options.thinking, false);
  EXPECT_EQ(parsed->options.ssd_io, ExpertReads::kPread);
  EXPECT_FALSE(parsed->options.kv_cache);
  EXPECT_EQ(parsed->options.manage, api::Manage::kAuto);
  EXPECT_EQ(parse({"--manage", "off"})->options.manage, api::Manage::kOff);
  EXPECT_EQ(parse({"--manage=on"})->options.manage, api::Manage::kOn);
  EXPECT_FALSE(parse({"--manage", "yes"}));
  const auto wrong = parse({"--compute", "slow"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "--compute: expected one of fast, exact; found 'slow'");
  EXPECT_FALSE(parse({"--ssd-io", "page-cache"}));
  EXPECT_TRUE(parse({"bench", "--ssd-io", "page-cache"}));
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
  const std::string path = testing::TempDir() + "weir_options_" + std::to_string(::getpid());
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
  const auto commented = with("port=80  # web\nhost='a # b' # c\nchat-template=#x\nalias=\"n\"\n");
  ASSERT_TRUE(commented) << commented.error().message;
  EXPECT_EQ(commented->options.port, 80);
  EXPECT_EQ(commented->options.host, "a # b");
  EXPECT_EQ(commented->options.alias, "n");
  EXPECT_EQ(commented->options.chat_template, "#x");
  const auto mistyped = with("port=7070\nkv-cahce=f16\n");
  ASSERT_FALSE(mistyped);
  EXPECT_NE(mistyped.error().message.find("'kv-cahce'; did you mean '--kv-cache'"),
            std::string::npos)
      << mistyped.error().message;
  EXPECT_FALSE(with("[serve]\nport=7070\n"));
  EXPECT_FALSE(with("api-key=\n"));
  std::remove(path.c_str());
}

std::string error_of(std::vector<const char*> words) {
  const auto parsed = parse(std::move(words));
  return parsed ? "" : parsed.error().message;
}

TEST(Options, SayInTheirOwnWordsWhatWasExpectedAndFound) {
  EXPECT_EQ(error_of({"--port", "x"}), "--port: expected a whole number; found 'x'");
  EXPECT_EQ(error_of({"--port", "99999999999"}),
            "--port: expected a whole number; found '99999999999'");
  EXPECT_EQ(error_of({"--temp=warm"}), "--temp: expected a number; found 'warm'");
  EXPECT_EQ(error_of({"-c", "4q"}),
            "-c: expected a number of tokens such as 4096, 4k or 32K; found '4q'");
  EXPECT_EQ(error_of({"--ctx-size", "4.5k"}),
            "--ctx-size: expected a number of tokens such as 4096, 4k or 32K; found '4.5k'");
  EXPECT_EQ(error_of({"--ctx-size", "4G"}),
            "--ctx-size: expected a number of tokens such as 4096, 4k or 32K; found '4G'");
  EXPECT_EQ(error_of({"--kv-memory", "some"}),
            "--kv-memory: expected a size such as 4G or 512M; found 'some'");
  EXPECT_EQ(error_of({"--model"}), "--model: expected a value (MODEL); found none");
  EXPECT_EQ(error_of({"--model", "--port", "1"}),
            "--model: expected a value (MODEL); found the option '--port'");
  EXPECT_EQ(error_of({"--stream-experts=maybe"}),
            "--stream-experts: expected no value, or true or false; found 'maybe'");
  EXPECT_EQ(error_of({"--port", "1", "folder"}),
            "expected an option; found 'folder' (a model's folder is named by --model)");
  EXPECT_EQ(error_of({"--cors", "*", "--queue", "0"}),
            "--queue: expected a number from 1 to 1048576; found 0");
  ::setenv("WEIR_PORT", "x", 1);
  EXPECT_EQ(error_of({}), "WEIR_PORT: expected a whole number; found 'x'");
  ::unsetenv("WEIR_PORT");
}

TEST(Options, LeaveTheAddressOfAKubernetesServiceAlone) {
  ::setenv("WEIR_PORT", "tcp://10.0.0.1:5413", 1);
  const auto parsed = parse({});
  ::unsetenv("WEIR_PORT");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->options.port, Options().port);
}

TEST(Options, TakeAnEmptyVariableWhereNothingIsAValue) {
  ::setenv("WEIR_REASONING_BUDGET_MESSAGE", "", 1);
  ::setenv("WEIR_ALIAS", "", 1);
  const auto parsed = parse({});
  ::unsetenv("WEIR_REASONING_BUDGET_MESSAGE");
  ::unsetenv("WEIR_ALIAS");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->options.reasoning_budget_message, "");
  EXPECT_EQ(parsed->options.alias, "");
}

TEST(Options, CountTokensInThousandsToo) {
  const auto parsed = parse({"--ctx-size", "4k", "--max-tokens=32K", "--prefill-size", "600"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->options.ctx_size, 4096);
  EXPECT_EQ(parsed->options.max_tokens, 32768);
  EXPECT_EQ(parsed->options.prefill_size, 600);
}

TEST(Options, TakeTheShortNamesOfOtherServers) {
  const auto parsed = parse({"-m", "folder", "-c", "8k", "-t=3", "-np", "4", "-a", "x,y"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->options.model, "folder");
  EXPECT_EQ(parsed->options.ctx_size, 8192);
  EXPECT_EQ(parsed->options.threads, 3);
  EXPECT_EQ(parsed->options.parallel, 4);
  EXPECT_EQ(parsed->options.alias, "x,y");
  const auto odd = parse({"-m", "xm", "--host", "", "--top-k", "-1", "-c", "0"});
  ASSERT_TRUE(odd) << odd.error().message;
  EXPECT_EQ(odd->options.model, "xm") << "a value may end like a short name";
}

TEST(Options, AnswerOtherServersNamesWithASentence) {
  for (const auto& [flag, part] :
       std::vector<std::pair<const char*, const char*>>{{"-ngl", "computes on the processor"},
                                                        {"--n-gpu-layers=99", "layers to move"},
                                                        {"-fa", "works in blocks"},
                                                        {"--lora", "--lora-modules NAME=PATH"},
                                                        {"-hf", "--model ORG/NAME"},
                                                        {"--max-model-len", "--ctx-size"},
                                                        {"--num-ctx", "--ctx-size"},
                                                        {"--served-model-name", "--alias"},
                                                        {"-ub", "--prefill-size"},
                                                        {"--tensor-parallel-size", "one process"},
                                                        {"--gpu-memory-utilization", "--mem-limit"},
                                                        {"--hf-overrides", "--config-override"}}) {
    const std::string error = error_of({flag, "1"});
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_EQ(error.find("did you mean"), std::string::npos) << error;
  }
  EXPECT_EQ(error_of({"-q9", "1"}), "unknown option '-q9' ('weir --help' lists all)");
  EXPECT_EQ(error_of({"--output", "f"}),
            "unknown option '--output' of 'weir serve': it is one of pack ('weir --help' lists "
            "all)");
  EXPECT_NE(error_of({"push", "llama3"}).find("Weir makes and sends no models"), std::string::npos);
}

TEST(Options, CommandsTakeTheirModelAsAWord) {
  const auto pull = parse({"pull", "org/name@v1:Q4_K_M", "--include", "*.json", "--include", "a*",
                           "--dry-run", "--json", "--disk-reserve", "1G"});
  ASSERT_TRUE(pull) << pull.error().message;
  EXPECT_EQ(pull->options.command, Command::kPull);
  EXPECT_EQ(pull->options.model, "org/name@v1:Q4_K_M");
  EXPECT_EQ(pull->options.include, (std::vector<std::string>{"*.json", "a*"}));
  EXPECT_TRUE(pull->options.dry_run && pull->options.json);
  const auto quantize = parse({"quantize", "IN", "OUT", "--bits", "8"});
  ASSERT_TRUE(quantize) << quantize.error().message;
  EXPECT_EQ(quantize->options.model + " " + quantize->options.to, "IN OUT");
  EXPECT_FALSE(parse({"pull", "a/b", "c/d"})) << "one model at a time";
  EXPECT_FALSE(parse({"list", "a/b"}));
}

TEST(Options, NothingIsDeletedThatTheLineDoesNotName) {
  ::setenv("WEIR_MODEL", "org/precious", 1);
  const auto rm = parse({"rm"});
  const auto verify = parse({"verify"});
  ::unsetenv("WEIR_MODEL");
  ASSERT_TRUE(rm && verify);
  EXPECT_EQ(rm->options.model, "");
  EXPECT_EQ(verify->options.model, "org/precious");
}

TEST(Options, MayBeGivenAgain) {
  const auto parsed = parse({"--port", "1", "--alias", "a,b", "--port=2", "--alias", "c",
                             "--config-override", "a=[1,2]", "--config-override=b=\"x=y\""});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->options.port, 2) << "the last counts";
  EXPECT_EQ(split_list(parsed->options.alias), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(parsed->options.config_override, (std::vector<std::string>{"a=[1,2]", "b=\"x=y\""}));
  EXPECT_FALSE(parse({"--alias", ","}));
}

TEST(Options, OriginsMayBeGivenAgain) {
  const auto parsed = parse({"--cors", "https://a.example", "--cors", "http://localhost:3000"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(split_list(parsed->options.cors),
            (std::vector<std::string>{"https://a.example", "http://localhost:3000"}));
}

TEST(Options, HostsAreNames) {
  const auto parsed = parse({"--allowed-hosts", "weir,llm.example", "--allowed-hosts=*.svc.local"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(split_list(parsed->options.allowed_hosts),
            (std::vector<std::string>{"weir", "llm.example", "*.svc.local"}));
  EXPECT_TRUE(parse({"--allowed-hosts", "*"}));
  for (const char* wrong : {"http://weir", "weir:5413", "a/b", "*weir", "a*", "."})
    EXPECT_EQ(error_of({"--allowed-hosts", wrong}),
              "--allowed-hosts: expected '*', or names such as weir, llm.example or "
              "*.svc.cluster.local (without a scheme, a port or a path); found '" +
                  std::string(wrong) + "'");
}

TEST(Options, ParallelSequencesFindRoomInAStep) {
  const auto size = [](std::vector<const char*> words) {
    const auto parsed = parse(std::move(words));
    return parsed ? parsed->options.prefill_size : -1;
  };
  EXPECT_EQ(size({}), 512);
  EXPECT_EQ(size({"--parallel", "100"}), 512);
  EXPECT_EQ(size({"--parallel", "1000"}), 2000);
  EXPECT_EQ(size({"--parallel", "4096"}), 8192);
  EXPECT_EQ(size({"--parallel", "1000", "--prefill-size", "2k"}), 2048);
  EXPECT_EQ(error_of({"--parallel", "1000", "--prefill-size", "512"}),
            "--parallel: expected at most half of --prefill-size, 256; found 1000 (left out, "
            "--prefill-size grows with --parallel)");
  EXPECT_EQ(error_of({"--parallel", "5000"}),
            "--parallel: expected a number from 0 to 4096; found 5000");
}

TEST(Options, TheEnvironmentWinsOverTheConfigFileThatItMayName) {
  const std::string path =
      testing::TempDir() + "weir_options_environment_" + std::to_string(::getpid());
  std::ofstream(path) << "port = 7070 \r\n; why\nhost=\"::1\"\nqueue=7\nalias=a\nalias=b\n";
  ::setenv("WEIR_CONFIG", path.c_str(), 1);
  ::setenv("WEIR_QUEUE", "8", 1);
  ::setenv("WEIR_CONFIG_OVERRIDE", "a=1\nb={\"c\":[1,2]}\n", 1);
  const auto parsed = parse({"--host", "h"}), without = parse({"--config", "/nowhere"});
  for (const char* name : {"WEIR_CONFIG", "WEIR_QUEUE", "WEIR_CONFIG_OVERRIDE"}) ::unsetenv(name);
  std::remove(path.c_str());
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->options.port, 7070);
  EXPECT_EQ(parsed->options.queue, 8);
  EXPECT_EQ(parsed->options.host, "h");
  EXPECT_EQ(parsed->options.alias, "a,b");
  EXPECT_EQ(parsed->options.config_override, (std::vector<std::string>{"a=1", "b={\"c\":[1,2]}"}));
  ASSERT_FALSE(without);
  EXPECT_TRUE(without.error().message.starts_with("--config: /nowhere: "))
      << without.error().message;
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
  EXPECT_FALSE(parse({"--output", "f"})) << "serving writes no bundle";
}

TEST(Options, OfOneNameMayBeOthersOfAnotherCommand) {
  const auto suite = parse({"suite", "--json", "new.json", "--against", "old.json"});
  ASSERT_TRUE(suite) << suite.error().message;
  EXPECT_EQ(suite->options.json_report, "new.json");
  EXPECT_EQ(suite->options.old_report, "old.json");
  EXPECT_FALSE(suite->options.json);
  EXPECT_EQ(suite->options.against, "");
  const auto info = parse({"info", "--json"});
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_TRUE(info->options.json);
  const auto perplexity = parse({"perplexity", "--file", "t", "--against", "m"});
  ASSERT_TRUE(perplexity) << perplexity.error().message;
  EXPECT_EQ(perplexity->options.against, "m");
  const auto wrong = parse({"--json"});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("it is one of info, bench, suite"), std::string::npos)
      << wrong.error().message;
}

TEST(Options, TheSuitePassesOnWhatItsServersTake) {
  ::setenv("WEIR_THREADS", "3", 1);
  const auto parsed = parse({"suite", "--kv-cache", "f32", "--quick", "--stream-experts",
                             "--kv-memory=1G", "--only", "bits"});
  ::unsetenv("WEIR_THREADS");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const auto words = [&](Command command) {
    std::vector<std::string> all = words_passed_on(parsed->options, command);
    std::ranges::sort(all);
    return all;
  };
  EXPECT_EQ(words(Command::kServe), (std::vector<std::string>{"--kv-cache=f32", "--kv-memory=1G",
                                                              "--stream-experts", "--threads=3"}));
  EXPECT_EQ(words(Command::kBench),
            (std::vector<std::string>{"--kv-cache=f32", "--stream-experts", "--threads=3"}));
  EXPECT_TRUE(parse({"--kv-cache", "f32"})->options.passed_on.empty()) << "only the suite's are";
}

TEST(Options, AnAddressHasItsOwnModel) {
  EXPECT_TRUE(parse({"suite", "--url", "http://h"}));
  EXPECT_FALSE(parse({"suite", "--url", "http://h", "--model", "m"}));
  EXPECT_FALSE(parse({"suite", "--hours", "0"}));
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
