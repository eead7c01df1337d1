#include "base/name_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

bool matches(std::string_view pattern, std::string_view name) {
  const auto compiled = NamePattern::compile(pattern);
  EXPECT_TRUE(compiled) << pattern << ": " << compiled.error().message;
  return compiled && compiled->matches_begin(name);
}

TEST(NamePattern, MatchesABeginningAsPythonDoes) {
  EXPECT_TRUE(matches(R"(model\.layers\.0\.self_attn\..*)", "model.layers.0.self_attn.q_proj"));
  EXPECT_FALSE(matches(R"(model\.layers\.0\.self_attn\..*)", "model.layers.10.self_attn.q_proj"));
  EXPECT_TRUE(matches(R"(.*\.down_proj$)", "model.layers.1.mlp.down_proj"));
  EXPECT_FALSE(matches(R"(.*\.down_proj$)", "model.layers.1.mlp.down_proj.base"));
  EXPECT_FALSE(matches("layers", "model.layers"));
  EXPECT_TRUE(matches("model", "model.layers"));
  EXPECT_TRUE(matches("", "anything"));
  EXPECT_TRUE(matches(R"(.*self_attn\.(q|k|v|o)_proj$)", "model.layers.3.self_attn.v_proj"));
  EXPECT_FALSE(matches(R"(.*self_attn\.(q|k|v|o)_proj$)", "model.layers.3.self_attn.g_proj"));
  EXPECT_TRUE(matches(R"(.*layers\.(?:[0-9]|1[0-5])\.mlp)", "model.layers.12.mlp"));
  EXPECT_FALSE(matches(R"(.*layers\.(?:[0-9]|1[0-5])\.mlp)", "model.layers.16.mlp"));
  EXPECT_TRUE(matches(R"((?P<root>model)\.\w+?\.\d{2,3}\b)", "model.layers.123.x"));
  EXPECT_FALSE(matches(R"(model\.\w+\.\d{2,3}\.)", "model.layers.1.x"));
  EXPECT_TRUE(matches("a{2}b{,1}c{1,}$", "aabcc"));
  EXPECT_FALSE(matches("a{2}b{,1}c{1,}$", "aabbc"));
  EXPECT_TRUE(matches("[^]a-c]x[-.]", "dx-"));
  EXPECT_FALSE(matches("[^]a-c]", "]"));
  EXPECT_TRUE(matches("a{x", "a{x"));  // No repetition: a brace.
}

TEST(NamePattern, LooksAhead) {
  EXPECT_TRUE(matches(R"(^(?!.*(lm_head|down_proj)).*proj$)", "model.up_proj"));
  EXPECT_FALSE(matches(R"(^(?!.*(lm_head|down_proj)).*proj$)", "model.down_proj"));
  EXPECT_TRUE(matches(R"((?=.*mlp).*_proj)", "layers.mlp.up_proj"));
  EXPECT_FALSE(matches(R"((?=.*mlp).*_proj)", "layers.attn.q_proj"));
}

TEST(NamePattern, TakesNoLongerForHostilePatterns) {
  const std::string name(2000, 'a');
  EXPECT_FALSE(matches("(a*)*(a|aa)+b", name));
  EXPECT_FALSE(matches("(a?){60}a{60}$", std::string(200, 'b')));
  EXPECT_FALSE(matches("((?=(?=.*b).*b).*)*b", name));  // Gives up.
}

TEST(NamePattern, RefusesWhatItDoesNotRead) {
  const auto error = [](std::string_view pattern) {
    const auto compiled = NamePattern::compile(pattern);
    EXPECT_FALSE(compiled) << pattern;
    return compiled ? "" : compiled.error().message;
  };
  EXPECT_NE(error(R"((a)\1)").find(R"('\1')"), std::string::npos);
  EXPECT_NE(error("(?<=a)b").find("'(?<'"), std::string::npos);
  EXPECT_NE(error("(?i)a").find("'(?i'"), std::string::npos);
  EXPECT_NE(error("(a").find("without its ')'"), std::string::npos);
  EXPECT_NE(error("a)").find("without its '('"), std::string::npos);
  EXPECT_NE(error("[a").find("without its ']'"), std::string::npos);
  EXPECT_NE(error("*a").find("repetition of nothing"), std::string::npos);
  EXPECT_NE(error("a\\").find("at the end"), std::string::npos);
  EXPECT_NE(error("[b-a]").find("in order"), std::string::npos);
  EXPECT_NE(error("(((a{99}){99}){99}){99}").find("states"), std::string::npos);
  EXPECT_NE(error("(((){9999}){9999}){9999}").find("repetitions"), std::string::npos);
  EXPECT_NE(error(std::string(60, '(')).find("50 deep"), std::string::npos);
}

}  // namespace
}  // namespace weir
