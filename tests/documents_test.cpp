// Reads the documents as text: links that lead nowhere, pages that nothing lists, paths that are
// gone, decisions that are cited and not there, lines that are too long.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = WEIR_SOURCE_DIR;

using Lines = std::vector<std::string>;

Lines read_lines(const fs::path& path) {
  Lines lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<fs::path> files_in(const std::vector<std::string>& folders,
                               const std::set<std::string>& extensions) {
  std::vector<fs::path> found;
  for (const std::string& folder : folders)
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
      if (extensions.contains(entry.path().extension().string())) found.push_back(entry.path());
  return found;
}

std::vector<fs::path> documents() {
  std::vector<fs::path> found = files_in({"docs", "bench", "models", "tests/data"}, {".md"});
  for (const auto& entry : fs::directory_iterator(kRoot))
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  return found;
}

std::string name_of(const fs::path& path) { return fs::relative(path, kRoot).string(); }

// A document without its blocks of code, whose lines are empty here.
Lines without_code(const fs::path& path) {
  Lines lines = read_lines(path);
  bool fenced = false;
  bool after_blank = true;
  for (std::string& line : lines) {
    const bool fence = line.find("```") == line.find_first_not_of(' ') && !line.empty();
    const bool indented = line.starts_with("    ") && after_blank;
    after_blank = line.empty() || (indented && after_blank);
    if (fence) fenced = !fenced;
    if (fence || fenced || indented) line.clear();
  }
  return lines;
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// What stands in `text` between `begin` and the next `end`, everywhere.
std::vector<std::string> between(const std::string& text, std::string_view begin, char end) {
  std::vector<std::string> found;
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    at += begin.size();
    const size_t close = text.find(end, at);
    if (close == std::string::npos) break;
    found.push_back(text.substr(at, close - at));
    at = close + 1;
  }
  return found;
}

bool is_elsewhere(const std::string& target) {
  return target.find("://") != std::string::npos || target.find(' ') != std::string::npos;
}

// The anchor that a heading gets where the documents are shown.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading.substr(heading.find_first_not_of('#') + 1)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-')
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

bool has_anchor(const fs::path& path, const std::string& anchor) {
  return std::ranges::any_of(without_code(path), [&](const std::string& line) {
    return line.starts_with('#') && anchor_of(line) == anchor;
  });
}

TEST(Documents, LinksLeadSomewhere) {
  size_t links = 0;
  for (const fs::path& document : documents()) {
    for (const std::string& target : between(joined(without_code(document)), "](", ')')) {
      if (is_elsewhere(target)) continue;
      const size_t hash = std::min(target.find('#'), target.size());
      const fs::path path =
          hash == 0 ? document : document.parent_path() / fs::path(target.substr(0, hash));
      EXPECT_TRUE(fs::exists(path)) << name_of(document) << " links to " << target;
      EXPECT_TRUE(hash == target.size() || has_anchor(path, target.substr(hash + 1)))
          << name_of(document) << " links to " << target << ", which has no such heading";
      ++links;
    }
  }
  EXPECT_GT(links, 50u) << "the rule that finds links finds too few";
}

// A user begins with README.md, a developer with docs/README.md: both lead to every page.
TEST(Documents, EveryPageIsListed) {
  for (const auto& [list, folder] :
       {std::pair{"docs/README.md", std::string()}, {"README.md", std::string("docs/")}}) {
    const std::string text = joined(read_lines(kRoot / list));
    for (const auto& entry : fs::directory_iterator(kRoot / "docs")) {
      if (entry.path().extension() != ".md" || entry.path() == kRoot / list) continue;
      const std::string page = folder + entry.path().filename().string();
      EXPECT_NE(text.find("](" + page + ")"), std::string::npos)
          << list << " has no link to " << page;
    }
  }
}

TEST(Documents, TheArchitectureIsAMap) {
  EXPECT_LE(read_lines(kRoot / "ARCHITECTURE.md").size(), 240u)
      << "a chapter on one part is a page of docs/";
}

size_t characters(const std::string& line) {
  return static_cast<size_t>(
      std::ranges::count_if(line, [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

TEST(Documents, LinesOfProseFit) {
  for (const fs::path& document : documents()) {
    const Lines lines = without_code(document);
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool is_link = lines[i].starts_with("![") || lines[i].find(' ') == std::string::npos;
      if (lines[i].starts_with('|') || is_link) continue;
      EXPECT_LE(characters(lines[i]), 120u) << name_of(document) << ":" << i + 1;
    }
  }
}

// A path as documents write it: from the root, from src, or within a folder of a folder of src, and
// perhaps without its extension.
bool path_exists(const std::string& path) {
  for (const char* base : {"", "src", "src/model", "src/sample"})
    for (const char* extension : {"", ".h", ".cpp"})
      if (fs::exists(kRoot / base / (path + extension))) return true;
  return false;
}

TEST(Documents, PathsExist) {
  const std::regex path(
      "(src|tests|bench|docs|tools|models|base|card|kernels|net|text|ssd|sample|kv|model|sched|api|"
      "commands|layers|families)/[a-z0-9_./-]+");
  size_t paths = 0;
  for (const fs::path& document : documents()) {
    for (const std::string& line : without_code(document))
      for (const std::string& code : between(line, "`", '`')) {
        if (!std::regex_match(code, path)) continue;
        EXPECT_TRUE(path_exists(code)) << name_of(document) << " names " << code;
        ++paths;
      }
  }
  EXPECT_GT(paths, 200u) << "the rule that finds paths finds too few";
}

// The numbers of the rows of docs/decisions.md.
std::set<std::string> decisions() {
  std::set<std::string> numbers;
  for (const std::string& line : read_lines(kRoot / "docs/decisions.md")) {
    const std::string number = line.starts_with("| ") ? line.substr(2, line.find(' ', 2) - 2) : "";
    if (!number.empty() && std::ranges::all_of(number, ::isdigit)) numbers.insert(number);
  }
  return numbers;
}

// A file as one line, without the marks that begin lines of comments.
std::string flattened(const fs::path& path) {
  std::string text;
  for (std::string line : read_lines(path)) {
    line.erase(0, std::min(line.find_first_not_of(" /"), line.size()));
    text += line + " ";
  }
  return text;
}

TEST(Documents, DecisionsThatAreCitedExist) {
  const std::set<std::string> known = decisions();
  ASSERT_GE(known.size(), 20u);
  const std::regex list("^ [0-9]+((, | and | to )[0-9]+)*");
  const std::regex number("[0-9]+");
  std::vector<fs::path> files = files_in({"src", "tests", "bench", "tools"}, {".h", ".cpp"});
  std::ranges::copy(documents(), std::back_inserter(files));
  size_t cited = 0;
  for (const fs::path& file : files) {
    const std::string text = flattened(file);
    for (size_t at = text.find("ecision"); at != std::string::npos; at = text.find("ecision", at)) {
      at += 7;
      at += at < text.size() && text[at] == 's';
      std::smatch match;
      const std::string after = text.substr(at, 60);
      if (!std::regex_search(after, match, list)) continue;
      const std::string numbers = match.str();
      for (std::sregex_iterator i(numbers.begin(), numbers.end(), number), end; i != end; ++i) {
        EXPECT_TRUE(known.contains(i->str())) << name_of(file) << " cites decision" << numbers
                                              << ", and docs/decisions.md has no " << i->str();
        ++cited;
      }
    }
  }
  EXPECT_GT(cited, 10u) << "the rule that finds citations finds too few";
}

// docs/one-request.md leads a newcomer from socket to token by file and name: they must exist.
TEST(Documents, ThePathOfARequestExists) {
  int steps = 0;
  for (const std::string& line : read_lines(kRoot / "docs/one-request.md")) {
    const std::vector<std::string> codes = between(line, "| `", '`');
    if (codes.size() < 2 || !codes[0].starts_with("src/")) continue;
    ASSERT_TRUE(fs::exists(kRoot / codes[0])) << "docs/one-request.md names " << codes[0];
    EXPECT_NE(joined(read_lines(kRoot / codes[0])).find(codes[1]), std::string::npos)
        << codes[0] << " has no " << codes[1];
    ++steps;
  }
  EXPECT_GE(steps, 20) << "docs/one-request.md should follow a request through the source files";
}

}  // namespace
