// Reads the sources as text and fails on what style cannot leave to opinion: an include that points
// the wrong way or past a folder's public headers, a third-party library outside its folder, a file
// too long, a word that promises work without an issue, a comment's word that has a plainer one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = WEIR_SOURCE_DIR;

struct Source {
  std::string path;  // From the root: "src/kv/page_pool.cpp".
  std::vector<std::string> lines;
};

std::vector<Source> sources() {
  std::vector<Source> found;
  for (const char* top : {"src", "tests", "bench", "tools"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / top)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".cpp" && extension != ".h") continue;
      Source source{fs::relative(entry.path(), kRoot).string(), {}};
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) source.lines.push_back(line);
      found.push_back(std::move(source));
    }
  }
  return found;
}

// The folder of src/ that a file belongs to; "root" for src/*.cpp.
std::string folder_of(const std::string& path) {
  if (!path.starts_with("src/")) return path.substr(0, path.find('/'));
  const std::string rest = path.substr(4);
  const size_t slash = rest.find('/');
  return slash == std::string::npos ? "root" : rest.substr(0, slash);
}

// ARCHITECTURE.md, "Who may include whom": a folder, and what it may include beside itself. The
// commands, the root, tests and tools, which are not here, may include everything.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"base", {}},
    {"card", {"base"}},
    {"kernels", {"base"}},
    {"net", {"base"}},
    {"media", {"base", "card"}},
    {"hub", {"base", "net"}},
    {"jinja", {"base"}},
    {"text", {"base", "jinja"}},
    {"ssd", {"base"}},
    {"grammar", {"base"}},
    {"sample", {"base", "kernels", "grammar"}},
    {"kv", {"base", "kernels"}},
    {"model", {"base", "card", "kernels", "ssd", "kv"}},
    {"encoder", {"base", "card", "kernels", "media", "model"}},
    {"measure", {"base", "ssd", "model"}},
    {"exec", {"base", "kernels", "media", "sample", "kv", "model", "encoder"}},
    {"sched", {"base", "kernels", "media", "grammar", "sample", "kv", "model", "exec"}},
    {"page", {"base"}},
    {"api", {"base", "card", "net", "media", "text", "grammar", "sample", "sched", "page"}},
    {"program",
     {"base", "card", "kernels", "media", "net", "hub", "text", "ssd", "sample", "kv", "model",
      "encoder", "exec", "sched", "api"}},
    {"fit", {"base", "card", "kernels", "hub", "ssd", "kv", "model", "program"}},
    {"load", {"base", "net"}},
    {"suite",
     {"base", "kernels", "net", "text", "kv", "model", "measure", "load", "program"}},
    {"host",
     {"base", "kernels", "net", "hub", "text", "ssd", "kv", "model", "exec", "sched", "api",
      "program"}},
};

// Folders that are large inside and small from outside: the headers that others may include. Of a
// folder that is not named here they may include all.
const std::map<std::string, std::set<std::string>> kPublicHeaders = {
    {"jinja", {"jinja/jinja.h"}},
    // Six and not one, for their users have little in common. A request has a source, perhaps put
    // together from parts; its preparation can be interrupted; the store compiles, caches and finds
    // forced tokens; the engine and the sampler see nothing but the matcher.
    {"grammar",
     {"grammar/source.h", "grammar/parts.h", "grammar/interrupt.h", "grammar/grammar_cache.h",
      "grammar/forced_tokens.h", "grammar/matcher.h"}},
};

// Each third-party library is included by one folder only.
const std::map<std::string, std::string> kLibraryFolder = {
    {"simdjson.h", "base"},      {"spdlog/", "base"},
    {"tl/expected.hpp", "base"}, {"uv.h", "net"},
    {"llhttp.h", "net"},         {"openssl/", "net"},
    {"pcre2.h", "text"},         {"utf8proc.h", "base"},
    {"liburing.h", "ssd"},       {"xxhash.h", "kv"},
    {"CLI/", "tools"},           {"curl/", "hub"},
    {"immintrin.h", "kernels"},  {"spng.h", "media"},
    {"turbojpeg.h", "media"},    {"webp/", "media"},
    {"gif_lib.h", "media"},      {"FLAC/", "media"},
    {"mpg123.h", "media"},       {"vorbis/", "media"},
    {"opusfile.h", "media"},     {"soxr.h", "media"},
    {"kissfft/", "media"},       {"zlib.h", "base"},
    {"libavformat/", "media/video/libav"}, {"libavcodec/", "media/video/libav"},
    {"libavutil/", "media/video/libav"},   {"libswscale/", "media/video/libav"},
};

