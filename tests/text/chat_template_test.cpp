#include "text/chat_template.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "../../tools/check/template_fixture.h"

namespace weir::text {
namespace {

void expect_all_equal(const std::string& folder, int pairs_expected) {
  const auto compared = check::compare_templates(folder);
  ASSERT_TRUE(compared.has_value()) << compared.error().message;
  int pairs = 0;
  for (const check::TemplateComparison& each : *compared) {
    for (const std::string& why : each.differences) ADD_FAILURE() << each.name << ", " << why;
    pairs += each.same + each.refused + static_cast<int>(each.differences.size());
  }
  EXPECT_EQ(pairs, pairs_expected);
}

TEST(ChatTemplate, RendersOurOwnTemplatesAsPythonsJinjaDoes) {
  expect_all_equal(WEIR_SOURCE_DIR "/tests/data/chat_templates", 7 * 5);
}

TEST(ChatTemplate, RendersPublishedTemplatesAsPythonsJinjaDoes) {
  const char* fixtures = std::getenv("WEIR_FIXTURES");
  const std::string folder =
      std::string(fixtures ? fixtures : WEIR_SOURCE_DIR "/../shared/fixtures") + "/chat_templates";
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "no " << folder << "; WEIR_FIXTURES names the fixtures' folder";
  expect_all_equal(folder, 52 * 9);
}

TEST(ChatTemplate, IsNotExcusedFromParsingByARecordedError) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("weir_templates_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder / "templates");
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(folder / name) << text;
  };
  write("contexts.json", R"({"a": {"x": 1}, "b": {"x": 2}})");
  write("renders.json",
        R"({"mixed": {"a": {"ok": ""}, "b": {"err": "?"}}, "never": {"a": {"err": "?"}}})");
  for (const char* name : {"templates/mixed", "templates/never"}) write(name, "{% nonsense %}");
  const auto compared = check::compare_templates(folder.string());
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(compared.has_value()) << compared.error().message;
  ASSERT_EQ(compared->size(), 2u);
  EXPECT_EQ((*compared)[0].name, "mixed");
  EXPECT_EQ((*compared)[0].refused, 0);
  EXPECT_EQ((*compared)[0].differences.size(), 2u);
  EXPECT_EQ((*compared)[1].refused, 1);
  EXPECT_EQ((*compared)[1].differences.size(), 0u);
}

TEST(ChatTemplate, ShowsTheLineOfAMalformedTemplate) {
  const auto parsed = ChatTemplate::parse("first\n  {% if x %}\n{{ y }\n");
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().code, ErrorCode::kConfig);
  EXPECT_EQ(parsed.error().message, "chat template, line 3 `{{ y }`: unexpected '}'");
}

TEST(ChatTemplate, ShowsTheLineThatFailsAndGivesTheTemplatesOwnMessageAlone) {
  const auto parsed = ChatTemplate::parse(
      "{% for m in messages %}\n"
      "{% if m.role == 'bad' %}{{ raise_exception('no such role: ' ~ m.role) }}{% endif %}\n"
      "{{ m.content.text.more }}\n"
      "{% endfor %}");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  auto rendered = parsed->render(R"({"messages": [{"role": "bad"}]})", 0);
  ASSERT_FALSE(rendered.has_value());
  EXPECT_EQ(rendered.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(rendered.error().message, "no such role: bad");
  rendered = parsed->render(R"({"messages": [{"role": "user", "content": {}}]})", 0);
  ASSERT_FALSE(rendered.has_value());
  EXPECT_EQ(rendered.error().message,
            "chat template, line 3 `{{ m.content.text.more }}`: 'dict object' has no attribute "
            "'text'");
}

TEST(ChatTemplate, RefusesVariablesThatAreNoObject) {
  const auto parsed = ChatTemplate::parse("x");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_FALSE(parsed->render("[1]", 0).has_value());
  EXPECT_FALSE(parsed->render("{", 0).has_value());
  EXPECT_EQ(parsed->render("{}", 0).value(), "x");
}

TEST(ChatTemplate, TellsTheTimeItWasGivenInUtc) {
  const auto parsed = ChatTemplate::parse("{{ strftime_now('%Y-%m-%d %H:%M:%S %f%z|%b %-d') }}");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->render("{}", check::kTemplateNow).value(), "2026-01-02 03:04:05 000000|Jan 2");
}

TEST(ChatTemplate, RendersInManyThreadsAtOnce) {
  const auto parsed = ChatTemplate::parse(
      "{% macro m(x) %}{{ 'é' ~ x|upper }}{% endmacro %}"
      "{% for i in range(50) %}{{ m(who) ~ 'constant é'[-3:] ~ ['a', 'b'][i % 2] }}{% endfor %}");
  ASSERT_TRUE(parsed.has_value());
  const std::string expected = parsed->render(R"({"who": "du"})", 0).value();
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int& count : wrong) {
    threads.emplace_back([&parsed, &expected, &count] {
      for (int i = 0; i < 50; ++i)
        count += parsed->render(R"({"who": "du"})", 0).value() != expected ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : wrong) EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace weir::text
