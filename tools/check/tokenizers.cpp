// Tokenizers against recorded ids and texts of the Hugging Face crate. A fixture is a file that
// names the npm package that ships its tokenizer.json (packages are installed by
// tools/fetch_tokenizers), or a folder with a model.gguf and the answers in expected.json.
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "card/gguf_model.h"
#include "card/model_files.h"
#include "check.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace weir::check {

namespace {

namespace fs = std::filesystem;

constexpr char kAnswers[] = "expected.json";

bool is_gguf_fixture(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "model.gguf", error) && fs::exists(folder / kAnswers, error);
}

struct Case {
  std::string_view text;
  std::vector<int32_t> ids;
  std::string_view decoded;
};

struct Fixture {
  std::string_view package;  // "@scope/name", without the version; empty: none is named.
  std::vector<Case> cases;
  std::vector<Case> special;  // Of texts with control tokens only ids are recorded.
};

bool read_ids(JsonArray numbers, std::vector<int32_t>& ids) {
  for (const JsonValue number : numbers) {
    int64_t id = 0;
    if (number.get(id)) return false;
    ids.push_back(static_cast<int32_t>(id));
  }
  return true;
}

// [{"text": ..., "ids": [...]}]
Result<std::vector<Case>> read_special(JsonArray list) {
  std::vector<Case> cases;
  for (const JsonValue entry : list) {
    Case one;
    JsonArray numbers;
    if (entry["text"].get(one.text) || entry["ids"].get(numbers) || !read_ids(numbers, one.ids))
      return fail(ErrorCode::kInvalid, "expected a text and ids in each entry of special");
    cases.push_back(std::move(one));
  }
  return cases;
}

// {"npm": "@scope/name@1.2.3", "texts": [...], "ids": [[...]], "dec": [...]}, npm only where a
// package has the tokenizer, and sometimes "special".
Result<Fixture> read_fixture(const JsonDoc& doc) {
  const auto malformed = [](const char* what) { return fail(ErrorCode::kInvalid, what); };
  JsonObject root;
  Fixture fixture;
  JsonArray texts, ids, decoded, special;
  if (doc.root().get(root) != simdjson::SUCCESS || root["texts"].get(texts) ||
      root["ids"].get(ids) || root["dec"].get(decoded))
    return malformed("expected an object with texts, ids and dec");
  if (root["npm"].get(fixture.package) == simdjson::SUCCESS)
    fixture.package = fixture.package.substr(0, fixture.package.find('@', 1));
  if (root["special"].get(special) == simdjson::SUCCESS) {
    WEIR_ASSIGN(fixture.special, read_special(special));
  }
  auto ids_at = ids.begin();
  auto decoded_at = decoded.begin();
  for (const JsonValue text : texts) {
    Case one;
    JsonArray numbers;
    if (!(ids_at != ids.end()) || !(decoded_at != decoded.end()) || text.get(one.text) ||
        (*ids_at).get(numbers) || (*decoded_at).get(one.decoded))
      return malformed("expected texts, ids and dec of one length");
    if (!read_ids(numbers, one.ids)) return malformed("expected integers in ids");
    fixture.cases.push_back(std::move(one));
    ++ids_at;
    ++decoded_at;
  }
  return fixture;
}

// The tokenizer.json of a package in FOLDER/node_modules or FOLDER: the one closest to its root.
std::string find_tokenizer(const std::string& npm, std::string_view package) {
  std::error_code error;
  for (const char* middle : {"node_modules", ""}) {
    const fs::path root = fs::path(npm) / middle / package;
    if (!fs::is_directory(root, error)) continue;
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(root, error)) {
      if (entry.path().filename() == "tokenizer.json") found.push_back(entry.path());
    }
    const auto depth = [](const fs::path& p) { return std::distance(p.begin(), p.end()); };
    std::sort(found.begin(), found.end(), [&](const fs::path& a, const fs::path& b) {
      return depth(a) != depth(b) ? depth(a) < depth(b) : a < b;
    });
    if (!found.empty()) return found.front().string();
  }
  return {};
}

// What a stream of the ids gives.
std::string stream(const text::Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  text::Detokenizer detokenizer(tokenizer, {});
  std::string text;
  for (const int32_t id : ids) text += detokenizer.push(id);
  text += detokenizer.finish();
  return text;
}

std::string first_difference(size_t index, const Case& expected, const char* what) {
  return std::string("text ") + std::to_string(index) + ": " + what + " of \"" +
         std::string(expected.text.substr(0, 80)) + "\"";
}

using LoadedTokenizer = Result<std::unique_ptr<text::Tokenizer>>;