// The text between the quotes or brackets of an #include line, or "".
std::string included(const std::string& line) {
  if (!line.starts_with("#include ")) return "";
  const size_t begin = line.find_first_of("\"<") + 1;
  return line.substr(begin, line.find_first_of("\">", begin) - begin);
}

TEST(Tidy, IncludesPointOneWay) {
  for (const Source& source : sources()) {
    const auto allowed = kMayInclude.find(folder_of(source.path));
    if (allowed == kMayInclude.end()) continue;
    for (const std::string& line : source.lines) {
      const std::string target = included(line);
      if (target.empty() || line.find('"') == std::string::npos) continue;
      const std::string folder = folder_of("src/" + target);
      EXPECT_TRUE(folder == allowed->first || allowed->second.contains(folder))
          << source.path << " may not include " << target;
    }
  }
}

// Only a folder's own tests see the rest of it.
TEST(Tidy, FencedFoldersShowTheirPublicHeadersOnly) {
  std::set<std::string> used;
  for (const Source& source : sources()) {
    for (const std::string& line : source.lines) {
      const std::string target = included(line);
      const std::string folder = target.substr(0, target.find('/'));
      const auto headers = kPublicHeaders.find(folder);
      if (headers == kPublicHeaders.end() || line.find('"') == std::string::npos ||
          source.path.starts_with("src/" + folder + "/") ||
          source.path.starts_with("tests/" + folder + "/") ||
          !fs::exists(kRoot / "src" / target))  // A helper of its tests.
        continue;
      EXPECT_TRUE(headers->second.contains(target))
          << source.path << " includes " << target << ", which is not for others";
      used.insert(target);
    }
  }
  for (const auto& [folder, headers] : kPublicHeaders)
    for (const std::string& header : headers)
      EXPECT_TRUE(used.contains(header)) << header << " is public, and no other folder includes it";
}

// The table of ARCHITECTURE.md as above: a folder, and what stands in its row before the brackets.
TEST(Tidy, TheArchitectureTellsWhatIsEnforced) {
  std::ifstream file(kRoot / "ARCHITECTURE.md");
  std::map<std::string, std::set<std::string>> told;
  bool in_section = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) in_section = line == "## Who may include whom";
    if (!in_section) continue;
    const size_t bar = line.find(" |", 2);
    const std::string folder = line.starts_with("| ") ? line.substr(2, bar - 2) : "";
    if (!kMayInclude.contains(folder)) continue;
    std::set<std::string>& row = told[folder];
    const std::string cell = line.substr(bar, line.find_first_of("(`", bar) - bar);
    for (const auto& [other, allowed] : kMayInclude)
      if (cell.find(" " + other) != std::string::npos) row.insert(other);
  }
  EXPECT_EQ(told, kMayInclude);
}

TEST(Tidy, TheArchitectureNamesEveryFolder) {
  std::ifstream file(kRoot / "ARCHITECTURE.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (const auto& entry : fs::directory_iterator(kRoot / "src")) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory()) continue;
    EXPECT_NE(text.find("| `src/" + name + "` |"), std::string::npos)
        << "ARCHITECTURE.md does not say what src/" << name << " is";
  }
}

// docs/answers.md, "The folders of src/api": a folder of src/api, and what else of it may be
// included there. The files of src/api itself, which tie the others together, may include all.
const std::map<std::string, std::set<std::string>> kApiMayInclude = {
    {"reference", {}},
    {"output", {}},
    {"memory", {"output"}},
    {"access", {"reference"}},
    {"request", {"reference"}},
    {"exchange", {"access", "request"}},
    {"answer", {"memory", "output", "request"}},
    {"serving", {"access", "output", "request"}},
    {"media", {"memory", "request", "serving"}},
    {"prompt", {"answer", "exchange", "media", "memory", "request", "serving"}},
    {"stream", {"access", "answer", "exchange", "memory", "output", "prompt"}},
    {"openai", {"answer", "exchange", "prompt", "reference", "request"}},
    {"responses",
     {"answer", "exchange", "memory", "openai", "prompt", "reference", "request", "serving"}},
    {"anthropic", {"answer", "exchange", "prompt", "request", "serving"}},
    {"llama", {"answer", "exchange", "openai", "prompt", "reference", "request", "serving"}},
    {"transcription",
     {"media", "memory", "prompt", "reference", "request", "serving", "stream"}},
    {"vectors", {"memory", "openai", "prompt", "reference", "request", "serving", "stream"}},
    {"models", {"reference", "request", "serving"}},
    {"ollama",
     {"answer", "exchange", "openai", "prompt", "reference", "request", "serving", "stream",
      "vectors"}},
    {"pages", {"exchange", "models", "request", "serving", "stream"}},
};

