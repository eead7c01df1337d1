// Normaliser on its own: what tokenizer files do with it is in tokenizer_test.cpp.
#include "text/normaliser.h"

#include <gtest/gtest.h>

#include "base/concat.h"
#include "tokenizer_fixture.h"

namespace weir::text {
namespace {

// A step that would go beyond the limit is left out, and until then has not taken much more: the
// text's own memory is the largest that any step wrote, because steps write into it by turns.
void expect_bounded(std::string_view steps, std::string text) {
  const JsonDoc doc = parse_json(concat({R"({"type": "Sequence", "normalizers": [)", steps, "]}"}));
  const auto normaliser = Normaliser::parse(doc.root());
  ASSERT_TRUE(normaliser) << normaliser.error().message;
  const size_t bytes_max = 64 * text.size() + 4096;
  normaliser->apply(text);
  EXPECT_LE(text.size(), bytes_max) << steps;
  EXPECT_LE(text.capacity(), 4 * bytes_max) << steps;
}

std::string replace_step(std::string_view from, std::string_view to, int times) {
  std::string content;
  for (int i = 0; i < times; ++i) content += to;
  return concat({R"({"type": "Replace", "pattern": {"String": ")", from, R"("}, "content": ")",
                 content, "\"}"});
}

constexpr std::string_view kLowercase = R"({"type": "Lowercase"})";

TEST(Normaliser, BoundsTheMemoryOfStepsByTheTextThatCameIn) {
  const std::string grown = replace_step("a", "a", 60);
  expect_bounded(concat({grown, ", ", replace_step("a", "a", 1000), ", ", kLowercase}),
                 std::string(20'000, 'a'));
  // U+FDFA, of which NFKC makes eighteen characters.
  const std::string ligatures = replace_step("a", "\xef\xb7\xba", 20);
  for (const char* form : {"NFKC", "NFKD"})
    expect_bounded(concat({ligatures, R"(, {"type": ")", form, "\"}, ", kLowercase}),
                   std::string(20'000, 'a'));
}

}  // namespace
}  // namespace weir::text