LoadedTokenizer load_gguf(const std::string& folder) {
  WEIR_ASSIGN(const card::ModelFiles files, card::ModelFiles::open(folder));
  WEIR_ASSIGN(const std::string metadata, card::gguf_tokenizer(files));
  return text::Tokenizer::load_file(text::kGgufTokenizer, metadata, "");
}

LoadedTokenizer load_json(const std::string& path) {
  WEIR_ASSIGN(const FileView json, FileView::map(path));
  return text::Tokenizer::load(json.text());
}

// How many cases are wrong, and the first of them.
struct Outcome {
  size_t wrong = 0;
  std::string first;
};

Outcome run(const Fixture& fixture, const text::Tokenizer& tokenizer) {
  Outcome outcome;
  const auto note = [&](size_t index, const Case& one, const char* what) {
    ++outcome.wrong;
    if (outcome.first.empty()) outcome.first = first_difference(index, one, what);
  };
  for (size_t i = 0; i < fixture.cases.size(); ++i) {
    const Case& one = fixture.cases[i];
    if (tokenizer.encode(one.text) != one.ids) {
      note(i, one, "ids");
    } else if (tokenizer.decode(one.ids, false) != one.decoded) {
      note(i, one, "decoded text");
    } else if (stream(tokenizer, one.ids) != tokenizer.decode(one.ids, true)) {
      note(i, one, "streamed text");
    }
  }
  for (size_t i = 0; i < fixture.special.size(); ++i) {
    const Case& one = fixture.special[i];
    if (tokenizer.encode(one.text) != one.ids) note(i, one, "ids, of special texts,");
  }
  return outcome;
}

// `path`: of the file with the answers.
Result<void> check_fixture(const std::string& path, const CheckOptions& options, Report& report) {
  const fs::path folder = fs::path(path).parent_path();
  const bool gguf = fs::path(path).filename() == kAnswers;
  const std::string name = gguf ? folder.filename().string() : fs::path(path).stem().string();
  WEIR_ASSIGN(const FileView file, FileView::map(path));
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(file.text()));
  auto fixture = read_fixture(doc);
  if (!fixture) {
    report.fail(name, fixture.error().message);
    return {};
  }
  const std::string json_path = gguf ? "" : find_tokenizer(options.npm, fixture->package);
  if (!gguf && json_path.empty()) {
    report.skip(name, "npm package " + std::string(fixture->package) + " is not installed in " +
                          (options.npm.empty() ? "a folder given by --npm" : options.npm));
    return {};
  }
  const std::clock_t start = std::clock();
  const LoadedTokenizer tokenizer = gguf ? load_gguf(folder.string()) : load_json(json_path);
  const std::clock_t load_ms = (std::clock() - start) * 1000 / CLOCKS_PER_SEC;
  if (!tokenizer) {
    report.fail(name, tokenizer.error().message);
    return {};
  }
  const Outcome outcome = run(*fixture, **tokenizer);
  const size_t texts = fixture->cases.size() + fixture->special.size();
  const std::string counts = std::to_string(texts - outcome.wrong) + " of " +
                             std::to_string(texts) + " texts, loaded in " +
                             std::to_string(load_ms) + " ms of CPU time";
  if (outcome.wrong > 0) {
    report.fail(name, counts + "; first wrong: " + outcome.first);
  } else {
    report.pass(name, counts);
  }
  return {};
}

}  // namespace

Result<void> check_tokenizers(const CheckOptions& options, Report& report) {
  std::vector<std::string> fixtures;
  std::error_code error;
  for (const std::string& path : options.paths) {
    if (fs::is_regular_file(path, error)) {
      fixtures.push_back(path);
      continue;
    }
    const size_t before = fixtures.size();
    if (is_gguf_fixture(path)) {
      fixtures.push_back(path + "/" + kAnswers);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(path, error))
      if (is_gguf_fixture(entry.path())) fixtures.push_back((entry.path() / kAnswers).string());
    if (fixtures.size() > before) continue;  // Files beside such folders are something else.
    for (const auto& entry : fs::directory_iterator(path, error))
      if (entry.path().extension() == ".json") fixtures.push_back(entry.path().string());
    if (fixtures.size() == before)
      return fail(ErrorCode::kNotFound, path + ": expected fixtures (*.json, or folders with " +
                                            "model.gguf and expected.json), found none");
  }
  std::sort(fixtures.begin(), fixtures.end());
  for (const std::string& fixture : fixtures) WEIR_TRY(check_fixture(fixture, options, report));
  return {};
}

}  // namespace weir::check