// "api/openai/x.h" is of "openai", "api/x.h" of "api".
std::string api_folder_of(const std::string& target) {
  const size_t first = target.find('/') + 1, second = target.find('/', first);
  return second == std::string::npos ? "api" : target.substr(first, second - first);
}

TEST(Tidy, TheFoldersOfTheApiPointOneWay) {
  size_t includes = 0;
  for (const Source& source : sources()) {
    if (folder_of(source.path) != "api") continue;
    const std::string folder = api_folder_of(source.path.substr(4));
    if (folder == "api") continue;
    ASSERT_TRUE(kApiMayInclude.contains(folder)) << source.path;
    for (const std::string& line : source.lines) {
      const std::string target = included(line);
      if (!target.starts_with("api/")) continue;
      const std::string other = api_folder_of(target);
      EXPECT_TRUE(other == folder || kApiMayInclude.at(folder).contains(other))
          << source.path << " may not include " << target;
      ++includes;
    }
  }
  EXPECT_GT(includes, 200u) << "the rule that finds includes finds too few";
}

// Its table as above: a folder, and the third cell of its row.
TEST(Tidy, TheAnswersPageTellsWhatIsEnforced) {
  std::ifstream file(kRoot / "docs" / "answers.md");
  std::map<std::string, std::set<std::string>> told;
  const std::string mark = "| `src/api/";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(mark)) continue;
    std::set<std::string>& row =
        told[line.substr(mark.size(), line.find('`', mark.size()) - mark.size())];
    const size_t end = line.rfind('|');
    std::istringstream cell(
        line.substr(line.rfind('|', end - 1) + 1, end - line.rfind('|', end - 1) - 1));
    for (std::string name; cell >> name;) row.insert(name.substr(0, name.find(',')));
  }
  EXPECT_EQ(told, kApiMayInclude);
}

// The Api is made of the folder's files: one that needed it would stand in a circle.
TEST(Tidy, OnlyTheApiIncludesItself) {
  for (const Source& source : sources()) {
    if (folder_of(source.path) != "api" || source.path == "src/api/api.cpp" ||
        source.path == "src/api/api_impl.h")
      continue;
    for (const std::string& line : source.lines)
      EXPECT_NE(included(line), "api/api.h") << source.path;
  }
}

TEST(Tidy, SchedSeesOnlyTheModelsInterface) {
  for (const Source& source : sources()) {
    if (folder_of(source.path) != "sched") continue;
    for (const std::string& line : source.lines) {
      const std::string target = included(line);
      if (!target.starts_with("model/")) continue;
      EXPECT_TRUE(target == "model/batch.h" || target == "model/batch_builder.h" ||
                  target == "model/spec.h")
          << source.path << " includes " << target;
    }
  }
}

// What a model's files say comes from card::ModelCard: a second reader of a file would not know its
// overrides, its limits, or that it came with another format.
TEST(Tidy, OnlyTheCardOpensAModelsFiles) {
  for (const Source& source : sources()) {
    if (!source.path.starts_with("src/") || folder_of(source.path) == "card") continue;
    // Looking a model up finds its files, wherever they are; the card then reads them.
    if (source.path == "src/fit/lookup.cpp") continue;
    for (size_t i = 0; i < source.lines.size(); ++i)
      for (const char* call : {"files.open_file(", "files.read_text(", "files.read_json(",
                               "open_safetensors(", "ModelFiles::open("})
        EXPECT_EQ(source.lines[i].find(call), std::string::npos)
            << source.path << ":" << i + 1 << " calls " << call;
  }
}

TEST(Tidy, EachLibraryIsIncludedByOneFolder) {
  for (const Source& source : sources()) {
    if (!source.path.starts_with("src/")) continue;
    for (const std::string& line : source.lines) {
      const std::string target = included(line);
      for (const auto& [library, folder] : kLibraryFolder) {
        if (!target.starts_with(library)) continue;
        // Outside the kernels: a spin loop's pause, and what to do with denormals.
        if (library == "immintrin.h" &&
            (source.path == "src/base/gate.cpp" || source.path == "src/base/thread_team.cpp"))
          continue;
        EXPECT_TRUE(source.path.starts_with("src/" + folder + "/"))
            << source.path << " includes " << target;
      }
    }
  }
}

