// tests/e2e/packaging_test.py has groff show it.
#include "program/man_page.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "program/option_table.h"

namespace weir {
namespace {

TEST(ManPage, HasEachOptionAndEachCommandOnce) {
  const std::string page = man_page();
  const auto count = [&](const std::string& text) {
    int found = 0;
    for (size_t at = page.find(text); at != std::string::npos; at = page.find(text, at + 1))
      ++found;
    return found;
  };
  const auto dashes = [](std::string name) {
    for (size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2)
      name.insert(at, "\\");
    return name;
  };
  std::set<std::string_view> names;
  for (const Row& row : option_rows()) names.insert(row.name);
  for (const std::string_view name : names) {
    const std::string flag = "\\fB\\-\\-" + dashes(std::string(name)) + "\\fR";
    EXPECT_GE(count(flag), 1) << name;
  }
  for (const CommandRow& command : command_rows())
    EXPECT_EQ(count(".TP\n\\fB" + std::string(command.name) + "\\fR"), 1) << command.name;
}

TEST(ManPage, TextIsNoRequestAndDashesAreDashes) {
  const std::set<std::string> requests = {".TH", ".SH", ".SS", ".TP", ".B",
                                          ".I",  ".IR", ".nh", ".ad"};
  std::istringstream lines(man_page());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('.') || line.starts_with('\'')) {
      EXPECT_TRUE(requests.contains(line.substr(0, line.find(' ')))) << line;
    }
    for (size_t at = 0; (at = line.find('-', at)) != std::string::npos; ++at)
      EXPECT_TRUE(at > 0 && line[at - 1] == '\\') << line;
  }
}

}  // namespace
}  // namespace weir
