// Reads the sources as text and fails on a function that a header of src/ declares and no program
// calls: what only tests call, or nothing, is a second thing to understand and to keep right.
//
// Names are all that is compared, so a dead function is not seen beside another of the same name;
// what is reported is dead for certain. Constructors and operators have no name of their own here.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = WEIR_SOURCE_DIR;

// What only tests call, and why it is not theirs.
const std::map<std::string, std::string_view> kForTests = {
    {"advance_clock", "moves the clock that tests give a loop"},
    {"fill_gemm_emulated", "AMX without its instructions, for machines that lack them"},
    {"fill_gemm_bf16_emulated", "the same"},
    {"fill_attention_emulated", "the same"},
    {"fill_coded_attention_emulated", "the same"},
    {"api_page", "docs/api.md, which a test compares and writes"},
    {"options_page", "docs/options.md, likewise"},
    {"field_schemas", "rows of a table that examples are held against"},
    {"reasoning_formats", "all of them, to be tested in turn; programs look one up"},
    {"add_fault", "of ModelledDisk: what a disk may do wrong"},
    {"release_stalls", "the same"},
    {"set_change", "the same"},
    {"refuse_direct", "the same"},
    {"class_begin", "a place within ExpertCache that its random test checks"},
    {"compilations", "a count within GrammarCache that says what was kept"},
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// A mark between the digits of a number.
bool is_in_number(std::string_view text, size_t at) {
  size_t begin = at;
  while (begin > 0 && (is_word(text[begin - 1]) || text[begin - 1] == '\'')) --begin;
  return begin < at && std::isdigit(static_cast<unsigned char>(text[begin])) != 0;
}

// The file without comments and the contents of literals; lines stay where they are.
std::string code_of(const fs::path& path) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::string code;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size());
      code += '\n';
    } else if (c == '"' && i > 0 && text[i - 1] == 'R') {
      const size_t open = text.find('(', i);
      const std::string end = ")" + text.substr(i + 1, open - i - 1) + "\"";
      i = text.find(end, open) + end.size() - 1;
      code += '0';
    } else if (c == '"' || (c == '\'' && !is_in_number(text, i))) {
      for (++i; i < text.size() && text[i] != c; ++i)
        if (text[i] == '\\') ++i;
      code += '0';
    } else {
      code += c;
    }
  }
  return code;
}

// The words before a call rather than before what is declared.
bool precedes_call(std::string_view word) {
  static const std::set<std::string_view> kWords = {"return", "co_return", "else", "throw", "case",
                                                    "delete", "template",  "do",   "new",   "not"};
  return kWords.contains(word);
}

// `before` ends with a type: "int ", "T* ", "std::vector<int> ". (A product has blanks on both
// sides of its star.)
bool ends_with_type(std::string_view before) {
  if (before.ends_with("::") || before.ends_with("~")) return false;
  const bool star = before.ends_with("*") || before.ends_with("&");
  if (!star && !before.ends_with(" ")) return false;
  while (before.ends_with("*") || before.ends_with("&") || before.ends_with(" ")) {
    if (before.ends_with(" *") || before.ends_with(" &") || before.ends_with("&&")) return false;
    before.remove_suffix(1);
  }
  if (before.ends_with("->")) return false;
  size_t begin = before.size();
  while (begin > 0 && is_word(before[begin - 1])) --begin;
  if (begin == before.size()) return before.ends_with(">") || before.ends_with("]");
  return !precedes_call(before.substr(begin));
}

struct Names {
  std::map<std::string, std::string> declared;  // By the headers of src/, and where.
  std::set<std::string> used;                   // By programs.
};

void read_line(std::string_view line, const std::string& path, Names& names) {
  const bool header = path.starts_with("src/") && path.ends_with(".h");
  // A line that is not indented defines what it names, up to a body or a value.
  const bool top = !line.empty() && line[0] != ' ';
  for (size_t i = 0; i < line.size();) {
    if (!is_word(line[i])) {
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < line.size() && is_word(line[i])) ++i;
    const std::string name(line.substr(begin, i - begin));
    if (!std::islower(static_cast<unsigned char>(name[0]))) continue;
    const std::string_view before = line.substr(0, begin);
    if (i < line.size() && line[i] == '(' && ends_with_type(before)) {
      if (header && line.find(" override") == std::string_view::npos)
        names.declared.emplace(name, path);
    } else if (!top || before.find_first_of("={") != std::string_view::npos) {
      names.used.insert(name);
    }
  }
}

Names read_sources() {
  Names names;
  for (const char* folder : {"src", "bench", "tools"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".cpp" && extension != ".h") continue;
      const std::string path = fs::relative(entry.path(), kRoot).string();
      const std::string code = code_of(entry.path());
      for (size_t begin = 0; begin < code.size();) {
        const size_t end = std::min(code.find('\n', begin), code.size());
        const std::string_view line = std::string_view(code).substr(begin, end - begin);
        if (!line.starts_with("#if") && !line.starts_with("#inc")) read_line(line, path, names);
        begin = end + 1;
      }
    }
  }
  return names;
}

Names names_in(std::string_view line, const std::string& path) {
  Names names;
  read_line(line, path, names);
  return names;
}

TEST(Unused, TheScanTellsADeclarationFromACall) {
  for (const char* line :
       {"int find(int x);", "  int find(int x) const {", "  virtual Result<int> find() = 0;",
        "  std::vector<int> find(int x);", "inline const char* find(int x) {",
        "[[nodiscard]] bool find();", "T& find(T x);"}) {
    const Names names = names_in(line, "src/a/b.h");
    EXPECT_TRUE(names.declared.contains("find")) << line;
    EXPECT_FALSE(names.used.contains("find")) << line;
  }
  for (const char* line :
       {"  return find(1);", "  find(1);", "  x = 2 * find(1);", "  if (a && find(1))",
        "  a.find(1);", "  x->find(1);", "const int x = find(1);", "  call(&A::find);",
        "int f() { return find(1); }", "  else find(1);",
        "Value upper(const Call& c) { return map<find>(c); }"}) {
    const Names names = names_in(line, "src/a/b.h");
    EXPECT_FALSE(names.declared.contains("find")) << line;
    EXPECT_TRUE(names.used.contains("find")) << line;
  }
  // A definition, and what overrides a function that its base declares.
  EXPECT_FALSE(names_in("int A::find(int x) {", "src/a/b.cpp").used.contains("find"));
  EXPECT_FALSE(names_in("  int find() override;", "src/a/b.h").declared.contains("find"));
}

TEST(Unused, EveryFunctionOfAHeaderIsNamedByAProgram) {
  const Names names = read_sources();
  EXPECT_GT(names.declared.size(), 1'500u) << "the scan finds too few declarations";
  for (const auto& [name, path] : names.declared) {
    if (names.used.contains(name)) continue;
    EXPECT_TRUE(kForTests.contains(name))
        << path << " declares " << name << ": no program calls it";
  }
  for (const auto& [name, why] : kForTests) {
    EXPECT_TRUE(names.declared.contains(name)) << name << " is gone: so may its exception";
    EXPECT_FALSE(names.used.contains(name)) << name << " needs no exception (" << why << ")";
  }
}

}  // namespace