// Files compiled for one ISA must not pull in inline functions of the standard library: the linker
// could keep their AVX-512 copy for everybody.
TEST(Tidy, IsaFilesIncludeNoStandardLibrary) {
  const std::set<std::string> allowed = {"cstdint", "cstddef", "immintrin.h", "kernels/ops.h",
                                         "kernels/isa.h"};
  for (const Source& source : sources()) {
    const bool isa =
        source.path.starts_with("src/kernels/avx") || source.path.starts_with("src/kernels/amx");
    if (!isa) continue;
    for (const std::string& line : source.lines) {
      const std::string target = included(line);
      if (target.empty() || target.starts_with("kernels/")) continue;
      EXPECT_TRUE(allowed.contains(target)) << source.path << " includes " << target;
    }
  }
}

TEST(Tidy, FilesStayReadable) {
  for (const Source& source : sources()) {
    EXPECT_LE(source.lines.size(), 1000u) << source.path;
    // In bytes: 100 columns with a few characters beyond ASCII. Raw strings of tests (JSON,
    // templates) may be longer.
    const size_t columns = source.path.starts_with("tests/") ? 200 : 110;
    for (size_t i = 0; i < source.lines.size(); ++i)
      EXPECT_LE(source.lines[i].size(), columns) << source.path << ":" << i + 1;
  }
}

// Where a function's body may begin: a brace at the end of a line at namespace or class level that
// opens neither a type, a statement, a table nor an object in a text of JSON.
bool opens_function(const std::string& line, size_t indent) {
  if (indent > 2 || !line.ends_with("{") || line.ends_with("= {") || line.ends_with("({") ||
      line[indent] == '"' || line[indent] == '{')
    return false;
  for (const std::string_view word :
       {"namespace", "struct", "class", "enum", "extern", "union", "return"})
    if (line.compare(indent, word.size(), word) == 0) return false;
  return true;
}

TEST(Tidy, AFunctionFitsOnAScreen) {
  constexpr size_t kLinesMax = 70;
  size_t functions = 0;
  for (const Source& source : sources()) {
    for (size_t i = 0; i < source.lines.size(); ++i) {
      const size_t indent = source.lines[i].find_first_not_of(' ');
      if (indent == std::string::npos || !opens_function(source.lines[i], indent)) continue;
      const std::string end(indent, ' ');
      size_t last = i + 1;
      while (last < source.lines.size() && !source.lines[last].starts_with(end + "}")) ++last;
      EXPECT_LE(last - i - 1, kLinesMax) << source.path << ":" << i + 1;
      ++functions;
    }
  }
  EXPECT_GT(functions, 1000u) << "the rule that finds functions finds too few";
}

TEST(Tidy, NoPromisesInsteadOfWork) {
  // Spelled in two parts, so that this file passes its own test.
  const std::vector<std::string> banned = {
      "TO"
      "DO",
      "FIX"
      "ME",
      "XX"
      "X:",
      "HA"
      "CK",
      "NO"
      "LINT"};
  for (const Source& source : sources()) {
    for (size_t i = 0; i < source.lines.size(); ++i)
      for (const std::string& word : banned)
        EXPECT_EQ(source.lines[i].find(word), std::string::npos)
            << source.path << ":" << i + 1 << " says " << word;
  }
}

// A comment's words: order is "before" and "after", and what acts has a name.
const std::map<std::string, std::string> kPlainWords = {
    {"behind", "after"},
    {"in front of", "before"},
    {"nobody", "no caller, no thread, nothing"},
    {"somebody", "a caller, a thread, a client"},
    {"whoever", "the caller, the thread, the client that"},
};

// Folders whose comments are still to be read, and one file.
bool has_word(const std::string& text, const std::string& word) {
  const auto letter = [&](size_t i) {
    return i < text.size() && std::isalpha(static_cast<unsigned char>(text[i])) != 0;
  };
  for (size_t i = text.find(word); i != std::string::npos; i = text.find(word, i + 1))
    if ((i == 0 || !letter(i - 1)) && !letter(i + word.size())) return true;
  return false;
}

TEST(Tidy, CommentsUsePlainWords) {
  size_t comments = 0;
  for (const Source& source : sources()) {
    if (!source.path.starts_with("src/")) continue;
    for (size_t i = 0; i < source.lines.size(); ++i) {
      const size_t begin = source.lines[i].find("//");
      if (begin == std::string::npos) continue;
      ++comments;
      std::string comment = source.lines[i].substr(begin);
      std::ranges::transform(comment, comment.begin(),
                             [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      for (const auto& [word, instead] : kPlainWords)
        EXPECT_FALSE(has_word(comment, word))
            << source.path << ":" << i + 1 << " says " << word << "; write " << instead;
    }
  }
  EXPECT_GT(comments, 1000u) << "the rule that finds comments finds too few";
}

}  // namespace
