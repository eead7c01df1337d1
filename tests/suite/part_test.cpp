#include "suite/part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "program/option_table.h"

namespace weir::suite {
namespace {

TEST(Parts, AreChosenByNameInTheOrderOfTheTable) {
  const Result<std::vector<const Part*>> chosen = chosen_parts("bits, speed");
  ASSERT_TRUE(chosen) << chosen.error().message;
  ASSERT_EQ(chosen->size(), 2u);
  EXPECT_EQ((*chosen)[0]->name, "speed");
  EXPECT_EQ((*chosen)[1]->name, "bits");
  EXPECT_EQ(chosen_parts("")->size(), parts().size());
}

TEST(Parts, OfAnUnknownNameAllAreTold) {
  const Result<std::vector<const Part*>> chosen = chosen_parts("bits,bots");
  ASSERT_FALSE(chosen);
  EXPECT_TRUE(chosen.error().message.starts_with("--only: expected parts of speed, "))
      << chosen.error().message;
  EXPECT_TRUE(chosen.error().message.ends_with("; found 'bots'")) << chosen.error().message;
}

// The help of --only, docs/suite.md and the table name the same parts.
TEST(Parts, AreNamedWhereUsersLook) {
  std::ifstream file(std::string(WEIR_SOURCE_DIR) + "/docs/suite.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  const std::string_view help = find_row("only")->help;
  std::set<std::string_view> names;
  for (const Part& part : parts()) {
    EXPECT_TRUE(names.insert(part.name).second) << part.name << " is there twice";
    EXPECT_NE(help.find(part.name), std::string_view::npos) << part.name;
    EXPECT_NE(page.find("| " + std::string(part.name) + " |"), std::string::npos) << part.name;
  }
}

// The promise of --quick, as far as the table has it.
TEST(Parts, TakeLessThanTenQuickMinutes) {
  double minutes = 0;
  for (const Part& part : parts()) {
    EXPECT_GT(part.quick_minutes, 0) << part.name;
    EXPECT_GE(part.minutes, part.quick_minutes) << part.name;
    minutes += part.quick_minutes;
  }
  EXPECT_LT(minutes, 10);
}

}  // namespace
}  // namespace weir::suite
